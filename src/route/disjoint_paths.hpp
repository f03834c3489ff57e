// Shortest paths between two ends that share no link between switches. Internal to the room.
#pragma once

#include <cstdint>
#include <vector>

#include "route/next_hops.hpp"
#include "route/router.hpp"

namespace weft::route {

// At most `count`, and as many as there are, by augmenting paths (Ford, Fulkerson, 1956) on the
// shortest paths' links; `seed` picks among equals. The links of NICs carry several paths where
// that must be, in equal numbers where possible. Cost: O(count x links of the shortest paths).
std::vector<Path> find_disjoint_paths(const Fabric& fabric, NextHops& next_hops, NodeId src,
                                      NodeId dst, std::uint32_t count, std::uint64_t seed);

}  // namespace weft::route
