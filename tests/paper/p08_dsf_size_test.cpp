// P-08: Meta's disaggregated scheduled fabric (DSF) is non-blocking for 18,432 accelerators in two
// stages (secondary sources only). Ours: a two-stage Clos of that size, sprayed as DSF sprays
// cells, gives a random permutation of all NICs its full rate. Tolerance: 0.1 % for the latency of
// the last byte. Credits and virtual output queues are not modelled, and how many leaves there are
// is our choice.
#include "base/rng.hpp"
#include "base/test_approx.hpp"
#include "kit.hpp"

namespace weft::paper {
namespace {

TEST_CASE("P-08: 18,432 NICs in two stages without blocking") {
  const Fabric fabric =
      fabric_of("{generator: ai_zone, racks: 288, hosts_per_rack: 8, spines: 64}");
  const FabricFacts facts = plan::explain(fabric);
  CHECK(facts.nics == 18'432);
  CHECK(switches_of(facts, "rtsw").worst == plan::Ratio{1, 1});
  CHECK(switches_of(facts, "ctsw").level_max == 2);
  REQUIRE(facts.bisection.has_value());
  CHECK(facts.bisection->share() == plan::Ratio{1, 1});

  std::vector<model::NodeId> to(fabric.nics().begin(), fabric.nics().end());
  Rng rng = Rng(1).stream("p08");
  rng.shuffle(std::span(to));
  route::Router router = router_of(fabric, {.scheme = "spray"});
  model::FlowSet set;
  for (std::size_t i = 0; i < to.size(); ++i)
    if (fabric.nics()[i] != to[i])
      set.flows.push_back({.src = fabric.nics()[i], .dst = to[i], .size = 500_MB});
  const auto result = engine::fluid::run_flows(set, router, {}, {});
  CHECK(result.makespan_s / (500e6 / 50e9) == approx(1).epsilon(1e-3));
}

}  // namespace
}  // namespace weft::paper
