// Flow sets as messages, and what their messages did as what the flows did.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "engine/packet/message.hpp"
#include "engine/packet/packet_run.hpp"
#include "model/fabric/flow_set.hpp"
#include "route/router.hpp"

namespace weft::engine::packet {

// What one run may hold; the engine numbers messages with 31 bits.
inline constexpr std::uint64_t flow_messages_max = 100'000'000;

// Flow f becomes messages [f parts, (f + 1) parts), where `parts` is router.stream_count(): equal
// parts, with what is left over in the first, one on each of the QPs 0, 1, ... between its ends.
// Where messages take turns (round_robin) the k-th flow between two NICs is one message on QP k mod
// qps. Flows with other switches in `via` have connections of their own.
// A flow that waits for another starts when the sender of the other knows that all of it has
// arrived; with several parts a message without bytes, behind those of all flows, joins them.
// Fails: Errc::value beyond flow_messages_max. Cost: O(n log n) for n flows; 36 bytes a message,
// and 12 bytes a flow for the time of the call.
Result<MessageSet> messages_of(const model::FlowSet& flows, const route::Router& router);

struct FlowTimes {
  Ps start = never;
  Ps end = never;  // the sender holds the last acknowledgement
};

// By flow: the earliest start and the latest end of its messages.
std::vector<FlowTimes> flow_times(std::span<const MessageEnd> messages, std::size_t flow_count,
                                  std::uint32_t parts);

}  // namespace weft::engine::packet
