// A series measured at even steps, with gaps and named events.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/timestamp.hpp"

namespace weft::observe::forecast {

struct Series {
  Timestamp start;                  // of the first value
  std::int64_t step_ns = 0;         // between values; > 0
  std::vector<double> values;       // NaN where none was measured
  std::vector<std::string> events;  // name of the event under way, "" for none; may go on into the
                                    // future, so that it has at least as many entries as values
};

inline constexpr std::size_t points_max = 4'000'000;

// What a series holds: anything, or demand, which is nowhere below 0.
enum class SeriesKind : std::uint8_t { any, demand };

// Columns time, value and, optionally, event. The first two times give the step; all others must
// be whole steps further on. Times without a row and rows without a value are gaps; rows after the
// last value announce the events to come. Fails at the line: Errc::value on what `kind` excludes,
// too.
Result<Series> read_series(std::string_view text, const std::string& file,
                           SeriesKind kind = SeriesKind::any);

// What a fit sees: gaps and events replaced by what the seasons around them say.
struct Cleaned {
  std::vector<double> values;
  std::size_t gap_count = 0, event_count = 0;  // values that were replaced
  std::vector<double> effect;  // per point of the horizon: what the event announced there adds
};
// `seasons` in steps, ascending. An event's effect is the mean, over its earlier occurrences and by
// step since its beginning, of what was measured less what the seasons around it say.
Cleaned clean(const Series& series, const std::vector<std::size_t>& seasons, std::size_t horizon);

}  // namespace weft::observe::forecast
