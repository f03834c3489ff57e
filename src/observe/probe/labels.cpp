#include "observe/probe/labels.hpp"

#include <algorithm>
#include <cmath>

namespace weft::observe::probe {

std::uint64_t ports_needed(std::uint32_t paths, double share) {
  if (paths <= 1) return 1;
  const double m = paths;
  const double each = std::pow(share, 1 / m);
  return static_cast<std::uint64_t>(std::ceil(std::log1p(-each) / std::log1p(-1 / m)));
}

double coverage_of(std::uint32_t paths, std::uint64_t ports) {
  double sum = 0, ways = 1;  // ways: paths over j
  for (std::uint32_t j = 0; j <= paths; ++j) {
    const double left = 1 - static_cast<double>(j) / paths;
    sum += (j % 2 == 0 ? 1 : -1) * ways * std::pow(left, static_cast<double>(ports));
    ways *= static_cast<double>(paths - j) / (j + 1);
  }
  return std::clamp(sum, 0.0, 1.0);
}

}  // namespace weft::observe::probe
