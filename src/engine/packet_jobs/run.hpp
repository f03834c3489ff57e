// Jobs on the packet engine.
#pragma once

#include <span>
#include <string_view>

#include "base/result.hpp"
#include "engine/jobs/engine.hpp"
#include "engine/packet/options.hpp"
#include "route/router.hpp"

namespace weft::engine::packet {

// Whether iterations that must come out as an earlier one did are simulated all the same.
enum class Memoise : std::uint8_t { on, off };

// Semantics: CollectiveLowering and, of graphs, lower_graph().
//
// A collective that has the fabric to itself, under a transport without congestion control, begins
// every iteration when all ranks have ended the one before, on an empty fabric and with connections
// like new: each is a run of its own. Then one that meets the same state of the fabric as an
// earlier one, for as long as that took, and in which nothing is left to chance, is equal to it to
// the picosecond; it is not simulated again, and a note says so. Where there is chance (entropies,
// marks, lossy links) each iteration draws anew.
//
// Operation graphs alone are run phase by phase (run_phases()), and `memoise` says whether phases
// that recur are replayed; where phases_apply() does not hold, or not everything ends, they are one
// run.
//
// Otherwise everything is one run, in which each rank goes from one iteration to the next by
// itself; an iteration lasts from the end of the one before, on all ranks, to its own.
//
// Fails: as check_message_count(), lower_collective(), lower_graph() and
// run_messages(). Deterministic for any number of threads.
struct PacketEngine {
  static constexpr std::string_view name = "packet";
  Options options;
  Memoise memoise = Memoise::on;
  // Below 1: this share of all bytes and compute runs, half and a quarter of it, and the result is
  // extrapolated (estimate.hpp). Not with `options.end` or `options.series`, and only where the
  // fabric stays as at the start.
  double estimate = 1;

  Result<RunResult> run(const Work& work, route::Router& router,
                        std::span<const StateChange> changes, const Watch& watch) const;
};
static_assert(Engine<PacketEngine>);

}  // namespace weft::engine::packet
