// P-05: pods meet at 1:7 ("The Llama 3 Herd of Models", 2024, section 3.3.1). On the 192 down-ports
// of a CTSW that is 27.4 ports up; 28 give 1:6.86. Tolerance: none on the ports; the printed digits
// on 6.86. How many ATSWs there are and their radix is not published; ours are columns, one CTSW
// of each pod in each.
#include "base/test_approx.hpp"
#include "kit.hpp"

namespace weft::paper {
namespace {

TEST_CASE("P-05: 28 ports up under 192 down are 1:6.86") {
  const FabricFacts facts = facts_of("{generator: three_tier, pods: 8, racks: 192}");
  const auto& ctsw = switches_of(facts, "ctsw");
  CHECK(role_of(facts, "ctsw").ports_max == 192 + 28);
  CHECK(ctsw.worst == plan::Ratio{48, 7});
  CHECK(ctsw.worst.value() == approx(6.86).epsilon(0.001));
  REQUIRE(facts.bisection.has_value());
  CHECK(facts.bisection->share() == plan::Ratio{7, 48});
}

// Half of the building to the other half at the bandwidth of its NICs: 1:6.86 is what arrives.
TEST_CASE("P-05: traffic that crosses pods gets 1/6.86 of the NICs' rate") {
  const Fabric fabric = fabric_of("{generator: three_tier, pods: 2, racks: 192}");
  route::Router router = router_of(fabric, {.scheme = "optimal"});
  model::FlowSet set;
  const auto nics = fabric.nics();
  for (std::size_t i = 0; i < nics.size() / 2; ++i)
    set.flows.push_back({.src = nics[i], .dst = nics[i + nics.size() / 2], .size = 500_MB});
  const auto result = engine::fluid::run_flows(set, router, {}, {});
  const double full_rate = 500e6 / 50e9;
  CHECK(result.makespan_s / full_rate == approx(48.0 / 7).epsilon(1e-3));  // + latency
}

}  // namespace
}  // namespace weft::paper
