// The middle of some values, and how far they spread. Internal to the room.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace weft::observe::colltrace {

inline constexpr double normal_scale = 1.4826;  // median deviation to standard deviation

// The upper one of two in the middle; 0 of none. Reorders the values.
inline double median(std::vector<double>& values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

// Standard deviation of the middle half, if the values are normal.
inline double spread(const std::vector<double>& values, double centre) {
  std::vector<double> work;
  work.reserve(values.size());
  for (const double v : values) work.push_back(std::abs(v - centre));
  return normal_scale * median(work);
}

}  // namespace weft::observe::colltrace
