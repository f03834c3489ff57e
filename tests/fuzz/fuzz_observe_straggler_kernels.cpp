// read_kernels and its sums: no input crashes, errors name the file and a hint, times are finite.
#include <cmath>
#include <string>

#include "fuzz.hpp"
#include "observe/straggler/kernels.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft::observe::straggler;
  std::string text(weft::fuzz::text_of(data, size));
  const auto trace = read_kernels(text, "k.json");
  if (!trace) {
    WEFT_CHECK(trace.error().where.file == "k.json" && !trace.error().hint.empty());
    return 0;
  }
  const KernelTimes times = times_of(*trace);
  for (const double seconds : {times.step_s, times.compute_s, times.exposed_s, times.idle_s})
    WEFT_CHECK(std::isfinite(seconds));
  return 0;
}
