// parse_plan: no input crashes, and what is accepted is within its bounds.
#include "fuzz.hpp"
#include "plan/design/plan_fabric.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto plan = weft::plan::parse_plan({weft::fuzz::text_of(data, size), {}});
  if (!plan) {
    WEFT_CHECK(!plan.error().what.empty());
    return 0;
  }
  WEFT_CHECK(plan->nics > 0 && plan->rate.bps > 0 && plan->port.bps > 0);
  WEFT_CHECK(plan->ports(plan->rate) >= 0 && plan->ports(plan->rate) <= plan->radix);
  WEFT_CHECK(plan->oversubscription >= 1 && plan->nics_per_host > 0);
  return 0;
}
