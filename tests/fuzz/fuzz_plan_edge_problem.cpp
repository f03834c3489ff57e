// read_problem: no input crashes, what is refused is told, and what is accepted and small can be
// planned: the plan holds by its definition.
#include "fuzz.hpp"
#include "plan/edge/measure.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace edge = weft::plan::edge;
  const auto problem = edge::read_problem(weft::fuzz::text_of(data, size), "fuzz.yaml");
  if (!problem) {
    WEFT_CHECK(!problem.error().what.empty());
    return 0;
  }
  if (problem->areas.size() * problem->metros.size() * problem->services.size() > 100) return 0;
  const auto plan = edge::plan_edge(*problem, {.gap = 0.05, .rounds_max = 1});
  WEFT_CHECK(edge::check_plan(*problem, plan).empty());
  WEFT_CHECK(!edge::to_json(*problem, plan, nullptr).empty());
  WEFT_CHECK(!edge::to_table(*problem, plan, nullptr, 5).empty());
  return 0;
}
