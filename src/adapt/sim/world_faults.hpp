// The `faults:` of a scenario as a simulated network has them.
#pragma once

#include <vector>

#include "adapt/sim/operations.hpp"
#include "base/config.hpp"
#include "model/events/episode.hpp"

namespace weft::adapt::sim {

struct TimedFault {
  Timestamp at;
  Operations::Start start;
};

// Reads a list of maps:
//   kind    of the catalogue, made by `world` (weft faults)
//   link, switch, nic, host or card: names, as the kind says; a cable "a--b", or of kinds that have
//           directions one, "a->b"; a card "ctsw:0/card:1"
//   at      since the start (0); until  its end by itself (never: people end it)
//   loss    of *_lossy and corrupt: share of packets
//   share   of duplicate: share of packets that come twice (1 %)
//   factor  of link_degraded: share of the rate that is left
//   delay   of delay and jitter
//   to      of blackhole: the host that is not reached
// Fails: every error found, with its position. A null section is no fault. Cost: O(names).
Result<std::vector<TimedFault>> read_world_faults(const model::Fabric& fabric,
                                                  const Config& section, Timestamp start);

// What was broken so far, as the catalogue calls it: the truth for localisers and SLIs. Kinds that
// no traffic suffers from are left out.
std::vector<model::Episode> episodes(const model::Fabric& fabric, const Operations& network);

}  // namespace weft::adapt::sim
