#include "route/fib.hpp"

#include <doctest/doctest.h>

#include <array>

#include "route/next_hops.hpp"
#include "route/test_net.hpp"

namespace weft::route {
namespace {

using namespace testing;

Fib make_fib(const Fabric& fabric, const State& state, std::span<const NodeId> ends) {
  auto fib = Fib::build(fabric, state, ends);
  REQUIRE_MESSAGE(fib.has_value(), (fib ? "" : fib.error().text()));
  return *std::move(fib);
}

std::vector<NodeId> ends_of(const Fabric& fabric) {
  std::vector<NodeId> ends;
  for (const NodeId n : fabric.nodes())
    if (fabric.is_switch(n) || fabric.kind(n) == NodeKind::nic) ends.push_back(n);
  return ends;
}

Path copy_of(std::span<const LinkId> links) { return {links.begin(), links.end()}; }

// Every cell against NextHops, between `count` ends drawn from all.
void check_against_next_hops(const Fabric& fabric, const State& state, Rng& rng,
                             std::size_t count) {
  std::vector<NodeId> ends = ends_of(fabric);
  rng.shuffle(std::span(ends));
  ends.resize(std::min(ends.size(), count));
  const Fib fib = make_fib(fabric, state, ends);
  LiveLinks live(fabric);
  live.set_state(state);
  NextHops next_hops(fabric, live, Weighting::equal);
  std::size_t wrong = 0;
  for (const NodeId end : ends) {
    const Goal goal = next_hops.goal(end);
    std::vector<NodeId> places = ends;
    for (const NodeId n : fabric.nodes())
      if (fabric.is_switch(n)) places.push_back(n);
    for (const NodeId at : places)
      if (at != end &&
          copy_of(fib.next(at, fib.target(end))) != copy_of(next_hops.next(at, goal).links))
        ++wrong;
  }
  CHECK(wrong == 0);
}

State some_down(const Fabric& fabric, Rng& rng, std::uint64_t one_in) {
  State state;
  for (const LinkId l : fabric.links()) {
    const std::uint64_t draw = rng.below(one_in);
    if (draw == 0) state.set(l, {.health = Health::down});
    if (draw == 1) state.set(l, {.health = Health::draining});
  }
  for (const NodeId n : fabric.nodes())
    if (fabric.is_switch(n) && rng.below(2 * one_in) == 0)
      state.set(n, {.health = rng.below(2) == 0 ? Health::down : Health::draining});
  return state;
}

constexpr std::array<std::string_view, 9> generators{
    "{generator: ai_zone, racks: 6, spines: 4}",
    "{generator: ai_zone, racks: 3, spines: 2, uplinks_per_spine: 3}",
    "{generator: three_tier, pods: 2, racks: 4, ctsws: 4, atsws: 2}",
    "{generator: hpn, segments: 2, hosts_per_segment: 4, aggs: 4}",
    "{generator: fat_tree, k: 4}",
    "{generator: rail_optimized, groups: 2, hosts_per_group: 2, spines: 4}",
    "{generator: rail_only, hosts: 4}",
    "{generator: multi_plane, planes: 4, racks: 3, spines: 2}",
    "{generator: dragonfly, p: 2, a: 4, h: 2, g: 9, gpus_per_host: 2}",
};

TEST_CASE("fib: equal to the next hops of the router's search, on every generator") {
  Rng rng(1);
  for (const std::string_view yaml : generators) {
    CAPTURE(yaml);
    const Fabric fabric = make_fabric(yaml);
    check_against_next_hops(fabric, {}, rng, 1000);
    for (const std::uint64_t one_in : {6u, 12u, 50u, 200u}) {
      CAPTURE(one_in);
      check_against_next_hops(fabric, some_down(fabric, rng, one_in), rng, 80);
    }
  }
}

TEST_CASE("fib: equal to exhaustive search on random graphs, NICs cabled to each other too") {
  Rng rng(2);
  for (int round = 0; round < 300; ++round) {
    CAPTURE(round);
    const Fabric fabric = random_fabric(rng);
    const State state = round % 3 == 0 ? State{} : random_state(fabric, rng);
    const std::vector<NodeId> ends = ends_of(fabric);
    const Fib fib = make_fib(fabric, state, ends);
    const Oracle oracle(fabric, state);
    for (const NodeId end : ends) {
      auto expected = oracle.next_hops(end);
      for (const NodeId at : ends) {
        if (at == end) continue;
        Path links = copy_of(fib.next(at, fib.target(end)));
        std::ranges::sort(links);
        CHECK(links == expected[at]);
      }
    }
  }
}

// All links that packets from `src` to `dst` may cross.
Path usable_by(const Fabric& fabric, const Fib& fib, NodeId src, NodeId dst) {
  std::set<NodeId> seen{src};
  std::vector<NodeId> queue{src};
  Path links;
  for (std::size_t i = 0; i < queue.size(); ++i)
    for (const LinkId l : fib.next(queue[i], fib.target(dst))) {
      links.push_back(l);
      if (fabric.to(l) != dst && seen.insert(fabric.to(l)).second) queue.push_back(fabric.to(l));
    }
  std::ranges::sort(links);
  return links;
}

TEST_CASE("fib: packets may cross what the router says that streams may") {
  Rng rng(3);
  for (const std::string_view yaml : generators) {
    CAPTURE(yaml);
    const Fabric fabric = make_fabric(yaml);
    for (const State& state : {State{}, some_down(fabric, rng, 20)}) {
      const Fib fib = make_fib(fabric, state, fabric.nics());
      Router router = make_router(fabric, {.scheme = "spray"});
      router.set_state(state);
      for (int i = 0; i < 200; ++i) {
        const auto nic = [&] { return fabric.nics()[rng.below(fabric.nics().size())]; };
        const NodeId src = nic(), dst = nic();
        if (src == dst) continue;
        std::vector<Hop> path;
        Path usable;
        if (router.append_path({src, dst}, path)) router.append_usable({src, dst}, usable);
        CHECK(usable_by(fabric, fib, src, dst) == usable);
      }
    }
  }
}

TEST_CASE("fib: what was not asked for, and what cannot be reached") {
  const Fabric fabric = make_fabric("{generator: rail_only, hosts: 2}");
  const auto nics = fabric.nics();
  const std::vector<NodeId> ends{nics[0], nics[1], nics[8], nics[0]};
  const Fib fib = make_fib(fabric, {}, ends);
  CHECK(fib.target(nics[2]) == Fib::no_target);
  CHECK(fib.target(nics[0]) != fib.target(nics[8]));
  CHECK(fib.next(nics[0], fib.target(nics[8])).size() == 1);  // one rail
  CHECK(fib.next(nics[0], fib.target(nics[1])).empty());      // two rails
  CHECK(fib.next(nics[2], fib.target(nics[0])).empty());      // no end
  CHECK(fib.next(fabric.gpus()[0], fib.target(nics[0])).empty());
  State state;
  state.set(nics[8], {.health = Health::down});
  const Fib after = make_fib(fabric, state, ends);
  CHECK(after.next(nics[0], after.target(nics[8])).empty());
  CHECK(make_fib(fabric, {}, {}).bytes() > 0);
}

//   s0 -- s1 -- nic x 70,000
TEST_CASE("fib: more NICs on one switch than a column numbers") {
  NetBuilder net;
  const NodeId s0 = net.add_switch(), s1 = net.add_switch();
  net.cable(s0, s1);
  for (int i = 0; i < 70'000; ++i) net.cable(s1, net.add_nic());
  const Fabric fabric = net.freeze();
  const Fib fib = make_fib(fabric, {}, fabric.nics());
  for (const std::size_t i : {0u, 1u, 65'535u, 65'536u, 69'999u}) {
    const auto last = fib.next(s1, fib.target(fabric.nics()[i]));
    REQUIRE(last.size() == 1);
    CHECK(fabric.to(last[0]) == fabric.nics()[i]);
    CHECK(fib.next(s0, fib.target(fabric.nics()[i])).size() == 1);
  }
}

// One switch with 300 neighbours on the way to 300 others, each by another set of them: lists too
// long for places in single words.
TEST_CASE("fib: places of lists are counted in larger units where a row is long") {
  NetBuilder net;
  Rng rng(4);
  const NodeId root = net.add_switch();
  std::vector<NodeId> middle, leaves;
  for (int i = 0; i < 300; ++i) net.cable(root, middle.emplace_back(net.add_switch()));
  for (int i = 0; i < 300; ++i) {
    leaves.push_back(net.add_switch());
    for (const NodeId m : middle)
      if (rng.below(2) == 0) net.cable(m, leaves.back());
  }
  const Fabric fabric = net.freeze();
  const Fib fib = make_fib(fabric, {}, leaves);
  for (const NodeId leaf : leaves) {
    Path expected;
    std::set<NodeId> above;
    for (const LinkId l : fabric.out(leaf)) above.insert(fabric.to(l));
    for (const LinkId l : fabric.out(root))
      if (above.contains(fabric.to(l))) expected.push_back(l);
    CHECK(copy_of(fib.next(root, fib.target(leaf))) == expected);
  }
}

TEST_CASE("fib: a fat tree of 8,192 NICs takes less than 4 MB") {
  const Fabric fabric = make_fabric("{generator: fat_tree, k: 32}");
  REQUIRE(fabric.nics().size() == 8192);
  const Fib fib = make_fib(fabric, {}, fabric.nics());
  CHECK(fib.bytes() < 4'000'000);
}

}  // namespace
}  // namespace weft::route
