// Projections onto simplexes. Internal to the room.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft::saddle {

// The t at which sum over i of max(0, v[i] - t * weight[i]) = total > 0, by dropping what falls to
// 0 (Michelot, JOTA 1986): a few passes. `weight` nullptr: all 1. `kept` is scratch.
inline double threshold(const double* v, const double* weight, std::size_t n, double total,
                        std::vector<std::uint32_t>& kept) {
  const auto weight_of = [&](std::size_t i) { return weight == nullptr ? 1.0 : weight[i]; };
  kept.resize(n);
  double sum = -total, weights = 0;
  for (std::size_t i = 0; i < n; ++i) {
    kept[i] = static_cast<std::uint32_t>(i);
    sum += v[i];
    weights += weight_of(i);
  }
  for (std::size_t left = n;;) {
    const double t = sum / weights;
    std::size_t now = 0;
    sum = -total;
    weights = 0;
    for (std::size_t k = 0; k < left; ++k) {
      const std::uint32_t i = kept[k];
      if (v[i] <= t * weight_of(i)) continue;
      kept[now++] = i;
      sum += v[i];
      weights += weight_of(i);
    }
    if (now == left || now == 0) return t;
    left = now;
  }
}

// For blocks of up to four, where passes cost more than arithmetic: the same by insertion sort.
inline double small_threshold(const double* v, std::size_t n, double total) {
  double sorted[4];
  for (std::size_t i = 0; i < n; ++i) {
    std::size_t j = i;
    for (; j > 0 && sorted[j - 1] < v[i]; --j) sorted[j] = sorted[j - 1];
    sorted[j] = v[i];
  }
  double sum = -total, t = 0;
  for (std::size_t i = 0; i < n; ++i) {
    sum += sorted[i];
    t = sum / static_cast<double>(i + 1);
    if (i + 1 == n || sorted[i + 1] <= t) break;
  }
  return t;
}

}  // namespace weft::saddle
