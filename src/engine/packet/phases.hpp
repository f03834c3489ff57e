// A run whose messages come in phases, in which a phase like an earlier one is not simulated again.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "engine/packet/packet_run.hpp"

namespace weft::engine::packet {

// The messages [first, last) of a set, such as those of one call of a collective. All others have
// no bytes: they only join events and let time pass.
struct Phase {
  std::uint32_t first = 0, last = 0;
};

struct PhaseCounts {
  std::uint64_t phases = 0;
  std::uint64_t repeated = 0;        // ended without having been simulated
  std::uint64_t hops_simulated = 0;  // of Counters::hops
};

// How long everything that a group of phases shares links with must have been idle before its queue
// pairs are like new again. Congestion state is stale by then (TCP drops it after one
// retransmission timeout: RFC 5681, 4.1; the shortest here is as long).
inline constexpr Ps idle_reset = 25'000'000;

// Whether a run with these options and states of the fabric can be simulated phase by phase.
bool phases_apply(const Options& options, std::span<const StateChange> changes);

// What becomes of a group of phases (below) like one that has been simulated.
enum class Repeat : std::uint8_t { simulated, replayed };

// As run_messages(), on one thread, except that phases are simulated in groups: those that share
// cables (or the memory of a switch, where that is limited or PFC counts it), and of which one
// begins before the others are over. A group begins on an idle fabric, with queue pairs like new:
// congestion control, packet numbers and every random draw start again. So what happens follows
// from what begins when after its start, and `Repeat::replayed` takes it from an earlier group of
// which the same was true; the result is the same to the last bit as with `simulated`. A group is
// over `idle_reset` after the last of its messages; without congestion control and chance, at once.
//
// Requires: phases_apply(); phases in order and disjoint; every message of a phase waits for
// another and has no time of its own (not_before_ps). Returns nothing where messages do not all
// end: run_messages() says why they do not. Fails as run_messages() does. Cost: that of the groups
// that are simulated, and some 200 ns a message.
Result<std::optional<PacketRunResult>> run_phases(const MessageSet& set,
                                                  std::span<const Phase> phases,
                                                  route::Router& router,
                                                  std::span<const StateChange> changes,
                                                  const Options& options, Repeat repeat,
                                                  Progress& progress, PhaseCounts& counts);

}  // namespace weft::engine::packet
