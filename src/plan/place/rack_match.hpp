// Which hosts of a zone share a rack.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/rng.hpp"
#include "plan/place/job_graph.hpp"

namespace weft::plan::place {

// Puts the hosts `places` of a job, all in one zone, into racks of so many hosts each (their sum is
// that of the places), so that few bytes go between racks: racks are filled from the most lonely
// host on with whom it talks to most, then improved by swaps.
// Returns the rack of each place. Same arguments, same racks.
std::vector<std::uint32_t> match_racks(const JobGraph& graph, std::span<const std::uint32_t> places,
                                       std::span<const std::uint32_t> rack_sizes, const Rng& rng);

}  // namespace weft::plan::place
