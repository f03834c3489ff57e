// P-02: one failed CTSW of 18 hits 1/18 = 5.56 % of every rack's traffic (Meta, "Enhancing Network
// Reliability for AI Training", Networking @Scale). Tolerance: rounding of doubles.
// The loss is of capacity; what a job feels depends on routing and on the spare 18/16 (P-03).
#include "base/test_approx.hpp"
#include "kit.hpp"

namespace weft::paper {
namespace {

TEST_CASE("P-02: a failed CTSW takes 1/18 of every rack's capacity") {
  const FabricFacts facts = facts_of("{generator: ai_zone, racks: 252}");
  const FabricFacts::Loss& ctsw = loss_of(facts, "ctsw");
  CHECK(ctsw.racks_affected == 252);
  CHECK(ctsw.nics_affected == 4032);
  CHECK(ctsw.nics_cut_off == 0);
  CHECK(ctsw.rack_share_min == approx(1.0 / 18).epsilon(1e-12));
  CHECK(ctsw.rack_share_max == approx(1.0 / 18).epsilon(1e-12));
}

// The share of a sprayed flow that crosses one CTSW, before and after another one failed.
TEST_CASE("P-02: a sprayed flow has 1/18 on each CTSW, and 1/17 without one of them") {
  const Fabric fabric = fabric_of("{generator: ai_zone, racks: 252}");
  route::Router router = router_of(fabric, {.scheme = "spray"});
  for (const int ctsws : {18, 17}) {
    std::vector<route::Hop> hops;
    REQUIRE(router.append_path({fabric.nics().front(), fabric.nics().back()}, hops));
    REQUIRE(hops.size() == 2 + 2 * static_cast<std::size_t>(ctsws));
    for (std::size_t i = 1; i + 1 < hops.size(); ++i)
      CHECK(hops[i].share == approx(1.0 / ctsws).epsilon(1e-12));
    router.set_state(faults_of(fabric, "[{kind: switch_down, switch: \"ctsw:7\"}]").front().state);
  }
}

}  // namespace
}  // namespace weft::paper
