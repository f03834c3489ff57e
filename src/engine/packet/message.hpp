// What the packet engine sends: messages on connections, with dependencies.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/packet/options.hpp"
#include "model/fabric/fabric.hpp"

namespace weft::engine::packet {

using model::Fabric;
using model::LinkId;
using model::NodeId;

// A queue pair between two ends (NICs, GPUs, or switches as in workload::Edge). Its messages are
// sent one after the other, in the order in which they become ready, as an RC queue pair does.
struct Connection {
  NodeId src, dst;
  std::uint32_t qp = 0;                  // number for the hash, as in route::Stream
  std::uint32_t via = 0, via_count = 0;  // into MessageSet::via
  std::uint8_t traffic_class = 0;        // 0: the data class
  // Bytes per second that its congestion control begins with; 0: as it begins by itself.
  float initial_rate = 0;
};

// Ready at the latest of `not_before_ps` and `delay_ns` after the last event it waits for; one that
// waits for none, `delay_ns` after `not_before_ps`.
struct Message {
  std::uint32_t connection = 0;
  std::uint32_t waits = 0;  // events of other messages
  std::uint64_t bytes = 0;  // 0: over when ready (a join of dependencies)
  Ps not_before_ps = 0;
  std::uint32_t delay_ns = 0;
  std::uint32_t first_dependent = 0;  // into MessageSet::dependents, up to the next message's
};

// What a message releases. `arrived`: when its last byte is at the receiver; the waiting message
// should start there. `acknowledged`: when its sender knows; it should start there. Others are
// served too, but no thread boundary may then lie between the two places.
struct Dependent {
  enum class When : std::uint32_t { arrived = 0, acknowledged = 1 };
  std::uint32_t message : 31;
  std::uint32_t when : 1;
};

// Columns of one run. 36 bytes a message with one dependent.
struct MessageSet {
  std::vector<Connection> connections;
  std::vector<Message> messages;      // and one at the end that only closes `dependents`
  std::vector<Dependent> dependents;  // by message
  std::vector<NodeId> via;
  Ps begin = 0;  // when connections have their initial rates

  std::size_t size() const { return messages.empty() ? 0 : messages.size() - 1; }
  std::span<const Dependent> dependents_of(std::uint32_t message) const {
    return std::span(dependents)
        .subspan(messages[message].first_dependent,
                 messages[message + 1].first_dependent - messages[message].first_dependent);
  }
};

}  // namespace weft::engine::packet
