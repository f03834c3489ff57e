// A MessageSet as it grows: messages in any order, and dependencies between any two of them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/units.hpp"
#include "engine/packet/message.hpp"

namespace weft::engine::packet {

using model::NodeId;
using MessageId = std::uint32_t;

// Something that happens to a message, where the next one starts.
struct MessageEvent {
  using When = Dependent::When;
  MessageId message;
  When when = When::arrived;
};

// What one run may hold; the engine numbers messages with 31 bits.
inline constexpr double packet_messages_max = 50e6;
// Bytes of memory for each message, from its making to its result.
inline constexpr double packet_message_bytes = 88;

class MessageGraph {
 public:
  // `streams` connections with QPs 0, 1, ...; returns the first.
  std::uint32_t add_connections(NodeId src, NodeId dst, std::uint32_t streams);

  struct Spec {
    std::uint32_t connection;
    std::uint64_t bytes;
    std::uint32_t delay_ns = 0;  // after the last event it waits for
  };
  MessageId add(const Spec& spec);
  // A message without bytes at `node`, over `delay` after all of `events`; a delay that does not
  // fit one message takes several.
  MessageId add_join(NodeId node, std::span<const MessageEvent> events, Duration delay = {});
  void not_before(MessageId message, Time time);

  void wait(MessageId message, MessageEvent event) { waits_.push_back({message, event}); }
  // Every message from `first` on, `count` of them, waits for all events; through a join at `node`
  // where that takes less memory.
  void wait_all(MessageId first, std::uint32_t count, std::span<const MessageEvent> events,
                NodeId node);

  std::uint32_t size() const { return static_cast<std::uint32_t>(set_.messages.size()); }
  // Cost: O(messages + dependencies). The graph is empty afterwards.
  MessageSet take();

 private:
  struct Wait {
    MessageId waiting;
    MessageEvent event;
  };
  std::uint32_t join_connection(NodeId node);

  MessageSet set_;
  std::vector<Wait> waits_;
  std::vector<std::uint32_t> joins_;  // by node: its connection to itself, plus 1
};

// Messages whose dependencies lead back to some that have none. The others wait in circles.
// Cost: O(messages + dependencies).
std::vector<bool> reachable(const MessageSet& set);

}  // namespace weft::engine::packet
