// The `faults:` section of a scenario, turned into the states a fabric goes through.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/config.hpp"
#include "base/units.hpp"
#include "model/fabric/fabric.hpp"
#include "model/fabric/state.hpp"

namespace weft::model {

// What a list of faults asks for at most; more is refused.
struct FaultLimits {
  std::size_t faults = 100'000;
  std::size_t strikes = 2'000'000;     // links and nodes over all faults
  std::size_t overlap = 100;           // faults at a time on one link or node
  std::size_t exceptions = 4'000'000;  // over all snapshots
};

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
//   kind    link_down, link_drain, link_degraded, link_lossy, switch_down, switch_drain,
//           switch_degraded, switch_lossy (all its cables), nic_down, nic_drain, nic_degraded,
//           nic_lossy (the NIC's cables to the network, not those inside its host),
//           nic_slow_receiver (what comes from the network), host_down (with its NICs and GPUs),
//           host_slow (all of its GPUs), gpu_slow
//   link    of link kinds: cables "a--b", ports "a/7", or single directions "a->b"
//   switch, nic, host, gpu, or node: names, as the kind says
//   count, with role (or tier, for links), and pick: first | random   instead of names
//   at, until    start (0) and end (never); active while at <= t < until
//   factor  of *_degraded and nic_slow_receiver: share of the rate that is left; of *_slow: how
//           many times as long GPUs compute, 1 to 1e6
//   loss    of *_lossy: share of packets lost
// Faults that overlap combine: the worst health holds, factors multiply, losses add as independent
// events, and a link is up again when all of its faults have ended. `seed` decides random picks.
// Fails: every error found, with its position. A null section is no fault.
// Cost: O(strikes x overlap + exceptions), each within `limits`.
Result<FaultTimeline> read_faults(const Fabric& fabric, const Config& section,
                                  std::uint64_t seed = 1, const FaultLimits& limits = {});

// How long after a change it is heard of: State::seen(), routed() and noticed().
struct Lateness {
  Duration seen = {}, routed = {}, noticed = {};
};
// The same states as those see them who hear of every change late: there is one more snapshot
// wherever somebody hears of something. What holds from the start all know. Who hears before the
// routes does not count on what they still avoid.
std::vector<FaultTimeline::Snapshot> heard_late(std::span<const FaultTimeline::Snapshot> snapshots,
                                                const Lateness& late);

}  // namespace weft::model
