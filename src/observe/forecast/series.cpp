#include "observe/forecast/series.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "base/csv.hpp"

namespace weft::observe::forecast {
namespace {

constexpr double missing = std::numeric_limits<double>::quiet_NaN();

// The step at which a row stands; the second row decides how long a step is.
Result<std::size_t> step_of(Series& series, Timestamp at, std::size_t rows, const Where& where) {
  if (rows == 0) series.start = at;
  if (rows == 0) return 0;
  // As unsigned, since the ends of time lie further apart than an int64 holds.
  const auto since =
      static_cast<std::uint64_t>(at.ns) - static_cast<std::uint64_t>(series.start.ns);
  if (at <= series.start || since > static_cast<std::uint64_t>(timestamp_ns_max))
    return fail(Errc::value, where, "the time does not lie after that of the row before",
                "sort the rows by time, one per step");
  if (rows == 1) series.step_ns = static_cast<std::int64_t>(since);
  const auto step = static_cast<std::uint64_t>(series.step_ns);
  if (since % step != 0)
    return fail(Errc::value, where,
                fmt::format("the time is not a whole number of steps of {} s after the first",
                            static_cast<double>(series.step_ns) / ns_per_s),
                "the first two rows set the step; leave out the times that were not measured");
  if (since / step >= points_max)
    return fail(Errc::value, where, fmt::format("more than {} steps after the first", points_max),
                "sum the series up to longer steps");
  return since / step;
}

// The mean of the nearest known values at the same point of the longest season that has some.
std::optional<double> from_season(const std::vector<double>& values, std::size_t at,
                                  const std::vector<std::size_t>& seasons) {
  for (auto season = seasons.rbegin(); season != seasons.rend(); ++season) {
    double sum = 0;
    int count = 0;
    for (std::size_t k = 1; k <= 3 && count < 4; ++k)
      for (const bool before : {true, false}) {
        const std::size_t shift = k * *season;
        if (before ? shift > at : at + shift >= values.size()) continue;
        const double there = values[before ? at - shift : at + shift];
        if (std::isnan(there)) continue;
        sum += there;
        ++count;
      }
    if (count > 0) return sum / count;
  }
  return std::nullopt;
}

// Between the known values on either side, on the line through them.
double between(const std::vector<double>& values, std::size_t at) {
  std::size_t left = at, right = at;
  while (left > 0 && std::isnan(values[left])) --left;
  while (right + 1 < values.size() && std::isnan(values[right])) ++right;
  const double a = values[left], b = values[right];
  if (std::isnan(a)) return std::isnan(b) ? 0 : b;
  if (std::isnan(b)) return a;
  return a + (b - a) * static_cast<double>(at - left) / static_cast<double>(right - left);
}

}  // namespace

Result<Series> read_series(std::string_view text, const std::string& file, SeriesKind kind) {
  static const std::array<std::string, 2> required{"time", "value"};
  static const std::array<std::string, 1> optional{"event"};
  CsvReader csv(text, file);
  WEFT_TRY_STATUS(csv.header(required, optional));
  Series series;
  std::size_t rows = 0, known = 0;
  for (; csv.next(); ++rows) {
    WEFT_TRY(const Timestamp at, parse_timestamp(csv.cell(0)));
    WEFT_TRY(const std::size_t step, step_of(series, at, rows, csv.cell(0).where));
    if (rows > 0 && step < series.events.size())
      return fail(Errc::value, csv.cell(0).where,
                  "the time does not lie after that of the row before",
                  "sort the rows by time, one per step");
    series.events.resize(step + 1);
    series.events[step] = csv.cell(2).text;
    if (csv.cell(1).text.empty()) continue;
    WEFT_TRY(const double value, parse_number(csv.cell(1)));
    if (std::abs(value) > 1e100)
      return fail(Errc::value, csv.cell(1).where, "a value beyond 1e100", "use a larger unit");
    if (value < 0 && kind == SeriesKind::demand)
      return fail(Errc::value, csv.cell(1).where, fmt::format("demand {} is below 0", value),
                  "write requests in the step, or leave the value empty where none was measured");
    series.values.resize(step, missing);
    series.values.push_back(value);
    ++known;
  }
  if (csv.error() != nullptr) return std::unexpected(*csv.error());
  if (known < 3)
    return fail(Errc::value, {file}, "fewer than three values", "give a longer series");
  return series;
}

Cleaned clean(const Series& series, const std::vector<std::size_t>& seasons, std::size_t horizon) {
  Cleaned out{series.values, 0, 0, std::vector<double>(horizon, 0.0)};
  std::vector<double>& values = out.values;
  const auto event_at = [&](std::size_t t) -> std::string_view {
    return t < series.events.size() ? std::string_view(series.events[t]) : std::string_view();
  };
  for (std::size_t t = 0; t < values.size(); ++t) {
    if (std::isnan(values[t])) ++out.gap_count;
    if (std::isnan(values[t]) || event_at(t).empty()) continue;
    ++out.event_count;
    values[t] = missing;
  }
  const std::vector<double> known = values;
  for (std::size_t t = 0; t < values.size(); ++t)
    if (std::isnan(known[t]))
      values[t] = from_season(known, t, seasons).value_or(between(known, t));

  struct Effect {
    double sum = 0;
    int count = 0;
  };
  std::map<std::string_view, std::vector<Effect>> effects;
  std::size_t since = 0;
  for (std::size_t t = 0; t < values.size() + horizon; ++t) {
    const std::string_view event = event_at(t);
    since = t > 0 && event == event_at(t - 1) ? since + 1 : 0;
    if (event.empty()) continue;
    auto& by_step = effects[event];
    if (t >= values.size()) {
      if (since < by_step.size() && by_step[since].count > 0)
        out.effect[t - values.size()] = by_step[since].sum / by_step[since].count;
      continue;
    }
    if (since >= by_step.size()) by_step.resize(since + 1);
    if (std::isnan(series.values[t])) continue;
    by_step[since].sum += series.values[t] - values[t];
    ++by_step[since].count;
  }
  return out;
}

}  // namespace weft::observe::forecast
