// Exact draws from distributions, the same on every machine. Internal to the room.
#pragma once

#include <cstdint>

#include "base/rng.hpp"

namespace weft::adapt::sim {

// Successes among `trials` with chance `p` in [0, 1] each. Cost: O(1 + trials * min(p, 1 - p)).
std::uint32_t draw_binomial(Rng& rng, std::uint32_t trials, double p);
// Cost: O(1 + mean). mean >= 0.
std::uint32_t draw_poisson(Rng& rng, double mean);

}  // namespace weft::adapt::sim
