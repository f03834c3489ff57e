// A forecast with an interval: a mean of simple forecasters, weighted by how well each did on the
// last hold-outs of the series itself.
#pragma once

#include "observe/forecast/series.hpp"

namespace weft::observe::forecast {

struct Options {
  std::vector<std::size_t> seasons;  // in steps; none: of a day and a week, where the step divides
  std::size_t horizon = 48;          // steps
  double level = 0.95;               // share of the values to come that the interval is to hold
  enum class Outages : std::uint8_t { dropped, kept } outages = Outages::dropped;  // outages.hpp
};

struct Weight {
  std::string name;
  double weight = 0;  // they sum up to 1
  double error = 0;   // mean absolute error on the hold-outs
};

struct Forecast {
  Timestamp start;  // of the first value below
  std::int64_t step_ns = 0;
  std::vector<double> values, low, high;  // horizon long
  std::vector<Weight> weights;            // largest first
  std::vector<std::size_t> seasons;       // those that the series is long enough for
  std::size_t gap_count = 0, event_count = 0, hold_outs = 0, outage_count = 0;
};

// Deterministic. Fails (at `file`) where the series is shorter than two horizons or has too few
// values for a hold-out.
Result<Forecast> predict(const Series& series, Options options, const std::string& file);

std::string to_table(const Forecast& forecast);
std::string to_json(const Forecast& forecast);
// The last `most` values of the series: step_s, and for each its time, value (null: a gap) and
// event.
std::string history_json(const Series& series, std::size_t most);

}  // namespace weft::observe::forecast
