// read_life: no input crashes, what is refused is told with its place, and what is accepted and
// small can be simulated: parts sum to the wall time.
#include <numeric>

#include "base/config.hpp"
#include "fuzz.hpp"
#include "plan/life/closed_form.hpp"
#include "plan/life/simulate.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace life = weft::plan::life;
  const auto config = weft::parse_yaml(weft::fuzz::text_of(data, size), "fuzz.yaml");
  if (!config) return 0;
  weft::Errors errors;
  life::LifePlan plan =
      life::read_life(*config, errors, [](const std::string&) { return std::string("{}"); });
  if (!errors.empty()) {
    for (const weft::Error& error : errors) WEFT_CHECK(!error.what.empty());
    return 0;
  }
  life::Life& job = plan.base;
  const life::Stops stops = life::stops_of(job, 1);
  const double best = life::best_interval(stops, job.stall_s, job.days * life::seconds_per_day);
  WEFT_CHECK(best >= 1);
  double strikes = 0;
  for (const life::Cause& cause : job.causes) strikes += cause.per_host_day;
  if (strikes * (job.hosts + job.spares) * job.days > 1e4 || job.hosts + job.spares > 5000)
    return 0;
  job.runs = 2;
  for (const life::RunResult& run : life::simulate(job, {.every_s = job.every_s.value_or(best)})) {
    for (const life::Ticks part : run.parts) WEFT_CHECK(part >= 0);
    const double sum =
        static_cast<double>(std::accumulate(run.parts.begin(), run.parts.end(), life::Ticks{0}));
    WEFT_CHECK(std::abs(sum - job.days * life::seconds_per_day * life::ticks_per_s) < 2);
  }
  return 0;
}
