// The one rule of percentiles: nearest rank.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

namespace weft::inline base {

// Where the p-th percentile of `count` > 0 values stands in ascending order, 0 < percent <= 100: at
// the least value that so many percent of all do not exceed. "p99 <= x" thus holds exactly where 99
// of 100 values are within x. Not for limits on values to come, which are wider.
inline std::size_t nearest_rank(std::size_t count, double percent) {
  constexpr double rounding = 1e-12;  // 99.9 % of 1000 is 999.0000000000001 to a computer
  const double rank = std::ceil(static_cast<double>(count) * percent / 100 * (1 - rounding));
  return static_cast<std::size_t>(std::clamp(rank, 1.0, static_cast<double>(count))) - 1;
}

// Of values in ascending order, at least one.
template <class Value>
Value percentile(std::span<const Value> sorted, double percent) {
  return sorted[nearest_rank(sorted.size(), percent)];
}

}  // namespace weft::inline base
