#include <doctest/doctest.h>

#include <map>
#include <memory>

#include "route/test_net.hpp"

namespace weft::route {
namespace {

using namespace testing;

// NIC i of each rack sends to NIC i of the rack `shift` further: a rack's uplinks all carry as
// many.
std::vector<Demand> permutation(const Fabric& fabric, std::size_t per_rack, std::size_t shift) {
  std::vector<Demand> out;
  const std::size_t n = fabric.nics().size();
  for (std::size_t i = 0; i < n; ++i)
    out.push_back({fabric.nics()[i], fabric.nics()[(i + shift * per_rack) % n], 1e9});
  return out;
}

// The most streams on a link.
int fullest(Router& router, std::span<const Demand> demands) {
  std::map<LinkId, int> streams;
  int most = 0;
  for (const Demand& d : demands)
    for (std::uint32_t qp = 0; qp < router.stream_count(); ++qp)
      for (const LinkId l : path_of(router, {d.from, d.to, qp}))
        most = std::max(most, ++streams[l]);
  return most;
}

TEST_CASE(
    "te: what is declared together shares links evenly, with several QPs and parallel cables") {
  const Fabric fabric = make_fabric("{generator: ai_zone, racks: 8, spines: 16}");
  const Fabric pairs =
      make_fabric("{generator: ai_zone, racks: 8, spines: 8, uplinks_per_spine: 2}");
  for (const Fabric* zone : {&fabric, &pairs})
    for (const std::uint32_t qps : {1u, 3u}) {
      const std::vector<Demand> demands = permutation(*zone, 16, 3);
      Router te = make_router(*zone, {.scheme = "te", .qps = qps});
      Router hashed = make_router(*zone, {.scheme = "e_ecmp", .qps = qps});
      CHECK(fullest(te, demands) == fullest(hashed, demands));  // not declared: as e_ecmp
      te.declare(demands);
      CHECK(fullest(te, demands) == static_cast<int>(qps));  // that of a NIC
      CHECK(fullest(hashed, demands) > static_cast<int>(qps));
    }
}

TEST_CASE("te: paths are those of the network, and flows inside a rack have one") {
  const Fabric fabric = make_fabric("{generator: ai_zone, racks: 4, spines: 4}");
  Router te = make_router(fabric, {.scheme = "te"});
  const std::vector<Demand> demands = permutation(fabric, 16, 1);
  te.declare(demands);
  const Oracle oracle(fabric, {});
  for (const Demand& d : demands) {
    const std::vector<Path> paths = oracle.paths(d.from, d.to);
    CHECK(std::ranges::find(paths, path_of(te, {d.from, d.to})) != paths.end());
  }
  // QPs that nobody declared, up to those of other pairs.
  Router hashed = make_router(fabric, {.scheme = "e_ecmp"});
  for (std::uint32_t qp = 1; qp < 100; ++qp) {
    const Stream stream{fabric.nics()[0], fabric.nics()[20], qp};
    CHECK(path_of(te, stream) == path_of(hashed, stream));
  }
  const std::vector<Demand> inner{{fabric.nics()[0], fabric.nics()[9], 1}};
  te.declare(inner);
  CHECK(path_of(te, {fabric.nics()[0], fabric.nics()[9]}).size() == 2);
}

TEST_CASE("te: a failure that the controller does not see yet goes by hash, then by a new plan") {
  const Fabric fabric = make_fabric("{generator: ai_zone, racks: 8, spines: 18}");
  const std::vector<Demand> demands = permutation(fabric, 16, 3);
  Router te = make_router(fabric, {.scheme = "te"});
  Router hashed = make_router(fabric, {.scheme = "e_ecmp"});
  te.declare(demands);
  std::vector<Path> before;
  for (const Demand& d : demands) before.push_back(path_of(te, {d.from, d.to}));

  State failed;
  failed.set(node(fabric, "ctsw:3"), {.health = Health::down});
  State late = failed;
  late.set_seen(std::make_shared<const State>());
  te.set_state(late);
  hashed.set_state(failed);
  int hit = 0;
  for (std::size_t i = 0; i < demands.size(); ++i) {
    const Stream stream{demands[i].from, demands[i].to};
    const bool is_hit = fabric.to(before[i][1]) == node(fabric, "ctsw:3");
    hit += is_hit ? 1 : 0;
    CHECK(path_of(te, stream) == (is_hit ? path_of(hashed, stream) : before[i]));
  }
  CHECK(hit > 0);
  CHECK(fullest(te, demands) > 1);
  te.set_state(failed);
  CHECK(fullest(te, demands) == 1);  // 16 flows of a rack on 17 spines
  for (const Demand& d : demands)
    for (const LinkId l : path_of(te, {d.from, d.to}))
      CHECK(fabric.to(l) != node(fabric, "ctsw:3"));
}

TEST_CASE("te: pairs of QPs take one path, and two where a lost uplink makes that better") {
  const Fabric fabric =
      make_fabric("{generator: ai_zone, racks: 6, hosts_per_rack: 1, gpus_per_host: 4, spines: 4}");
  const std::vector<Demand> demands = permutation(fabric, 4, 1);
  Router te = make_router(fabric, {.scheme = "te", .qps = 2, .te_split = true});
  te.declare(demands);
  const auto divided = [&] {
    return std::ranges::count_if(demands, [&](const Demand& d) {
      return path_of(te, {d.from, d.to, 0}) != path_of(te, {d.from, d.to, 1});
    });
  };
  CHECK(divided() == 0);
  CHECK(fullest(te, demands) == 2);  // a whole flow
  const std::vector<LinkId> crossed = path_of(te, {demands[0].from, demands[0].to, 0});
  State failed;
  for (const LinkId link : {crossed[1], reverse(crossed[1])})
    failed.set(link, {.health = Health::down});
  te.set_state(failed);
  CHECK(fullest(te, demands) == 3);  // 4 flows on 3 uplinks: 8 halves, where whole ones make 4
  CHECK(divided() > 0);
  CHECK(divided() <= 8);
  CHECK(te.controller_report().find(" pairs of QPs are divided") != std::string::npos);
  te.set_state({});
  CHECK(divided() == 0);
  CHECK(fullest(te, demands) == 2);
}

TEST_CASE("te: a link that is repaired unseen stays unused; one that drains is left") {
  const Fabric fabric = make_fabric("{generator: ai_zone, racks: 4, spines: 2}");
  const std::vector<Demand> demands = permutation(fabric, 16, 1);
  Router te = make_router(fabric, {.scheme = "te"});
  te.declare(demands);
  CHECK(fullest(te, demands) == 8);
  for (const Health health : {Health::down, Health::draining}) {
    State bad;
    bad.set(node(fabric, "ctsw:0"), {.health = health});
    te.set_state(bad);
    CHECK(fullest(te, demands) == 16);
    State repaired;
    repaired.set_seen(std::make_shared<const State>(bad));
    te.set_state(repaired);
    CHECK(fullest(te, demands) == 16);
    te.set_state({});
    CHECK(fullest(te, demands) < 16);  // the search spreads them again
  }
}

TEST_CASE("te: fabrics that are no two-tier Clos are refused by name") {
  const auto why = [](const std::string& yaml) {
    const Fabric fabric = make_fabric(yaml);
    const auto router = Router::create(fabric, {.scheme = "te"}, 1);
    return router ? std::string() : router.error().text();
  };
  CHECK(why("{generator: fat_tree, k: 4}").find("to another tier") != std::string::npos);
  CHECK(why("{generator: torus, dimensions: [2, 2]}").find("has NICs, and so has a switch") !=
        std::string::npos);
  CHECK(why("{generator: hpn, segments: 2}").find("needs one port") != std::string::npos);
  CHECK(why("{generator: ai_zone, racks: 1}").empty());
  CHECK(why("{generator: ai_zone, racks: 4, frontend: {}}").empty());
}

}  // namespace
}  // namespace weft::route
