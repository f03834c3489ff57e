// For tests: a backbone drawn at random.
#pragma once

#include <vector>

#include "base/rng.hpp"
#include "plan/backbone/wan.hpp"

namespace weft::plan::backbone {

// A ring with chords, so that every two sites have two disjoint paths.
inline Wan random_wan(std::uint32_t sites, std::uint32_t chords, std::uint64_t seed) {
  Rng rng(seed);
  Wan out;
  for (std::uint32_t i = 0; i < sites; ++i) out.sites.push_back("s" + std::to_string(i));
  const auto add = [&](std::uint32_t a, std::uint32_t b) {
    out.cables.push_back({a, b, static_cast<double>(1 + rng.below(4)), {}});
  };
  for (std::uint32_t i = 0; i < sites; ++i) add(i, (i + 1) % sites);
  for (std::uint32_t i = 0; i < chords; ++i) {
    const auto a = static_cast<std::uint32_t>(rng.below(sites));
    add(a, (a + 2 + static_cast<std::uint32_t>(rng.below(sites - 3))) % sites);
  }
  return out;
}

}  // namespace weft::plan::backbone
