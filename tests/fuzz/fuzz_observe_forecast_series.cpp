// read_series: whatever it accepts has even steps, and a forecast of it is finite.
#include <algorithm>
#include <cmath>

#include "fuzz.hpp"
#include "observe/forecast/forecast.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft::observe::forecast;
  const auto series = read_series(weft::fuzz::text_of(data, size), "s.csv");
  if (!series) {
    WEFT_CHECK(!series.error().what.empty());
    return 0;
  }
  WEFT_CHECK(series->step_ns > 0 && series->events.size() >= series->values.size());
  if (series->values.size() > 5000) return 0;
  const auto forecast = predict(*series, {.seasons = {4}, .horizon = 3}, "s.csv");
  if (!forecast) return 0;
  for (std::size_t h = 0; h < 3; ++h)
    WEFT_CHECK(std::isfinite(forecast->values[h]) && forecast->low[h] <= forecast->high[h]);
  return 0;
}
