// P-01: an AI Zone of 252 racks with 16 GPUs each has 4,032 GPUs under 18 CTSWs (Meta, "Enhancing
// Network Reliability for AI Training", Networking @Scale). Tolerance: none, these are counts.
// Other sources have 4,096 and 3,072 (192 racks): the number of racks is a parameter.
#include "kit.hpp"

namespace weft::paper {
namespace {

TEST_CASE("P-01: 252 racks of 16 are 4,032 GPUs") {
  const FabricFacts facts = facts_of("{generator: ai_zone, racks: 252}");
  CHECK(facts.gpus == 4032);
  CHECK(facts.nics == 4032);
  CHECK(facts.racks == 252);
  CHECK(role_of(facts, "ctsw").count == 18);
  CHECK(role_of(facts, "rtsw").ports_max == 16 + 18);
  CHECK(role_of(facts, "ctsw").ports_max == 252);  // of 576 that the chassis offers
  CHECK(facts_of("{generator: ai_zone, racks: 192}").gpus == 3072);
}

}  // namespace
}  // namespace weft::paper
