// read_problem: no input crashes, what is refused is told, and what is accepted and small can be
// planned: the plan holds by its definition.
#include "fuzz.hpp"
#include "plan/regions/regions.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace regions = weft::plan::regions;
  const auto problem = regions::read_problem(weft::fuzz::text_of(data, size), "fuzz.yaml");
  if (!problem) {
    WEFT_CHECK(!problem.error().what.empty());
    return 0;
  }
  if (problem->data.size() > 20) return 0;
  const auto plan = regions::plan_regions(*problem, {.effort = 1e-4});
  if (!plan) return 0;
  WEFT_CHECK(regions::check_plan(*problem, *plan).empty());
  WEFT_CHECK(plan->bound <= plan->bytes * (1 + 1e-9) + 1);
  for (const regions::TrafficDemand& d : regions::traffic_of(*problem, *plan).demands)
    for (const double bps : d.bps) WEFT_CHECK(bps >= 0 && d.from != d.to);
  WEFT_CHECK(!regions::transfers_csv(*problem, *plan).empty());
  WEFT_CHECK(!regions::to_json(*problem, *plan).empty());
  WEFT_CHECK(!regions::to_table(*problem, *plan).empty());
  return 0;
}
