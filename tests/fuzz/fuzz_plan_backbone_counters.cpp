// read_counters: no input crashes; what is accepted makes sense, and demands can be fitted to it.
#include <cmath>

#include "fuzz.hpp"
#include "plan/backbone/fit.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace backbone = weft::plan::backbone;
  const backbone::Wan wan{.sites = {"a", "b", "c"}, .cables = {{0, 1, 1, {}}, {1, 2, 1, {}}}};
  const auto counters = backbone::read_counters(weft::fuzz::text_of(data, size), "fuzz", wan);
  if (!counters) {
    WEFT_CHECK(!counters.error().what.empty());
    return 0;
  }
  const std::vector<backbone::Demand> demands{{0, 1, 1}, {1, 2, 1}, {0, 2, 1}};
  const auto fit = backbone::fit_demands(wan, demands, backbone::find_paths(wan, demands, 1),
                                         *counters, {.rounds_max = 50});
  for (const backbone::Demand& d : fit.demands) WEFT_CHECK(std::isfinite(d.gbps) && d.gbps >= 0);
  WEFT_CHECK(fit.worst >= 0 && fit.worst_counter < counters->size());
  return 0;
}
