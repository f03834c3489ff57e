// How many random source ports it takes to see all equal-cost paths.
#pragma once

#include <cstdint>

namespace weft::observe::probe {

// Ports needed so that all of `paths` (at least 1) are taken with probability `share` (in (0, 1)),
// by the closed form of R-Pingmesh, SIGCOMM 2024: each path is missed by (1 - 1/m)^n of the draws,
// paths as if they were independent of each other. They are not, so it may fall short a little.
std::uint64_t ports_needed(std::uint32_t paths, double share);

// The probability itself, by inclusion and exclusion: that `ports` draws, each on one of `paths`
// paths alike, leave none out. Exact to about 1e-9 for up to 30 paths.
double coverage_of(std::uint32_t paths, std::uint64_t ports);

}  // namespace weft::observe::probe
