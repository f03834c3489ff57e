// Path pinning and optimal pools, on fabrics small enough to draw.
#include <doctest/doctest.h>

#include "base/test_approx.hpp"
#include "route/test_net.hpp"

namespace weft::route {
namespace {

using namespace testing;

// Streams per link when NIC i of each rack sends to NIC i of the rack `shift` further on.
std::map<LinkId, int> rail_shift(Router& router, std::size_t shift) {
  const Fabric& fabric = router.fabric();
  const std::size_t count = fabric.nics().size();
  std::map<LinkId, int> load;
  for (std::size_t i = 0; i < count; ++i)
    for (const LinkId l :
         path_of(router, {fabric.nics()[i], fabric.nics()[(i + 16 * shift) % count]}))
      ++load[l];
  return load;
}

TEST_CASE("pinned: whole racks load every link once") {
  const Fabric fabric = make_fabric("{generator: ai_zone, racks: 6, spines: 16}");
  Router router = make_router(fabric, {.scheme = "pinned"});
  CHECK(router.stream_count() == 1);
  for (std::size_t shift = 1; shift < 6; ++shift) {
    const std::map<LinkId, int> load = rail_shift(router, shift);
    CHECK(load.size() == 6 * 16 * 4);
    for (const auto& [l, count] : load) CHECK(count == 1);
  }
}

TEST_CASE("pinned: parallel uplinks are used once each, both ways") {
  const Fabric fabric =
      make_fabric("{generator: ai_zone, racks: 4, spines: 8, uplinks_per_spine: 2}");
  Router router = make_router(fabric, {.scheme = "pinned"});
  for (const auto& [l, count] : rail_shift(router, 1)) CHECK(count == 1);
}

TEST_CASE("pinned: the uplink is the destination's slice, and a failure moves only its own") {
  const Fabric fabric = make_fabric("{generator: ai_zone, racks: 3, spines: 18}");
  Router router = make_router(fabric, {.scheme = "pinned"});
  const auto spine = [&](std::size_t slice) {
    const Path path = path_of(router, {fabric.nics()[7], fabric.nics()[16 + slice]});
    return fabric.role_index(fabric.to(path.at(1)));
  };
  for (std::size_t slice = 0; slice < 16; ++slice) CHECK(spine(slice) == slice);
  State state;
  state.set(node(fabric, "ctsw:5"), {.health = Health::down});
  state.set(node(fabric, "ctsw:6"), {.health = Health::down});
  router.set_state(state);
  for (std::size_t slice = 0; slice < 16; ++slice)
    CHECK(spine(slice) == (slice == 5 || slice == 6 ? 7 : slice));
  router.set_state({});
  CHECK(spine(5) == 5);
}

TEST_CASE("pinned in three tiers: whole pods spread evenly at both levels") {
  const Fabric fabric =
      make_fabric("{generator: three_tier, pods: 2, racks: 8, ctsws: 16, atsws: 4}");
  Router router = make_router(fabric, {.scheme = "pinned"});
  std::map<std::string, std::set<int>> loads;
  for (const auto& [l, count] : rail_shift(router, 8))
    loads[fabric.tiers()[fabric.tier_id(l)].name].insert(count);
  CHECK(loads["rtsw->ctsw"] == std::set{1});
  CHECK(loads["ctsw->atsw"] == std::set{2});  // 8 racks over 4 ATSWs
  CHECK(loads["atsw->ctsw"] == std::set{2});
  CHECK(loads["ctsw->rtsw"] == std::set{1});
}

TEST_CASE("pinned in HPN: the port and the uplink both follow the slice") {
  const Fabric fabric = make_fabric("{generator: hpn, segments: 2, hosts_per_segment: 8, aggs: 4}");
  Router router = make_router(fabric, {.scheme = "pinned"});
  std::map<LinkId, int> load;
  for (std::size_t i = 0; i < 64; ++i)
    for (const LinkId l : path_of(router, {fabric.nics()[i], fabric.nics()[64 + i]})) ++load[l];
  for (const auto& [l, count] : load) CHECK(count == 1);  // 8 hosts over 2 planes x 4 aggs
}

//      s:1
//    /     \            two flows into each other's racks share the pools of their direction
// s:0       s:3
//    \     /
//      s:2
TEST_CASE("optimal: a layer is one pool, equal sets are one") {
  const Fabric fabric = make_fabric("{generator: ai_zone, racks: 3, spines: 4}");
  Router router = make_router(fabric, {.scheme = "optimal"});
  const std::size_t links = fabric.link_count();
  CHECK(router.resource_count() == links);
  const auto path = [&](std::size_t a, std::size_t b) {
    return path_of(router, {fabric.nics()[a], fabric.nics()[b]});
  };
  const Path first = path(0, 16);
  REQUIRE(first.size() == 4);
  CHECK(first[0] == link(fabric, "nic:0->rtsw:0"));
  CHECK(first[3] == link(fabric, "rtsw:1->nic:16"));
  CHECK(first[1].index() >= links);
  CHECK(router.resource_count() == links + 2);
  CHECK(router.members(first[1]).size() == 4);
  for (const LinkId l : router.members(first[1])) {
    CHECK(fabric.name(fabric.from(l)) == "rtsw:0");
    REQUIRE(router.members(l).size() == 1);
    CHECK(router.members(l)[0] == l);
  }
  CHECK(router.capacity(first[1]) == 4 * 50e9);

  const Path second = path(1, 17);  // same racks
  CHECK(second[1] == first[1]);
  CHECK(second[2] == first[2]);
  const Path third = path(2, 32);  // another destination rack: the way up is shared
  CHECK(third[1] == first[1]);
  CHECK(third[2] != first[2]);
  const Path same_rack = path(0, 1);
  CHECK(same_rack.size() == 2);
  CHECK(router.resource_count() == links + 3);

  State state;
  state.set(link(fabric, "rtsw:0->ctsw:1"), {.rate_factor = 0.5});
  state.set(node(fabric, "ctsw:3"), {.health = Health::down});
  router.set_state(state);
  CHECK(router.capacity(first[1]) == 2.5 * 50e9);  // of the old set
  const Path after = path(0, 16);
  CHECK(router.members(after[1]).size() == 3);
  CHECK(router.capacity(after[1]) == 2.5 * 50e9);
  CHECK(router.capacity(after[2]) == 3 * 50e9);
}

TEST_CASE("optimal: pools are the layers of all shortest paths, on random fabrics") {
  Rng rng(11);
  for (int round = 0; round < 60; ++round) {
    const Fabric fabric = random_fabric(rng);
    const State state = random_state(fabric, rng);
    const Oracle oracle(fabric, state);
    Router router = make_router(fabric, {.scheme = "optimal"});
    router.set_state(state);
    for (const NodeId a : fabric.nics())
      for (const NodeId b : fabric.nics()) {
        if (a == b) continue;
        std::vector<std::set<LinkId>> layers;
        for (const Path& path : oracle.paths(a, b)) {
          layers.resize(path.size());
          for (std::size_t i = 0; i < path.size(); ++i) layers[i].insert(path[i]);
        }
        std::vector<Hop> hops;
        REQUIRE(router.append_path({a, b}, hops) == !layers.empty());
        REQUIRE(hops.size() == layers.size());
        for (std::size_t i = 0; i < hops.size(); ++i) {
          const auto members = router.members(hops[i].link);
          CHECK(hops[i].share == 1);
          CHECK(std::set(members.begin(), members.end()) == layers[i]);
          double sum = 0;
          for (const LinkId l : members) sum += oracle.live().bytes_per_s[l.index()];
          CHECK(router.capacity(hops[i].link) == sum);
        }
      }
  }
}

TEST_CASE("spray: shares of each layer sum to 1") {
  const Fabric fabric =
      make_fabric("{generator: three_tier, pods: 2, racks: 4, ctsws: 4, atsws: 3}");
  Router router = make_router(fabric, {.scheme = "spray"});
  std::vector<Hop> hops;
  REQUIRE(router.append_path({fabric.nics()[0], fabric.nics()[64]}, hops));
  CHECK(hops.size() == 1 + 4 + 12 + 12 + 4 + 1);
  std::map<std::string, double> sums;
  for (const Hop& hop : hops) sums[fabric.tiers()[fabric.tier_id(hop.link)].name] += hop.share;
  CHECK(sums.size() == 6);
  for (const auto& [tier, sum] : sums) CHECK(sum == approx(1).epsilon(1e-12));
}

}  // namespace
}  // namespace weft::route
