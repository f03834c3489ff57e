// P-47: how many random labels (source ports) see all m equal-cost paths with probability p.
// R-Pingmesh (SIGCOMM 2024) takes n = ceil(ln(1 - p^(1/m)) / ln((m - 1)/m)): 33 for m = 8 and
// p = 0.9. Ours: the same number, and what it really gives, by inclusion and exclusion: 0.9045 (to
// half a digit); the closed form takes paths for independent and may fall short of p by up
// to 0.002. Beside it the planner, which picks ports from the hash and leaves nothing to chance.
#include <cmath>
#include <map>
#include <set>

#include "base/rng.hpp"
#include "base/test_approx.hpp"
#include "kit.hpp"
#include "observe/probe/labels.hpp"
#include "observe/probe/plan.hpp"

namespace weft::paper {
namespace {

using namespace observe::probe;

TEST_CASE("P-47: label count and exact coverage") {
  CHECK(ports_needed(8, 0.9) == 33);
  CHECK(coverage_of(8, 33) == approx(0.9045).epsilon(0.00006));
  CHECK(ports_needed(1, 0.9) == 1);
  for (const std::uint32_t paths : {2u, 4u, 8u, 16u, 18u}) {
    for (const double share : {0.9, 0.99})
      CHECK(coverage_of(paths, ports_needed(paths, share)) >= share - 0.002);
    // With less certainty the assumption costs more.
    CHECK(coverage_of(paths, ports_needed(paths, 0.5)) >= 0.47);
  }
  // The published cap of 64 labels falls short where there are 18 paths.
  CHECK(ports_needed(18, 0.9) > 64);
  CHECK(coverage_of(18, 64) < 0.9);
}

// Every outcome of n draws on m paths, counted.
double enumerated(std::uint32_t paths, std::uint32_t ports) {
  std::uint64_t all = 1, full = 0;
  for (std::uint32_t i = 0; i < ports; ++i) all *= paths;
  for (std::uint64_t code = 0; code < all; ++code) {
    std::set<std::uint64_t> seen;
    std::uint64_t rest = code;
    for (std::uint32_t i = 0; i < ports; ++i, rest /= paths) seen.insert(rest % paths);
    full += seen.size() == paths ? 1 : 0;
  }
  return static_cast<double>(full) / static_cast<double>(all);
}

TEST_CASE("P-47: the exact probability, against enumeration") {
  for (std::uint32_t paths = 1; paths <= 4; ++paths)
    for (std::uint32_t ports = 1; ports <= 7; ++ports)
      CHECK(coverage_of(paths, ports) == approx(enumerated(paths, ports)).epsilon(1e-9));
}

TEST_CASE("P-47: random ports beside the planner, on a fabric with 8 paths") {
  const Fabric fabric = fabric_of(
      "{generator: ai_zone, racks: 8, hosts_per_rack: 2, gpus_per_host: 8, spines: 8, "
      "link: 400 Gbps}");
  route::Router router = router_of(fabric, {});
  // 33 random ports between two NICs, many times: as often as computed they see all 8 paths.
  Rng rng(1);
  int complete = 0;
  constexpr int rounds = 4'000;
  for (int round = 0; round < rounds; ++round) {
    const auto src = fabric.nics()[rng.below(16)], dst = fabric.nics()[16 + rng.below(112)];
    std::set<route::Path> seen;
    for (int i = 0; i < 33; ++i) {
      route::Path path;
      const auto port = static_cast<std::uint16_t>(49'152 + rng.below(16'384));
      REQUIRE(router.append_udp_path(src, dst, {port, default_port}, path));
      seen.insert(path);
    }
    complete += seen.size() == 8 ? 1 : 0;
  }
  const double share = static_cast<double>(complete) / rounds;
  CHECK(std::abs(share - coverage_of(8, 33)) < 4 * std::sqrt(0.0864 / rounds));

  const auto plan = make_plan(router, {}, {.crossings = 1, .flows_each = 4, .routes_each = 0});
  REQUIRE(plan.has_value());
  CHECK(plan->coverage.below.empty());
  // All 128 + 128 links of NICs and 64 + 64 of switches with a few flows a NIC, where 33 labels for
  // each pair of racks would be 33 x 56.
  CHECK(plan->flows.size() < 33 * 56 / 4);
}

}  // namespace
}  // namespace weft::paper
