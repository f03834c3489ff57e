// P-04: 8 pods of 192 racks of 16 GPUs are 24,576 GPUs, each pod 3,072 at full bisection ("The
// Llama 3 Herd of Models", 2024, section 3.3.1). With the 252 racks of Meta's 2023 talk the same
// plan has 32,256. Tolerance: none, these are counts.
#include "kit.hpp"

namespace weft::paper {
namespace {

TEST_CASE("P-04: 24,576 GPUs, and 32,256 with 252 racks") {
  const FabricFacts facts = facts_of("{generator: three_tier, pods: 8, racks: 192}");
  CHECK(facts.gpus == 24'576);
  CHECK(facts.racks == 8 * 192);
  CHECK(switches_of(facts, "rtsw").worst == plan::Ratio{1, 1});
  CHECK(fabric_of("{generator: three_tier, pods: 8, racks: 252}").gpus().size() == 32'256);
}

TEST_CASE("P-04: a pod has 3,072 GPUs at full bisection") {
  const FabricFacts facts = facts_of("{generator: three_tier, pods: 1, racks: 192}");
  CHECK(facts.gpus == 3072);
  REQUIRE(facts.bisection.has_value());
  CHECK(facts.bisection->share() == plan::Ratio{1, 1});
}

}  // namespace
}  // namespace weft::paper
