// P-03: 18 uplinks over 16 down-links are 1.125, and 17/16 = 1.0625 after one CTSW is lost (Gangidi
// et al., "RDMA over Ethernet for Distributed AI Training at Meta Scale", SIGCOMM 2024: 1:1.125;
// the talk's "1:1.25" does not fit its own counts). Tolerance: none, rates are integers.
#include "kit.hpp"

namespace weft::paper {
namespace {

TEST_CASE("P-03: uplinks over down-links are 9/8") {
  const FabricFacts facts = facts_of("{generator: ai_zone, racks: 252}");
  const auto& rtsw = switches_of(facts, "rtsw");
  CHECK(rtsw.uniform);
  CHECK(plan::ratio_of(rtsw.up, rtsw.down) == plan::Ratio{9, 8});
}

// The layer of a rack's live uplinks as one pool, over what its 16 NICs send.
double uplinks_per_rack(const Fabric& fabric, std::string_view faults) {
  route::Router router = router_of(fabric, {.scheme = "optimal"});
  router.set_state(faults_of(fabric, faults).front().state);
  std::vector<route::Hop> hops;
  REQUIRE(router.append_path({fabric.nics().front(), fabric.nics().back()}, hops));
  REQUIRE(hops.size() == 4);
  return router.capacity(hops[1].link) / (16 * router.capacity(hops[0].link));
}

TEST_CASE("P-03: 1.125 healthy, 1.0625 after one CTSW loss, 1 after two") {
  const Fabric fabric = fabric_of("{generator: ai_zone, racks: 252}");
  CHECK(uplinks_per_rack(fabric, "[]") == 1.125);
  CHECK(uplinks_per_rack(fabric, "[{kind: switch_down, role: ctsw, count: 1}]") == 1.0625);
  CHECK(uplinks_per_rack(fabric, "[{kind: switch_down, role: ctsw, count: 2}]") == 1);
}

}  // namespace
}  // namespace weft::paper
