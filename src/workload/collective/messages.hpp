// A collective message by message: every chunk that one GPU sends another, and what it waits for.
//
// The coupled forms of traffic.hpp say what a collective costs in steady state. This is the slow
// and literal form that they are compared with, and whose data flow is proved in tests.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "workload/collective/traffic.hpp"

namespace weft::workload {

using MessageIndex = std::uint32_t;
inline constexpr MessageIndex no_message = UINT32_MAX;

struct Message {
  // What the receiver does with the blocks. `reduce_input` adds what the sender had at the start,
  // whatever it has summed since. `hold` keeps them apart, unread, for the message that names this
  // one in `forwards`: a GPU lends its NIC to another one of its host.
  enum class Action : std::uint8_t { reduce, reduce_input, copy, hold };
  // A run of MessageList's tables.
  struct Run {
    std::uint32_t first = 0, count = 0;
  };

  NodeId from, to;
  std::uint32_t from_rank, to_rank;
  double bytes;
  Action action;
  MessageIndex forwards = no_message;  // its data are those of this message, not of `from_rank`
  Run after, blocks;
};

// Messages in an order in which each one stands behind all it waits for.
// A message may start when all of `after` have ended and its sender has started. A block is an
// equal part of the data, numbered as the algorithm likes; in all_gather and reduce_scatter block b
// belongs to rank b % ranks, in all_to_all block i * ranks + j goes from i to j.
class MessageList {
 public:
  std::span<const Message> messages() const { return messages_; }
  std::span<const MessageIndex> after(const Message& m) const { return run(after_, m.after); }
  std::span<const std::uint32_t> blocks(const Message& m) const { return run(blocks_, m.blocks); }
  std::uint32_t block_count() const { return block_count_; }

 private:
  friend class MessageWriter;
  static std::span<const std::uint32_t> run(const std::vector<std::uint32_t>& table,
                                            Message::Run run) {
    return std::span(table).subspan(run.first, run.count);
  }
  std::vector<Message> messages_;
  std::vector<MessageIndex> after_;
  std::vector<std::uint32_t> blocks_;
  std::uint32_t block_count_ = 0;
};

inline constexpr std::uint32_t expand_rank_max = 256;
inline constexpr std::size_t expand_message_max = 4'000'000;
inline constexpr std::size_t expand_table_max = 64'000'000;  // entries of `after`, of `blocks`

// `pipeline_chunks` is the number of pieces in which trees and broadcasts move each channel's data;
// rings and step-wise algorithms have the granularity of their definition.
// Fails: as build_traffic; Errc::infeasible beyond the bounds above; Errc::unsupported for
// algorithms that reduce inside switches.
// Cost: O(messages); a ring all-reduce has 2 (n-1) n of them per channel.
Result<MessageList> expand_messages(const Fabric& fabric, const Request& request,
                                    std::uint32_t pipeline_chunks = 16);

// Used by the algorithms. Beyond the bounds it takes no more and says so in overflow().
class MessageWriter {
 public:
  explicit MessageWriter(std::span<const NodeId> ranks) : ranks_(ranks), pending_(ranks.size()) {}

  struct Spec {
    std::uint32_t from, to;  // ranks
    double bytes;
    Message::Action action;
    MessageIndex forwards = no_message;
  };
  void set_blocks(std::uint32_t count) { list_.block_count_ = count; }
  // One message with what it waits for written out; `no_message` entries are left out.
  MessageIndex add(const Spec& spec, std::span<const std::uint32_t> blocks,
                   std::initializer_list<MessageIndex> after);
  MessageIndex add(const Spec& spec, std::span<const std::uint32_t> blocks,
                   std::span<const MessageIndex> after);

  // Step-wise algorithms: what a rank sends in a step waits for all that it has sent and received
  // in earlier ones. Nothing in a step waits for anything in the same step.
  void send(const Spec& spec, std::span<const std::uint32_t> blocks);
  void end_step();

  bool overflow() const { return overflow_; }
  MessageList take() { return std::move(list_); }

 private:
  std::span<const NodeId> ranks_;
  MessageList list_;
  // By rank: what its next send waits for. A send includes, through its own list, all before it.
  std::vector<std::vector<MessageIndex>> pending_;
  std::vector<MessageIndex> step_;
  bool overflow_ = false;
};

}  // namespace weft::workload
