#include "route/path_age.hpp"

#include <doctest/doctest.h>

#include "route/test_net.hpp"

namespace weft::route {
namespace {

using namespace testing;

// What a router with this seed does with a probe, there and back.
Path round_trip(Router& router, NodeId a, NodeId b, std::uint16_t port) {
  Path out;
  const bool is_there = router.append_udp_path(a, b, {port, 8'620}, out) &&
                        router.append_udp_path(b, a, {8'620, port}, out);
  return is_there ? out : Path{};
}

struct Tally {
  std::size_t held = 0, old = 0, old_but_same = 0;
};

// Paths learned under `then`, judged under `now`: one that holds is the way of any hash.
void judge(const Fabric& fabric, const State& then, const State& now, Tally& tally) {
  PathAge age(fabric, then, now);
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    Router before = make_router(fabric, {}, seed), after = make_router(fabric, {}, seed);
    before.set_state(then);
    after.set_state(now);
    for (const NodeId a : fabric.nics())
      for (const NodeId b : fabric.nics()) {
        if (a == b) continue;
        for (const std::uint16_t port : {std::uint16_t{50'000}, std::uint16_t{50'017}}) {
          const Path learned = round_trip(before, a, b, port);
          if (learned.empty()) continue;
          const bool is_same = round_trip(after, a, b, port) == learned;
          const bool holds = age.holds(learned);
          if (holds) CHECK(is_same);
          tally.held += holds ? 1 : 0;
          tally.old += holds ? 0 : 1;
          tally.old_but_same += !holds && is_same ? 1 : 0;
        }
      }
  }
}

TEST_CASE("a path that holds is what the router takes, under every failure of a zone") {
  const Fabric fabric =
      make_fabric("{generator: ai_zone, racks: 4, hosts_per_rack: 1, gpus_per_host: 1, spines: 3}");
  std::vector<State> states(1);
  for (const LinkId link : fabric.links()) {
    if (!fabric.on_wire(link) || link > reverse(link)) continue;
    for (const Health health : {Health::down, Health::draining})
      set_health(states.emplace_back(), link, health);
  }
  for (const NodeId node : fabric.nodes())
    if (fabric.is_switch(node)) states.emplace_back().set(node, {.health = Health::down});
  Tally tally;
  for (const State& state : states) {
    judge(fabric, states.front(), state, tally);  // it fails
    judge(fabric, state, states.front(), tally);  // it returns
    Tally same;
    judge(fabric, state, state, same);
    CHECK(same.old == 0);
  }
  // Most ways do not cross what changed; those that are called old by mistake are few.
  CHECK(tally.held > tally.old);
  CHECK(tally.old_but_same < tally.old);
  CHECK(tally.old > 100);
}

TEST_CASE("a path that holds is what the router takes, on random fabrics and states") {
  Rng rng(5);
  Tally tally;
  for (int round = 0; round < 60; ++round) {
    const Fabric fabric = random_fabric(rng);
    judge(fabric, random_state(fabric, rng), random_state(fabric, rng), tally);
  }
  CHECK(tally.held > 0);
  CHECK(tally.old > 0);
}

TEST_CASE("odd paths: inside a host, loops, ends at a switch") {
  const Fabric fabric =
      make_fabric("{generator: ai_zone, racks: 2, hosts_per_rack: 1, gpus_per_host: 1, spines: 2}");
  PathAge age(fabric, {}, {});
  const auto loop = std::vector{link(fabric, "rtsw:0->ctsw:0"), link(fabric, "ctsw:0->rtsw:0")};
  CHECK(!age.holds(loop));
  CHECK(age.holds(std::vector{link(fabric, "rtsw:0->ctsw:0")}));
  CHECK(age.holds({}));
  for (const LinkId one : fabric.links())
    if (!fabric.on_wire(one)) CHECK(age.holds(std::vector{one}));
}

}  // namespace
}  // namespace weft::route
