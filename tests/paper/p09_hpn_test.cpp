// P-09: Alibaba HPN 7.0 (Qian et al., SIGCOMM 2024): 15 segments of 1,024 GPUs are 15,360; a ToR
// has 25.6 Tbps down and 24 Tbps up, 1.067; in a plane the choice of the uplink fixes the path, so
// 60 ways have to be searched. Tolerance: none, these are counts and integer rates.
// The 8 spare ports of a ToR are not cabled here. The paper's search spaces of other networks
// (4,096, 2,304, 2,048) count switches' choices by rules of their own and are not reproduced.
#include <set>

#include "base/test_approx.hpp"
#include "kit.hpp"

namespace weft::paper {
namespace {

TEST_CASE("P-09: 15 x 1,024 GPUs, 25.6 over 24 Tbps, 60 paths in each of two planes") {
  const Fabric fabric = fabric_of("{generator: hpn}");
  const FabricFacts facts = plan::explain(fabric);
  CHECK(facts.gpus == 15'360);
  CHECK(facts.racks == 15);  // segments
  const auto& tor = switches_of(facts, "tor");
  CHECK(tor.down == 25'600_Gbps);
  CHECK(tor.up == 24'000_Gbps);
  CHECK(tor.worst.value() == approx(1.067).epsilon(0.001));
  const auto& across = path_of(facts, "same pod");
  CHECK(across.hops == 4);
  CHECK(across.shortest == 2 * 60);
  CHECK(across.disjoint == 2);  // a NIC has a cable into each plane
  CHECK(across.disjoint_inside == 2 * 60);
}

// Source ports of the NIC choose the ToR uplink; nothing after it is left to choose.
TEST_CASE("P-09: the uplink fixes the path") {
  const Fabric fabric = fabric_of("{generator: hpn, segments: 2}");
  route::Router router = router_of(fabric, {.scheme = "e_ecmp", .qps = 1024});
  std::set<model::LinkId> uplinks;
  std::set<std::vector<model::LinkId>> paths;
  for (std::uint32_t qp = 0; qp < 1024; ++qp) {
    std::vector<route::Hop> hops;
    REQUIRE(router.append_path({fabric.nics().front(), fabric.nics()[1024], qp}, hops));
    std::vector<model::LinkId> links;
    for (const route::Hop& hop : hops) links.push_back(hop.link);
    REQUIRE(links.size() == 4);
    uplinks.insert(links[1]);
    paths.insert(links);
  }
  CHECK(uplinks.size() == 2 * 60);
  CHECK(paths.size() == uplinks.size());
}

}  // namespace
}  // namespace weft::paper
