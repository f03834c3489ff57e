// A series as a scaler sees it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "observe/forecast/series.hpp"

namespace weft::plan::scale {

// Values at even steps, gaps and outages filled with the last value before them, and the calendar
// of events, which is known ahead.
struct Demand {
  std::vector<double> values;
  std::vector<std::string> events;  // as in Series
  std::size_t steps_a_day = 0;      // 0: steps longer than a day, or that do not divide it
  std::size_t gaps = 0, outages = 0;
};
Demand demand_of(const observe::forecast::Series& series);

}  // namespace weft::plan::scale
