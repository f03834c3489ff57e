// All-gathers in rounds in which every rank sends the same number of parts, and the reduce-scatters
// that are these played backwards.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>
#include <vector>

#include "workload/collective/algorithm.hpp"

namespace weft::workload {

// As many as it takes to reach n ranks from one, when each round doubles those reached.
inline std::uint32_t rounds_over(std::uint32_t n) {
  return static_cast<std::uint32_t>(std::bit_width(n - 1));
}

// A way to gather over n ranks. Ranks send in every round; what a rank sends it holds by then.
struct GatherScheme {
  std::string_view name;
  Rank (*receiver)(std::uint32_t n, std::uint32_t round, Rank from);
  std::uint32_t (*part_count)(std::uint32_t n, std::uint32_t round);
};

// Every rank sends n - 1 parts in all. Stages of one flow per rank: O(n log n) edges.
std::vector<Stage> build_rounds(const Job& job, const GatherScheme& scheme);

}  // namespace weft::workload
