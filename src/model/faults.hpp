// The `faults:` section of a scenario, turned into the states a fabric goes through.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/config.hpp"
#include "base/units.hpp"
#include "model/fabric.hpp"
#include "model/state.hpp"

namespace weft::model {

struct FaultTimeline {
  struct Snapshot {
    Time at;
    State state;  // from `at` until the next snapshot
  };
  std::vector<Snapshot> snapshots;  // ascending in time; the first one is at 0, there is always one
  std::vector<std::string> lines;   // each fault in words, in file order

  const State& initial() const { return snapshots.front().state; }
};

// Reads a list of faults, each of them a map:
//   kind    link_down, link_drain, link_degraded, link_lossy, switch_down, switch_drain, nic_down,
//           nic_drain, host_down (with its NICs and GPUs)
//   link    of link kinds: cables "a--b", ports "a/7", or single directions "a->b"
//   switch, nic, host, or node: names, as the kind says
//   count, with role (or tier, for links), and pick: first | random   instead of names
//   at, until    start (0) and end (never); active while at <= t < until
//   factor  of link_degraded: share of the rate that is left;  loss  of link_lossy: share lost
// Faults that overlap combine: the worst health holds, factors multiply, losses add as independent
// events, and a link is up again when all of its faults have ended. `seed` decides random picks.
// Fails: every error found, with its position. A null section is no fault.
// Bounds: 100,000 faults that strike 2 million links and nodes, at most 100 of them at a time on one,
// and 4 million exceptions over all snapshots. Cost: O(strikes x overlap + exceptions).
Result<FaultTimeline> read_faults(const Fabric& fabric, const Config& section,
                                  std::uint64_t seed = 1);

}  // namespace weft::model
