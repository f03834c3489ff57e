// Collectives as messages: what a rank sends, and which of its own events it waits for.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "engine/packet_jobs/message_graph.hpp"
#include "route/router.hpp"
#include "workload/collective/cost.hpp"
#include "workload/collective/traffic.hpp"

namespace weft::engine::packet {

// Pieces in which streams (trees, broadcasts) move: of this size, and larger where there would be
// more than so many. NCCL's pieces are between 32 KiB and 512 KiB, by size and depth.
inline constexpr double stream_piece_bytes = 128 << 10;
inline constexpr std::uint32_t stream_pieces_max = 256;
// With which the receiver of an exchange lets its sender start.
inline constexpr std::uint64_t grant_bytes = 64;

// How messages divide over the connections between two ends.
struct MessageWidth {
  std::uint32_t connections;
  std::uint32_t parts;  // of each message, on connections 0, 1, ...; fewer: they take turns
};
MessageWidth width_of(const route::Router& router);

// What a message takes inside hosts on links that paths leave out: packets do not cross these, so
// that it starts later. At most 2 s.
std::uint32_t omitted_ns(NodeId from, NodeId to, route::Router& router);

// Part `index` of `count` of `bytes`, as `width.parts` messages on the connections from `base` on.
struct SplitMessage {
  std::uint32_t base;
  double bytes;
  std::uint64_t index = 0, count = 1;
  std::uint64_t turn = 0;  // number of the whole message
  std::uint32_t delay_ns = 0;
  std::span<const double> shares = {};  // of each part, sum 1; empty: equal
};
// Returns the first of them.
MessageId add_split(const SplitMessage& message, const MessageWidth& width, MessageGraph& graph);

// A collective that is repeated on the packet engine.
struct LoweringRequest {
  const workload::Traffic& traffic;
  std::span<const NodeId> ranks;
  Duration step_overhead = {};
  std::optional<workload::CallCost> cost = {};  // what the library needs; none: line rate
  Time start = {};
  std::span<const Duration> late = {};  // by rank, of the first iteration; empty: nobody
  std::uint32_t iterations = 1;
  std::uint32_t first_iteration = 0;  // its number, where messages take turns on QPs
  bool is_part = false;               // as CollectiveLowering takes it
};

// Where each stage of each iteration lies among the messages: part p has messages [first[p],
// first[p + 1]). An iteration has a part for every stage, and one with the ends of all ranks.
struct LoweredJob {
  std::uint32_t stages = 0;
  std::vector<MessageId> first;
  std::size_t parts() const { return first.size() - 1; }
};

// Messages of one iteration, joins included, or somewhat more.
double message_count(const workload::Traffic& traffic, std::size_t ranks,
                     const route::Router& router);

// Fails: Errc::infeasible beyond packet_messages_max, with the memory they would take.
Status check_message_count(double messages);

// A collective that is appended to a graph again and again, on the same connections.
//
// Semantics. There is no barrier: a rank enters a stage when it has received everything of the
// stage before (where it receives nothing, when its own sends are acknowledged), and comes to its
// end likewise. Every event that a message waits for happens at its sender.
// - Rings in turns send one message an edge and turn, which waits for that of the edge before in
//   the turn before.
// - Streams send pieces: one is passed on when it has come over all edges that Chain::levels puts
//   before.
// - Exchanges: as workload::Exchange says. A rank tells the sender of a round when it has opened
//   it, by a message of grant_bytes; the first `window` rounds need no such word. Pairs without
//   bytes do not meet.
// - Messages divide over the router's streams, or take turns on the QPs; a divided one has arrived
//   with its last part. Parts are as Router::qp_shares() says when the lowering is made.
// Sizes are whole bytes that add up to those of the edge, and every message has at least one. A
// stage in which nothing is sent takes the overhead of its steps.
// - Of a part (estimate.hpp), a ring in turns ends on all ranks when it has ended on the last one:
//   the turns that are left out would go all the way round. Ranks tell the first one, and it them,
//   by messages of grant_bytes.
// - With a cost no rank leaves a stage sooner after it entered than the stage's shares of it say.
//   Packets have the latency of their paths by themselves, so that it comes on top only where it is
//   longer than the library's.
class CollectiveLowering {
 public:
  // All must outlive it. `step_overhead` comes before every message, to the nearest nanosecond;
  // check_overhead() says whether it fits.
  CollectiveLowering(const workload::Traffic& traffic, std::span<const NodeId> ranks,
                     Duration step_overhead, const std::optional<workload::CallCost>& cost,
                     route::Router& router, MessageGraph& graph, bool is_part = false);
  CollectiveLowering(CollectiveLowering&&) noexcept;
  ~CollectiveLowering();

  // Rank r begins after `after[r]`; its end is message `[r]` of what is returned. `number`: of the
  // run, where messages take turns on QPs. `parts` gets the first message of every stage, and of
  // the ends. Cost: O(messages).
  std::vector<MessageId> append(std::span<const MessageEvent> after, std::uint32_t number,
                                std::vector<MessageId>& parts);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Fails: Errc::value on more than a message can wait, 4.29 s.
Status check_overhead(Duration step_overhead);

// Appends all iterations: each rank goes from one to the next by itself. Fails as check_overhead().
Result<LoweredJob> lower_collective(const LoweringRequest& request, route::Router& router,
                                    MessageGraph& graph);

}  // namespace weft::engine::packet
