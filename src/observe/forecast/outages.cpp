#include "observe/forecast/outages.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace weft::observe::forecast {
namespace {

constexpr std::size_t days_before = 7, days_known_least = 3, days_down_most = 3;
constexpr double outage_share = 0.1;

}  // namespace

std::size_t drop_outages(Series& series, Hindsight hindsight) {
  constexpr std::int64_t day_ns = 24 * ns_per_hour;
  if (series.step_ns <= 0 || day_ns % series.step_ns != 0) return 0;
  const auto day = static_cast<std::size_t>(day_ns / series.step_ns);
  std::vector<double>& values = series.values;
  // Of what may be negative, little is not less than nothing.
  if (std::ranges::any_of(values, [](double v) { return v < 0; })) return 0;
  // Earlier outages count: what is down at the same time again is a habit.
  const std::vector<double> measured = values;
  std::size_t dropped = 0;
  std::vector<std::size_t> down;  // steps of the outage under way
  const auto recover = [&] {
    if (hindsight == Hindsight::afterwards && down.size() <= days_down_most * day)
      for (const std::size_t t : down) {
        values[t] = std::numeric_limits<double>::quiet_NaN();
        ++dropped;
      }
    down.clear();
  };
  for (std::size_t t = 0; t < values.size(); ++t) {
    if (std::isnan(values[t])) continue;
    double least = std::numeric_limits<double>::infinity();
    std::size_t known = 0;
    for (std::size_t k = 1; k <= days_before && k * day <= t; ++k)
      if (const double then = measured[t - k * day];
          !std::isnan(then) && (down.empty() || t - k * day < down.front())) {
        least = std::min(least, then);
        ++known;
      }
    const bool is_event = t < series.events.size() && !series.events[t].empty();
    if (is_event || known < days_known_least || values[t] >= outage_share * least) {
      recover();
      continue;
    }
    down.push_back(t);
    if (hindsight == Hindsight::afterwards || down.size() > day) continue;
    values[t] = std::numeric_limits<double>::quiet_NaN();
    ++dropped;
  }
  return dropped;
}

}  // namespace weft::observe::forecast
