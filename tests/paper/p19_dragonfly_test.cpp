// P-19: a Slingshot switch has 64 ports of 200 Gbps, 12.8 Tbps; a Dragonfly of them has at most
// three hops between switches (De Sensi et al., "An In-Depth Analysis of the Slingshot
// Interconnect", SC 2020). Tolerance: none, these are counts.
#include "kit.hpp"

namespace weft::paper {
namespace {

// 35 groups: all 544 global ports of a group are in use, half of a router's peers are a hop away.
TEST_CASE("P-19: 64 x 200 Gbps, three hops between switches") {
  const Fabric fabric = fabric_of("{generator: dragonfly, g: 35, radix: 64}");
  const FabricFacts facts = plan::explain(fabric);
  const auto& router = role_of(facts, "router");
  CHECK(router.count == 35 * 32);
  CHECK(router.ports_min == 64);
  CHECK(router.ports_max == 64);
  CHECK(router.capacity_min == 12'800_Gbps);
  std::uint32_t hops_max = 0;
  for (const auto& path : facts.paths) hops_max = std::max(hops_max, path.hops);
  CHECK(hops_max == 2 + 3);  // two cables of NICs
  CHECK(path_of(facts, "same rack").hops == 2);
  CHECK(path_of(facts, "same pod").hops == 2 + 1);
}

// Minimal routing, from some NICs of the first group to all others.
TEST_CASE("P-19: no minimal path is longer") {
  const Fabric fabric = fabric_of("{generator: dragonfly, g: 35}");
  route::Router router = router_of(fabric, {.scheme = "minimal"});
  std::size_t longest = 0;
  for (const std::size_t from : {0u, 100u, 511u})
    for (std::size_t to = 0; to < fabric.nics().size(); to += 16) {
      std::vector<route::Hop> hops;
      if (from == to) continue;
      REQUIRE(router.append_path({fabric.nics()[from], fabric.nics()[to]}, hops));
      longest = std::max(longest, hops.size());
    }
  CHECK(longest == 2 + 3);
}

}  // namespace
}  // namespace weft::paper
