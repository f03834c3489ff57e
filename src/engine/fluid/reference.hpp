// The plain solver that the fast one is held against.
#pragma once

#include <span>
#include <vector>

#include "engine/fluid/solver.hpp"

namespace weft::engine::fluid {

// Weighted max-min fair rates by textbook progressive filling, round by round, nothing cached.
// In:   `capacity` by resource, bytes/s; one hop list per entity.
// Out:  bytes/s per unit of weight, by entity; unlimited without hops.
// Cost: O(bottlenecks * hops). For tests and certificates, not for use in a run.
// From: Bertsekas & Gallager, Data Networks, 6.5.
std::vector<double> reference_rates(std::span<const double> capacity,
                                    std::span<const std::vector<Hop>> entities);

}  // namespace weft::engine::fluid
