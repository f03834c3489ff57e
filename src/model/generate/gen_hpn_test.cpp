// hpn, fat_tree, dragonfly and torus against closed forms.
#include <algorithm>
#include <numeric>
#include <set>

#include "model/formats/test_fabric.hpp"

namespace weft::model {
namespace {

using namespace testing;

std::size_t cables_to(const Fabric& f, NodeId from, std::string_view role) {
  return static_cast<std::size_t>(
      std::ranges::count_if(f.out(from), [&](LinkId l) { return f.role_name(f.to(l)) == role; }));
}

TEST_CASE("hpn: P-09 a pod of 15,360 GPUs, ToR 25.6T / 24T, 60 ways up") {
  const Fabric f = make_fabric("{generator: hpn}");
  CHECK(f.gpus().size() == 15'360);
  CHECK(count(f, "tor") == 15 * 16);
  CHECK(count(f, "agg") == 120);
  CHECK(count(f, "core") == 0);
  const NodeId tor = node(f, "tor:100");
  CHECK(cables_to(f, tor, "nic") == 128);
  CHECK(cables_to(f, tor, "agg") == 60);  // the search space: the uplink fixes the path
  CHECK(bps_towards(f, tor, "nic") == 25'600'000'000'000);
  CHECK(bps_towards(f, tor, "agg") == 24'000'000'000'000);
  CHECK(cables_to(f, node(f, "agg:0"), "tor") == 120);
}

TEST_CASE("hpn: two ToRs in one plane, and a second tier of rails alone") {
  const Fabric dual = make_fabric(
      "{generator: hpn, planes: 1, tors: 2, segments: 3, hosts_per_segment: 4, gpus_per_host: 2, "
      "aggs: 5}");
  CHECK(count(dual, "tor") == 3 * 2 * 2);
  CHECK(count(dual, "agg") == 5);
  CHECK(cables_to(dual, node(dual, "tor:0"), "nic") == 4);
  CHECK(cables_to(dual, node(dual, "nic:0"), "tor") == 2);
  CHECK(bps_towards(dual, node(dual, "nic:0"), "tor") == 400'000'000'000);
  CHECK(cables_to(dual, node(dual, "agg:0"), "tor") == 3 * 2 * 2);
  // Without one of its ToRs a NIC is still there, at half its rate.
  for (const LinkId link : dual.out(node(dual, "nic:0")))
    if (dual.role_name(dual.to(link)) == "tor") CHECK(dual.rate(link).bps == 200'000'000'000);

  const Fabric rails = make_fabric(
      "{generator: hpn, rail_only: true, segments: 3, hosts_per_segment: 4, gpus_per_host: 2, "
      "aggs: 5}");
  CHECK(count(rails, "tor") == 3 * 2 * 2);
  CHECK(count(rails, "agg") == 2 * 2 * 5);  // planes, rails
  CHECK(cables_to(rails, node(rails, "tor:0"), "agg") == 5);
  CHECK(cables_to(rails, node(rails, "agg:0"), "tor") == 3);
  // NICs meet those of their own rail alone.
  const auto hops = hops_from(rails, rails.nics()[0]);
  for (std::size_t n = 1; n < rails.nics().size(); ++n)
    CHECK((hops[rails.nics()[n].index()] >= 0) == (n % 2 == 0));
  // Through the core all do.
  const Fabric pods = make_fabric(
      "{generator: hpn, rail_only: true, pods: 2, segments: 2, hosts_per_segment: 2, "
      "gpus_per_host: 2, aggs: 2, cores: 1, core_uplinks: 1}");
  for (const int h : hops_from(pods, pods.nics()[0])) CHECK(h <= 6);
  CHECK(hops_from(pods, pods.nics()[0])[pods.nics()[1].index()] == 6);
}

// Published growth of a tier as features are added: what one ToR pair or pod reaches.
TEST_CASE("hpn: P-10 GPUs of a segment and a pod by feature") {
  const auto gpus = [](const char* yaml) { return make_fabric(yaml).gpus().size(); };
  // One 51.2T ToR: half its 128 ports of 400 Gbps go down.
  CHECK(gpus("{generator: hpn, segments: 1, planes: 1, gpus_per_host: 1, hosts_per_segment: 64,"
             " aggs: 60}") == 64);
  // Dual-ToR: 128 ports of 200 Gbps.
  CHECK(gpus("{generator: hpn, segments: 1, gpus_per_host: 1}") == 128);
  // Rails: eight such pairs.
  CHECK(gpus("{generator: hpn, segments: 1}") == 1'024);
  // A pod: aggs of 128 ports, 8 ToRs per plane and segment, 15:1 towards the core.
  CHECK(gpus("{generator: hpn, segments: 15}") == 15'360);
}

TEST_CASE("hpn: every NIC reaches one ToR per plane, planes meet in NICs only") {
  const Fabric f =
      make_fabric("{generator: hpn, segments: 2, hosts_per_segment: 3, gpus_per_host: 2, aggs: 3}");
  CHECK(count(f, "tor") == 2 * 2 * 2);
  CHECK(tier_size(f, "nic->tor") == 12 * 2);
  CHECK(tier_size(f, "tor->agg") == 8 * 3);
  for (const NodeId nic : f.nics()) {
    std::set<std::int16_t> planes;
    for (const LinkId l : f.out(nic)) {
      const NodeId tor = f.to(l);
      if (!f.is_switch(tor)) continue;
      planes.insert(f.plane(tor));
      CHECK(f.rail(tor) == f.rail(nic));
      CHECK(f.scope(tor) == f.enclosing(nic, ScopeKind::rack));
      CHECK(f.rate(l) == 200_Gbps);
    }
    CHECK(planes == std::set<std::int16_t>{0, 1});
  }
  for (const LinkId l : find_tier(f, "tor->agg")->links)
    CHECK(f.plane(f.from(l)) == f.plane(f.to(l)));
}

TEST_CASE("hpn: pods meet in the core, 15 : 1") {
  const Fabric f = make_fabric("{generator: hpn, pods: 4}");
  CHECK(f.gpus().size() == 4 * 15'360);
  CHECK(count(f, "core") == 2 * 4 * 60 * 8 / 128);
  CHECK(tier_size(f, "agg->core") == 4 * 120 * 8);
  const NodeId agg = node(f, "agg:130");
  CHECK(bps_towards(f, agg, "tor") == 15 * bps_towards(f, agg, "core"));
  for (const NodeId core : f.role(f.find_role("core")).nodes) {
    CHECK(f.out(core).size() == 128);
    for (const LinkId l : f.out(core)) CHECK(f.plane(f.to(l)) == f.plane(core));
  }
  const auto hops = hops_from(f, f.nics()[0]);
  CHECK(hops[f.nics().back().index()] == 6);
  CHECK(std::ranges::none_of(f.nics(), [&](NodeId n) { return hops[n.index()] < 0; }));
}

TEST_CASE("fat_tree: k^3 / 4 GPUs, 5 k^2 / 4 switches of k ports") {
  for (const std::int64_t k : {2, 4, 6, 8, 12}) {
    const auto n = static_cast<std::size_t>(k);
    const Fabric f = make_fabric("{generator: fat_tree, k: " + std::to_string(k) + "}");
    CHECK(f.gpus().size() == n * n * n / 4);
    CHECK(f.nics().size() == n * n * n / 4);
    CHECK(count(f, "edge") + count(f, "agg") + count(f, "core") == 5 * n * n / 4);
    for (const char* const tier : {"nic->edge", "edge->agg", "agg->core"})
      CHECK(tier_size(f, tier) == n * n * n / 4);
    for (const char* const role : {"edge", "agg", "core"})
      for (const NodeId s : f.role(f.find_role(role)).nodes) CHECK(f.out(s).size() == n);
  }
}

TEST_CASE("fat_tree: each core joins one agg of every pod") {
  const Fabric f = make_fabric("{generator: fat_tree, k: 4}");
  for (const NodeId core : f.role(f.find_role("core")).nodes) {
    std::set<ScopeId> pods;
    for (const LinkId l : f.out(core)) pods.insert(f.scope(f.to(l)));
    CHECK(pods.size() == 4);
  }
  const auto hops = hops_from(f, f.nics()[0]);
  // GPUs 0-1 on the same edge switch, 2-3 in the same pod, the others beyond the core.
  const std::vector<int> expected{0, 2, 4, 4, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6};
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(hops[f.nics()[i].index()] == expected[i]);
}

std::size_t groups_joined(const Fabric& f, ScopeId group) {
  std::set<ScopeId> others;
  for (const NodeId router : f.role(f.find_role("router")).nodes) {
    if (f.enclosing(router, ScopeKind::pod) != group) continue;
    for (const LinkId l : f.out(router))
      if (f.is_switch(f.to(l)) && f.enclosing(f.to(l), ScopeKind::pod) != group)
        others.insert(f.enclosing(f.to(l), ScopeKind::pod));
  }
  return others.size();
}

// Every pair of groups is joined, nobody has more ports than p + a - 1 + h, and no two switches are
// more than three apart: all small shapes.
TEST_CASE("dragonfly: exhaustively for small a, h and g") {
  for (std::int64_t a = 1; a <= 4; ++a)
    for (std::int64_t h = 1; h <= 3; ++h)
      for (std::int64_t g = 1; g <= a * h + 1; ++g) {
        const Fabric f =
            make_fabric("{generator: dragonfly, p: 1, a: " + std::to_string(a) +
                        ", h: " + std::to_string(h) + ", g: " + std::to_string(g) + "}");
        CAPTURE(a);
        CAPTURE(h);
        CAPTURE(g);
        const std::int64_t rounds = g > 1 ? a * h / (g - 1) : 0;
        const std::int64_t cables = g * a * (a - 1) / 2 + rounds * g * (g - 1) / 2;
        CHECK(tier_size(f, "router->router") == static_cast<std::size_t>(2 * cables));
        for (const NodeId router : f.role(f.find_role("router")).nodes)
          CHECK(f.out(router).size() <= static_cast<std::size_t>(1 + a - 1 + h));
        for (const ScopeId scope : ids<ScopeId>(f.scopes().size()))
          if (f.scopes()[scope].kind == ScopeKind::pod)
            CHECK(groups_joined(f, scope) == static_cast<std::size_t>(g - 1));
        const auto hops = hops_from(f, f.nics()[0]);
        for (const NodeId nic : f.nics()) {
          CHECK(hops[nic.index()] >= 0);
          CHECK(hops[nic.index()] <= 2 + 3);
        }
      }
}

TEST_CASE("dragonfly: P-19 a Slingshot switch has 64 ports of 200 Gbps") {
  const Fabric f = make_fabric("{generator: dragonfly, g: 545, radix: 64}");
  CHECK(f.nics().size() == 545 * 32 * 16);
  std::int64_t bps = 0;
  for (const LinkId l : f.out(node(f, "router:1000"))) bps += f.rate(l).bps;
  CHECK(bps == 12'800'000'000'000);
  CHECK(f.out(node(f, "router:1000")).size() == 64);  // all global ports of a group are used
}

TEST_CASE("dragonfly: local and global rates") {
  const Fabric f = make_fabric(
      "{generator: dragonfly, p: 2, a: 2, h: 1, g: 3, link: 100 Gbps, local_link: 200 Gbps,"
      " global_link: 300 Gbps}");
  for (const LinkId l : find_tier(f, "router->router")->links) {
    const bool local =
        f.enclosing(f.from(l), ScopeKind::pod) == f.enclosing(f.to(l), ScopeKind::pod);
    CHECK(f.rate(l) == (local ? 200_Gbps : 300_Gbps));
  }
  CHECK(f.rate(find_tier(f, "nic->router")->links[0]) == 100_Gbps);
}

// Distances, sums of distances and cables of all small grids, from the coordinates alone.
TEST_CASE("torus and mesh: exhaustively for small dimensions") {
  for (const bool wrap : {true, false})
    for (int x = 1; x <= 5; ++x)
      for (int y = 1; y <= 4; ++y)
        for (int z = 1; z <= 3; ++z) {
          CAPTURE(wrap);
          CAPTURE(x);
          CAPTURE(y);
          CAPTURE(z);
          const int sizes[] = {x, y, z};
          const Fabric f =
              make_fabric("{generator: torus, gpus_per_host: 1, dimensions: [" + std::to_string(x) +
                          ", " + std::to_string(y) + ", " + std::to_string(z) +
                          "], wrap: " + (wrap ? "true" : "false") + "}");
          const int routers = x * y * z;
          REQUIRE(f.nics().size() == static_cast<std::size_t>(routers));
          int cables = 0;
          for (const int k : sizes) cables += routers / k * (wrap && k > 2 ? k : k - 1);
          const std::size_t tier = cables == 0 ? 0 : tier_size(f, "router->router");
          CHECK(tier == static_cast<std::size_t>(2 * cables));
          for (int from = 0; from < routers; ++from) {
            const auto hops = hops_from(f, f.nics()[static_cast<std::size_t>(from)]);
            bool same = true;
            for (int to = 0; to < routers; ++to) {
              int distance = 0, a = from, b = to;
              for (const int k : sizes) {
                const int apart = std::abs(a % k - b % k);
                distance += wrap ? std::min(apart, k - apart) : apart;
                a /= k, b /= k;
              }
              const int wanted = from == to ? 0 : distance + 2;
              same = same && hops[f.nics()[static_cast<std::size_t>(to)].index()] == wanted;
            }
            CHECK(same);
          }
        }
}

TEST_CASE(
    "torus: the cube of a TPU v4 pod has 64 chips, six links each, and 32 across its middle") {
  const Fabric f =
      make_fabric("{generator: torus, dimensions: [4, 4, 4], gpus_per_host: 1, radix: 7}");
  CHECK(f.gpus().size() == 64);
  for (const NodeId router : f.role(f.find_role("router")).nodes) CHECK(f.out(router).size() == 7);
  int across = 0;
  for (const NodeId router : f.role(f.find_role("router")).nodes)
    for (const LinkId link : f.out(router)) {
      const bool low = f.role_index(router) < 32;
      if (f.role_name(f.to(link)) == "router" && low && f.role_index(f.to(link)) >= 32) ++across;
    }
  CHECK(across == 2 * 16);
}

}  // namespace
}  // namespace weft::model
