// Shares in percent, for people.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <string>

namespace weft {

// "12.5 %" of 0.125; "-" of what is no share, as of 0 in 0.
inline std::string percent(double share, int decimals) {
  return std::isfinite(share) ? fmt::format("{:.{}f} %", 100 * share, decimals) : "-";
}
// "+12.5 %" of 1.125 against 1; "-" against nothing.
inline std::string percent_change(double value, double than, int decimals) {
  const double change = value / than - 1;
  return std::isfinite(change) ? fmt::format("{:+.{}f} %", 100 * change, decimals) : "-";
}

}  // namespace weft
