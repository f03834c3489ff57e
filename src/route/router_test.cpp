// The router against an oracle on random fabrics, under random and changing state.
#include "route/router.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "base/test_approx.hpp"
#include "base/test_effort.hpp"
#include "route/test_net.hpp"

namespace weft::route {
namespace {

using namespace testing;

// Calls visit for every ordered pair of different NICs, and from NICs to switches and back.
template <class Visit>
void for_each_pair(const Fabric& fabric, Visit visit) {
  const auto is_end = [&](NodeId n) {
    return fabric.kind(n) == NodeKind::nic || fabric.is_switch(n);
  };
  for (const NodeId a : fabric.nodes())
    for (const NodeId b : fabric.nodes())
      if (a != b && is_end(a) && is_end(b)) visit(a, b);
}

// What RoCE's scheme is does not matter to other UDP: ports alone choose, among all shortest paths.
TEST_CASE("UDP that is no RoCE takes every shortest live path, by its ports") {
  Rng rng(9);
  for (std::uint64_t round = 0; round < test_effort(60); ++round) {
    const Fabric fabric = random_fabric(rng);
    const State state = round % 3 == 0 ? State{} : random_state(fabric, rng);
    const Oracle oracle(fabric, state);
    const std::uint64_t seed = rng.next();
    Router router = make_router(fabric, {.scheme = round % 2 == 0 ? "ecmp" : "spray"}, seed);
    Router other = make_router(fabric, {.scheme = "e_ecmp", .qps = 16}, seed);
    router.set_state(state);
    other.set_state(state);
    for_each_pair(fabric, [&](NodeId a, NodeId b) {
      const std::vector<Path> all = oracle.paths(a, b);
      const std::set<Path> expected(all.begin(), all.end());
      std::set<Path> used;
      const int draws = all.size() <= 1 ? 2 : 400;
      for (int i = 0; i < draws; ++i) {
        const UdpPorts ports{static_cast<std::uint16_t>(49'152 + 17 * i), 8'620};
        Path path, again{LinkId(0)};
        REQUIRE(router.append_udp_path(a, b, ports, path) == !all.empty());
        REQUIRE(other.append_udp_path(a, b, ports, again) == !all.empty());
        REQUIRE(std::ranges::equal(path, std::span(again).subspan(1)));
        if (!all.empty()) used.insert(path);
      }
      REQUIRE(std::ranges::includes(expected, used));
      if (all.size() <= 12) CHECK(used.size() == expected.size());
    });
  }
}

TEST_CASE("every path is a shortest live one, and every shortest path is used") {
  Rng rng(1);
  std::size_t pairs = 0, unreachable = 0, several = 0;
  for (std::uint64_t round = 0; round < test_effort(150); ++round) {
    const Fabric fabric = random_fabric(rng);
    const State state = round % 3 == 0 ? State{} : random_state(fabric, rng);
    const Oracle oracle(fabric, state);
    Router router = make_router(fabric, {.scheme = "e_ecmp", .qps = 4096}, rng.next());
    router.set_state(state);
    for_each_pair(fabric, [&](NodeId a, NodeId b) {
      const std::vector<Path> all = oracle.paths(a, b);
      ++pairs;
      unreachable += all.empty() ? 1 : 0;
      several += all.size() > 1 ? 1 : 0;
      const std::set<Path> expected(all.begin(), all.end());
      std::set<Path> used;
      const std::uint32_t draws = all.size() <= 1 ? 2 : 400;
      for (std::uint32_t qp = 0; qp < draws; ++qp) {
        std::vector<Hop> hops{{LinkId(0), 0.5}};
        const bool found = router.append_path({a, b, qp}, hops);
        REQUIRE(found == !all.empty());
        REQUIRE(hops.front().link == LinkId(0));
        if (!found) REQUIRE(hops.size() == 1);
        if (found) used.insert(links_of({hops.begin() + 1, hops.end()}));
      }
      REQUIRE(std::ranges::includes(expected, used));
      if (all.size() <= 12) CHECK(used.size() == expected.size());

      Path usable, all_links;
      router.append_usable({a, b}, usable);
      for (const Path& path : all) all_links.insert(all_links.end(), path.begin(), path.end());
      CHECK(std::set(usable.begin(), usable.end()) == std::set(all_links.begin(), all_links.end()));
      CHECK(std::set(usable.begin(), usable.end()).size() == usable.size());
    });
  }
  CHECK(pairs > test_effort(10'000));
  CHECK(unreachable > test_effort(1'000));
  CHECK(several > test_effort(1'000));
}

// Divides a unit of traffic at each node as per-packet hashing would, path by path.
std::map<LinkId, double> sprayed(const Fabric& fabric, const Oracle& oracle, NodeId a, NodeId b,
                                 const std::map<LinkId, double>* weight) {
  const auto next = oracle.next_hops(b);
  std::map<LinkId, double> share;
  for (const Path& path : oracle.paths(a, b)) {
    double chance = 1;
    for (const LinkId l : path) {
      double own = 1, all = 0;
      for (const LinkId other : next.at(fabric.from(l))) {
        const double w = weight == nullptr ? 1 : weight->at(other);
        all += w;
        if (other == l) own = w;
      }
      chance *= own / all;
    }
    for (const LinkId l : path) share[l] += chance;
  }
  return share;
}

void check_spray(const std::vector<Hop>& hops, const std::map<LinkId, double>& expected) {
  CHECK(hops.size() == expected.size());
  for (const Hop& hop : hops) {
    REQUIRE(expected.contains(hop.link));
    CHECK(hop.share == approx(expected.at(hop.link)).epsilon(1e-12));
  }
}

TEST_CASE("spray equals the enumerated walk of single packets") {
  Rng rng(2);
  for (std::uint64_t round = 0; round < test_effort(100); ++round) {
    const Fabric fabric = random_fabric(rng);
    const State state = random_state(fabric, rng);
    const Oracle oracle(fabric, state);
    Router router = make_router(fabric, {.scheme = "spray"});
    router.set_state(state);
    for_each_pair(fabric, [&](NodeId a, NodeId b) {
      std::vector<Hop> hops;
      const bool found = router.append_path({a, b}, hops);
      const auto expected = sprayed(fabric, oracle, a, b, nullptr);
      REQUIRE(found == !expected.empty());
      check_spray(hops, expected);
    });
  }
}

// What each link is worth on shortest paths to `dst`: min(link, what its end can send on).
std::map<LinkId, double> weights(const Fabric& fabric, const Oracle& oracle, NodeId dst) {
  const auto next = oracle.next_hops(dst);
  std::map<LinkId, double> weight;
  const auto weigh = [&](const auto& self, LinkId l) -> double {
    double behind = INFINITY;  // the goal's own links limit nobody's choice
    const NodeId to = fabric.to(l);
    const bool last = to == dst || (!fabric.is_switch(dst) && fabric.to(next.at(to)[0]) == dst);
    if (!last) {
      behind = 0;
      for (const LinkId other : next.at(to)) behind += self(self, other);
    }
    return weight[l] = std::min(oracle.live().bytes_per_s[l.index()], behind);
  };
  for (const auto& [from, links] : next)
    for (const LinkId l : links) weigh(weigh, l);
  return weight;
}

TEST_CASE("weights are the capacity behind a next hop, for spray and for hashing") {
  Rng rng(3);
  for (std::uint64_t round = 0; round < test_effort(100); ++round) {
    const Fabric fabric = random_fabric(rng);
    const State state = random_state(fabric, rng);
    const Oracle oracle(fabric, state);
    Router router = make_router(fabric, {.scheme = "spray", .weighted = true});
    router.set_state(state);
    for_each_pair(fabric, [&](NodeId a, NodeId b) {
      std::vector<Hop> hops;
      if (!router.append_path({a, b}, hops)) return;
      const auto weight = weights(fabric, oracle, b);
      check_spray(hops, sprayed(fabric, oracle, a, b, &weight));
    });
  }
}

// s:1 has two cables to s:3, one of them at half rate; s:2 has one:   nic:0 - s:0 = s:1 =2= s:3 -
// nic:1
//                                                                             \ s:2 -1- /
TEST_CASE("weighted hashing follows the weights") {
  NetBuilder net;
  std::vector<NodeId> s;
  for (int i = 0; i < 4; ++i) s.push_back(net.add_switch());
  const NodeId a = net.add_nic(), b = net.add_nic();
  net.cable(a, s[0]);
  net.cable(b, s[3]);
  net.cable(s[0], s[1], 800_Gbps);
  net.cable(s[0], s[2], 800_Gbps);
  net.cable(s[1], s[3]);
  net.cable(s[1], s[3]);
  net.cable(s[2], s[3]);
  const Fabric fabric = net.freeze();
  Router router = make_router(fabric, {.scheme = "e_ecmp", .qps = 4096, .weighted = true});
  const auto share_through_s1 = [&] {
    int count = 0;
    for (std::uint32_t qp = 0; qp < 4000; ++qp)
      count += fabric.to(path_of(router, {a, b, qp}).at(1)) == s[1] ? 1 : 0;
    return count / 4000.0;
  };
  CHECK(share_through_s1() == approx(2.0 / 3).epsilon(0.03));
  State state;
  state.set(link(fabric, "s:1->s:3#2"), {.rate_factor = 0.5});
  router.set_state(state);
  CHECK(share_through_s1() == approx(1.5 / 2.5).epsilon(0.03));
}

TEST_CASE("a router whose state changed answers like a new one in that state") {
  Rng rng(4);
  for (std::uint64_t round = 0; round < test_effort(60); ++round) {
    const Fabric fabric = random_fabric(rng);
    for (const std::string scheme : {"e_ecmp", "pinned", "spray", "optimal"}) {
      RoutingConfig config{.scheme = scheme, .qps = 16};
      config.weighted = scheme != "pinned" && rng.below(2) == 0;
      Router changed = make_router(fabric, config);
      for (int step = 0; step < 6; ++step) {
        const State state = step == 3 ? State{} : random_state(fabric, rng);
        changed.set_state(state);
        Router fresh = make_router(fabric, config);
        fresh.set_state(state);
        for (const LinkId l : fabric.links()) REQUIRE(changed.capacity(l) == fresh.capacity(l));
        for_each_pair(fabric, [&](NodeId a, NodeId b) {
          for (std::uint32_t qp = 0; qp < 3; ++qp) {
            std::vector<Hop> left, right;
            REQUIRE(changed.append_path({a, b, qp}, left) == fresh.append_path({a, b, qp}, right));
            REQUIRE(left.size() == right.size());
            for (std::size_t i = 0; i < left.size(); ++i) {
              REQUIRE(left[i].share == right[i].share);
              REQUIRE(changed.capacity(left[i].link) == fresh.capacity(right[i].link));
              REQUIRE(
                  std::ranges::equal(changed.members(left[i].link), fresh.members(right[i].link)));
            }
          }
        });
      }
    }
  }
}

TEST_CASE("capacities follow the state as LiveView defines it") {
  Rng rng(5);
  for (int round = 0; round < 50; ++round) {
    const Fabric fabric = random_fabric(rng);
    Router router = make_router(fabric, {});
    for (int step = 0; step < 4; ++step) {
      const State state = random_state(fabric, rng);
      router.set_state(state);
      const model::LiveView live(fabric, state);
      for (const LinkId l : fabric.links())
        CHECK(router.capacity(l) == live.bytes_per_s[l.index()]);
    }
  }
}

TEST_CASE("the same seed gives the same paths, another seed gives others") {
  const Fabric fabric = make_fabric("{generator: ai_zone, racks: 8, spines: 16}");
  const auto all_paths = [&](std::uint64_t seed) {
    Router router = make_router(fabric, {.scheme = "e_ecmp", .qps = 2}, seed);
    Path out;
    for (std::size_t i = 0; i + 17 < fabric.nics().size(); ++i) {
      const Path path = path_of(router, {fabric.nics()[i], fabric.nics()[i + 17], 1});
      out.insert(out.end(), path.begin(), path.end());
    }
    return out;
  };
  CHECK(all_paths(7) == all_paths(7));
  CHECK(all_paths(7) != all_paths(8));
}

TEST_CASE("draining is avoided where another way exists, even a longer one, and used where not") {
  // s:0 - s:1 directly, or over s:2.
  NetBuilder net;
  std::vector<NodeId> s{net.add_switch(), net.add_switch(), net.add_switch()};
  const NodeId a = net.add_nic(), b = net.add_nic();
  net.cable(a, s[0]);
  net.cable(b, s[1]);
  net.cable(s[0], s[1]);
  net.cable(s[0], s[2]);
  net.cable(s[2], s[1]);
  const Fabric fabric = net.freeze();
  Router router = make_router(fabric, {});
  CHECK(path_of(router, {a, b}).size() == 3);
  State state;
  set_health(state, link(fabric, "s:0->s:1"), Health::draining);
  router.set_state(state);
  CHECK(path_of(router, {a, b}).size() == 4);
  set_health(state, link(fabric, "s:0->s:2"), Health::down);
  router.set_state(state);
  CHECK(path_of(router, {a, b}).size() == 3);
  set_health(state, link(fabric, "s:0->s:1"), Health::down);
  router.set_state(state);
  CHECK(path_of(router, {a, b}).empty());
}

TEST_CASE("via: the path passes the switches named, by shortest ways between them") {
  const Fabric fabric = make_fabric("{generator: ai_zone, racks: 4, spines: 4}");
  const NodeId a = fabric.nics()[0], b = fabric.nics()[16];
  for (const std::string scheme : {"ecmp", "e_ecmp", "pinned", "spray", "optimal"}) {
    CAPTURE(scheme);
    Router router = make_router(fabric, {.scheme = scheme});
    const std::vector<NodeId> via{node(fabric, "ctsw:2")};
    CHECK(names(fabric, path_of(router, {a, b, 0, 0, via})) ==
          "nic:0->rtsw:0 rtsw:0->ctsw:2 ctsw:2->rtsw:1 rtsw:1->nic:16");
    Path usable;
    router.append_usable({a, b, 0, 0, via}, usable);
    CHECK(usable.size() == 4);

    // Up, down into another rack, and up again.
    const std::vector<NodeId> detour{node(fabric, "ctsw:1"), node(fabric, "rtsw:3"),
                                     node(fabric, "ctsw:3")};
    CHECK(names(fabric, path_of(router, {a, b, 0, 0, detour})) ==
          "nic:0->rtsw:0 rtsw:0->ctsw:1 ctsw:1->rtsw:3 rtsw:3->ctsw:3 ctsw:3->rtsw:1 "
          "rtsw:1->nic:16");

    // The same link twice: one hop with share 2.
    const std::vector<NodeId> back{node(fabric, "ctsw:1"), node(fabric, "rtsw:0"),
                                   node(fabric, "ctsw:1")};
    std::vector<Hop> hops;
    REQUIRE(router.append_path({a, b, 0, 0, back}, hops));
    REQUIRE(hops.size() == 5);
    CHECK(hops[1].link == link(fabric, "rtsw:0->ctsw:1"));
    CHECK(hops[1].share == 2);

    State state;
    state.set(node(fabric, "ctsw:2"), {.health = Health::down});
    router.set_state(state);
    CHECK(path_of(router, {a, b, 0, 0, via}).empty());
    const std::vector<NodeId> no_switch{fabric.nics()[5]};
    CHECK(path_of(router, {a, b, 0, 0, no_switch}).empty());
  }
}

TEST_CASE("a path takes the latency of its own links, and of the ways inside both hosts") {
  const Fabric fabric = make_fabric(
      "{rate: 400 Gbps, latency: 1 us, nodes: [{role: host, count: 2}, "
      "{role: gpu, count: 2, host: \"host:0..1\"}, {role: nic, count: 2, host: \"host:0..1\"}, "
      "{role: rtsw, count: 2}, {role: ctsw, count: 2}], "
      "links: [{pairs: \"gpu:0..1--nic:0..1\", latency: 20 us, rate: 512 Gbps}, "
      "{pairs: \"nic:0..1--rtsw:0..1\"}, \"rtsw:0..1--ctsw:0\", "
      "{link: \"rtsw:0..1--ctsw:1\", latency: 50 us}]}");
  const NodeId a = fabric.gpus()[0], b = fabric.gpus()[1];
  constexpr double near = 44e-6, far = 142e-6;
  for (const std::string scheme : {"ecmp", "e_ecmp", "spray", "optimal"}) {
    CAPTURE(scheme);
    Router router = make_router(fabric, {.scheme = scheme});
    std::vector<Hop> path;
    REQUIRE(router.append_gpu_path(a, b, 0, 0, path));
    const double latency = router.path_latency_s(a, b, path);
    CHECK(router.present_latency_s(a, b) == latency);
    if (scheme == "spray") CHECK(latency == approx((near + far) / 2));
    if (scheme.contains("ecmp")) CHECK((latency == approx(near) || latency == approx(far)));
    CHECK(router.latency(a, b).seconds() == approx(near));
    CHECK(router.present_latency_s(a, a) == 0);
  }
}

TEST_CASE("via with a choice between its switches hashes it") {
  const Fabric fabric = make_fabric("{generator: ai_zone, racks: 4, spines: 4}");
  Router router = make_router(fabric, {.scheme = "e_ecmp", .qps = 256});
  const std::vector<NodeId> via{node(fabric, "rtsw:3")};
  std::set<Path> used;
  for (std::uint32_t qp = 0; qp < 256; ++qp)
    used.insert(path_of(router, {fabric.nics()[0], fabric.nics()[16], qp, 0, via}));
  CHECK(used.size() == 16);  // 4 ways to rtsw:3, 4 from there
}

TEST_CASE("two NICs on one cable, and NICs of one rack") {
  NetBuilder net;
  const NodeId s = net.add_switch();
  const NodeId a = net.add_nic(), b = net.add_nic(), c = net.add_nic();
  net.cable(a, s);
  net.cable(b, s);
  net.cable(b, c);
  const Fabric fabric = net.freeze();
  Router router = make_router(fabric, {});
  CHECK(names(fabric, path_of(router, {a, b})) == "nic:0->s:0 s:0->nic:1");
  CHECK(names(fabric, path_of(router, {b, c})) == "nic:1->nic:2");
  CHECK(path_of(router, {a, c}).empty());  // NICs do not forward
  CHECK(path_of(router, {a, a}).empty());
  CHECK(router.latency(a, b) == 1_us);
  CHECK(router.latency(a, c) == duration_max);
}

TEST_CASE("HPN: the source port and the ToRs of both planes are chosen by hash") {
  const Fabric fabric = make_fabric("{generator: hpn, segments: 2, hosts_per_segment: 2, aggs: 4}");
  Router router = make_router(fabric, {.scheme = "e_ecmp", .qps = 512});
  const NodeId a = fabric.nics()[0], b = fabric.nics()[16];  // rail 0 of both segments
  std::set<LinkId> first, last;
  std::set<Path> used;
  for (std::uint32_t qp = 0; qp < 512; ++qp) {
    const Path path = path_of(router, {a, b, qp});
    REQUIRE(path.size() == 4);
    used.insert(path);
    first.insert(path.front());
    last.insert(path.back());
  }
  CHECK(first.size() == 2);
  CHECK(last.size() == 2);
  CHECK(used.size() == 8);  // 2 planes x 4 aggs
}

// fe_nic:3 -> rsw -> fsw -> ssw -> fsw -> rsw -> storage_nic:2 -> storage:2
TEST_CASE("the front end: paths to storage hosts stay on it, under every scheme") {
  const Fabric fabric = make_fabric(
      "{generator: ai_zone, racks: 3, spines: 2, gpus_per_host: 2, frontend: {storage_hosts: 3, "
      "storage_rate: 5 GB/s}}");
  const NodeId fe = node(fabric, "fe_nic:3"), storage = node(fabric, "storage:2");
  const NodeId host = fabric.host_of(fe), gpu = fabric.gpus().front();
  std::vector<std::string> schemes = scheme_names();
  std::erase_if(schemes, [](const std::string& scheme) {  // of dragonflies alone
    return scheme == "minimal" || scheme == "valiant" || scheme.starts_with("ugal");
  });
  for (const std::string& scheme : schemes) {
    CAPTURE(scheme);
    Router router = make_router(fabric, {.scheme = scheme});
    for (const auto& [from, to] : {std::pair(fe, storage), std::pair(storage, fe)}) {
      std::vector<Hop> path;
      REQUIRE(router.append_gpu_path(from, to, 0, 0, path));
      const Hop inside = from == fe ? path.back() : path.front();
      CHECK(inside.share == 1);
      CHECK(inside.link ==
            fabric.links_between(from == fe ? node(fabric, "storage_nic:2") : storage,
                                 from == fe ? storage : node(fabric, "storage_nic:2"))[0]);
      CHECK(router.capacity(inside.link) == 5e9);
      for (const Hop& hop : path)
        for (const LinkId l : router.members(hop.link)) {
          CHECK(fabric.role_name(fabric.from(l)) != "rtsw");
          CHECK(fabric.role_name(fabric.to(l)) != "rtsw");
        }
      CHECK(router.latency(from, to) == 3_us);  // six cables
    }
    std::vector<Hop> path;
    CHECK(router.append_gpu_path(host, storage, 0, 0, path));
    CHECK(fabric.from(path.front().link) == host);
    path.clear();
    CHECK_FALSE(router.append_gpu_path(gpu, storage, 0, 0, path));  // by its back-end NIC
    CHECK(path.empty());
    CHECK_FALSE(router.append_path({fe, fabric.nics().front()}, path));
    CHECK(router.append_gpu_path(storage, storage, 0, 0, path));
    CHECK(path.empty());
  }
}

TEST_CASE("a storage host that is down, or has no front-end NIC, is out of reach") {
  const Fabric fabric = make_fabric("{generator: ai_zone, racks: 2, frontend: {storage_hosts: 2}}");
  const NodeId fe = node(fabric, "fe_nic:0"), storage = node(fabric, "storage:1");
  Router router = make_router(fabric, {});
  CHECK(router.check_connected(fe, storage).has_value());
  State state;
  state.set(storage, {.health = Health::down});
  router.set_state(state);
  std::vector<Hop> path;
  CHECK_FALSE(router.append_gpu_path(fe, storage, 0, 0, path));
  CHECK(path.empty());
  CHECK(router.check_connected(fe, storage).error().what ==
        "fe_nic:0 and storage:1 are not connected: every path between them crosses a link or "
        "switch that is down");

  const Fabric bare = make_fabric(
      "{rate: 1 Gbps, nodes: [{role: host}, {role: nic, host: 'host:0'}, {role: nic}, {role: s}], "
      "links: ['host:0--nic:0', 'nic:0..1--s:0']}");
  Router lost = make_router(bare, {});
  CHECK_FALSE(lost.append_gpu_path(node(bare, "host:0"), node(bare, "nic:1"), 0, 0, path));
}

TEST_CASE("unreachable pairs say why") {
  const Fabric fabric = make_fabric("{generator: ai_zone, racks: 2, spines: 2}");
  Router router = make_router(fabric, {});
  CHECK(router.check_connected(fabric.gpus()[3], fabric.gpus()[19]).has_value());
  State state;
  for (const NodeId n : {node(fabric, "ctsw:0"), node(fabric, "ctsw:1")})
    state.set(n, {.health = Health::down});
  router.set_state(state);
  const Status status = router.check_connected(fabric.gpus()[3], fabric.gpus()[19]);
  REQUIRE(!status.has_value());
  CHECK(status.error().text() ==
        "gpu:3 and gpu:19 are not connected: every path between them crosses a link or switch that "
        "is down; restore a link or switch, or move the traffic");

  NetBuilder net;
  const NodeId a = net.add_nic(), b = net.add_nic();
  net.cable(a, net.add_switch());
  net.cable(b, net.add_switch());
  const Fabric islands = net.freeze();
  Router lost = make_router(islands, {});
  CHECK(lost.check_connected(a, b).error().what ==
        "nic:0 and nic:1 are not connected: no cables connect their NICs, directly or through "
        "switches");
}

}  // namespace
}  // namespace weft::route
