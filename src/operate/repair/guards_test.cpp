#include "operate/repair/guards.hpp"

#include <cmath>

#include "base/test_approx.hpp"
#include "operate/repair/test_kit.hpp"

namespace weft::operate::repair {
namespace {

using namespace testing;

// A fabric and what is out of service in it.
struct Scene {
  explicit Scene(const model::Fabric& f, std::string_view guards = "{}")
      : fabric(f), reserve(f), policy(policy_with(fmt::format("{{guards: {}}}", guards)).guards) {}

  const model::Fabric& fabric;
  Reserve reserve;
  GuardPolicy policy;
  std::vector<std::string> held, suspected;

  Situation now(double seconds = 0) const {
    Situation s{.fabric = &fabric, .reserve = &reserve, .policy = &policy, .now = at(seconds)};
    for (const std::string& name : held) s.held.push_back(part(fabric, name));
    for (const std::string& name : suspected) s.suspected.push_back(part(fabric, name));
    return s;
  }
};

std::string why(const Verdict& verdict) { return verdict ? verdict->why : "allowed"; }

const model::Fabric& small() {
  static const model::Fabric fabric = small_zone();
  return fabric;
}

TEST_CASE("kill switch") {
  Situation s = Scene(small()).now();
  CHECK_FALSE(guard_kill_switch(s).has_value());
  s.is_killed = true;
  CHECK(contains(why(guard_kill_switch(s)), "kill switch"));
}

TEST_CASE("a freeze holds from its first instant, and not at its last") {
  const Scene scene(small());
  for (const auto& [t, is_frozen] :
       std::vector<std::pair<double, bool>>{{9, false}, {10, true}, {19, true}, {20, false}}) {
    Situation s = scene.now(t);
    s.freezes = {{at(10), at(20), "holidays", "ann"}};
    const Verdict no = guard_freeze(s);
    CHECK(no.has_value() == is_frozen);
    if (no) CHECK(contains(no->why, "holidays"));
    if (no) CHECK(no->until == at(20));
  }
}

TEST_CASE("rate: drains of the last hour, and when the next one fits") {
  Scene scene(small(), "{drains_per_hour: 2}");
  Situation s = scene.now(3700);
  s.drains = {{at(50), {}}, {at(200), {}}};
  CHECK_FALSE(guard_rate(s).has_value());
  s.drains = {{at(150), {}}, {at(200), {}}};
  CHECK(why(guard_rate(s)) == "2 drains within the last hour; the limit is 2");
  CHECK(guard_rate(s)->until == at(3750));
  scene.policy.drains_per_hour = 0;
  CHECK(guard_rate(scene.now()).has_value());
}

TEST_CASE("blast radius: in all, by zone, rack and role") {
  Scene scene(small(), "{total: 3, zone: 2, rack: 1, role: 2}");
  const auto ask = [&](std::string_view name) {
    return why(guard_blast_radius(scene.now(), part(small(), name)));
  };
  CHECK(ask("rtsw:0--ctsw:0") == "allowed");
  scene.held = {"rtsw:0--ctsw:1"};
  CHECK(contains(ask("rtsw:0--ctsw:0"), "1 component of rack:0 already out; the limit is 1"));
  CHECK(ask("rtsw:1--ctsw:0") == "allowed");
  // A spine stands in no rack; the part itself never counts.
  CHECK(ask("ctsw:0") == "allowed");
  CHECK(ask("rtsw:0--ctsw:1") == "allowed");
  scene.held.emplace_back("rtsw:1--ctsw:1");
  CHECK(contains(ask("rtsw:2--ctsw:0"), "2 components of zone:0"));
  scene.policy.zone_max = 9;
  CHECK(contains(ask("rtsw:2--ctsw:0"), "2 components of role ctsw--rtsw"));
  CHECK(ask("ctsw:0") == "allowed");
  scene.held.emplace_back("ctsw:3");
  CHECK(contains(ask("ctsw:0"), "3 components of the fabric"));
}

TEST_CASE("capacity: what is held, suspected or asked for counts as gone") {
  Scene scene(small());  // three of four uplinks stay
  const auto ask = [&](std::string_view name) {
    return why(guard_capacity(scene.now(), part(small(), name)));
  };
  CHECK(ask("rtsw:0--ctsw:0") == "allowed");
  CHECK(ask("ctsw:0") == "allowed");
  scene.suspected = {"rtsw:0--ctsw:1"};
  CHECK(ask("rtsw:0--ctsw:0") ==
        "without rtsw:0--ctsw:0 rtsw:0 would keep 800 of 1600 Gbps upwards (2 of 4 cables), but "
        "needs 1200; 1 already counts as lost");
  CHECK(ask("rtsw:1--ctsw:0") == "allowed");
  CHECK(contains(ask("ctsw:0"), "rtsw:0 would keep 800"));
  // It is gone already: nothing is lost, and nothing is lost for other racks either.
  CHECK(ask("rtsw:0--ctsw:1") == "allowed");
  CHECK(ask("ctsw:1") == "allowed");
  scene.suspected.clear();
  scene.held = {"ctsw:1"};
  CHECK(contains(ask("rtsw:0--ctsw:0"), "rtsw:0 would keep 800"));
  CHECK(ask("rtsw:0--ctsw:1") == "allowed");
}

TEST_CASE("capacity: a demand of what the NICs can send is kept where the fabric has it") {
  // 18 uplinks over 16 NICs: two may go, a third not.
  static const model::Fabric zone = make_fabric(
      "{generator: ai_zone, racks: 2, hosts_per_rack: 2, gpus_per_host: 8, spines: 18, link: 400 "
      "Gbps}");
  Scene scene(zone, "{demand_share: 1}");
  scene.held = {"ctsw:0"};
  CHECK_FALSE(guard_capacity(scene.now(), part(zone, "ctsw:1")).has_value());
  scene.held.emplace_back("ctsw:1");
  CHECK(contains(why(guard_capacity(scene.now(), part(zone, "ctsw:2"))), "but needs 6400"));
  scene.policy.demand_share = 0;
  CHECK_FALSE(guard_capacity(scene.now(), part(zone, "ctsw:2")).has_value());
}

//  core:0 core:1      an aggregation switch that has lost half of its way up carries half
//    agg:0 agg:1
//    tor:0 ... of each pod
TEST_CASE("capacity: lost ways further up are lost for the racks below") {
  static const model::Fabric tree = make_fabric("{generator: fat_tree, k: 4, link: 400 Gbps}");
  const Reserve reserve(tree);
  Gone gone(tree);
  const auto share = [&](std::string_view name) {
    for (const Uplinks& row : reserve.uplinks(gone))
      if (row.name == name) return row.share();
    FAIL(name);
    return 0.0;
  };
  const model::NodeId core = tree.role(tree.find_role("core")).nodes.front();
  const model::NodeId edge = tree.role(tree.find_role("edge")).nodes.front();
  CHECK(share(tree.name(edge)) == 1);
  gone.add(model::entity(core));
  CHECK(share(tree.name(edge)) == approx(0.75));
}

TEST_CASE("capacity: each plane keeps its share of a rack's uplinks") {
  static const model::Fabric planes = make_fabric(
      "{generator: multi_plane, planes: 4, racks: 3, hosts_per_rack: 2, gpus_per_host: 2, link: "
      "800 Gbps}");
  Scene scene(planes, "{rack_share: 0, plane_share: 0.6}");
  // Of which cables, and how many, is the generator's business: take them one by one.
  const model::NodeId leaf = planes.to(planes.out(planes.nics()[0]).back());
  REQUIRE(planes.is_switch(leaf));
  std::string refused = "allowed";
  for (const model::LinkId up : planes.out(leaf)) {
    if (!planes.is_switch(planes.to(up))) continue;
    const Entity cable = model::entity(model::cable_of(up));
    refused = why(guard_capacity(scene.now(), cable));
    if (refused != "allowed") break;
    scene.held.push_back(planes.name(model::cable_of(up)));
  }
  CHECK(contains(refused, "in plane"));
}

TEST_CASE("isolation: nobody loses the last way, but who had none does not count") {
  Scene scene(small());
  const auto ask = [&](std::string_view name) {
    return why(guard_isolation(scene.now(), part(small(), name)));
  };
  CHECK(ask("ctsw:0") == "allowed");
  CHECK(contains(ask("rtsw:0"), "4 NICs of 2 hosts would have no path into the network"));
  scene.suspected = {"ctsw:0", "ctsw:1", "ctsw:2"};
  CHECK(contains(ask("ctsw:3"), "16 NICs of 8 hosts"));
  CHECK(contains(ask("rtsw:0--ctsw:3"), "4 NICs of 2 hosts"));
  scene.suspected.emplace_back("ctsw:3");
  // A suspect excuses no cable of its own; and it may come back, and then it would be our doing.
  CHECK(contains(ask("rtsw:0--ctsw:3"), "4 NICs of 2 hosts"));
  CHECK(contains(ask("rtsw:0"), "4 NICs of 2 hosts"));
  scene.suspected = {"rtsw:0"};
  CHECK(ask("ctsw:3") == "allowed");
}

TEST_CASE("nothing that may come back excuses a drain that would be too much then") {
  // Two of four spines may be missing, and three are; one of these hides the cable.
  Scene scene(small(), "{rack_share: 0.5}");
  const auto ask = [&] {
    return why(guard_capacity(scene.now(), part(small(), "rtsw:0--ctsw:3")));
  };
  scene.suspected = {"ctsw:0", "ctsw:1"};
  CHECK(contains(ask(), "rtsw:0 would keep"));
  scene.held = {"ctsw:3"};  // drained, and perhaps on its way back
  CHECK(contains(ask(), "rtsw:0 would keep"));
  scene.held.clear();
  scene.suspected.emplace_back("zone:0");  // of a zone without power nothing is left to lose
  CHECK(contains(ask(), "rtsw:0 would keep"));
  scene.suspected = {"zone:0"};
  CHECK(ask() == "allowed");
}

TEST_CASE("where no switch is above another, all cables between switches are ways up") {
  static const model::Fabric flat =
      make_fabric("{generator: dragonfly, p: 1, a: 2, h: 1, g: 3, link: 400 Gbps}");
  const Reserve reserve(flat);
  Gone gone(flat);
  const auto whole = reserve.uplinks(gone);
  REQUIRE_FALSE(whole.empty());
  CHECK(whole.front().share() == 1);
  CHECK(reserve.cut_off(gone).empty());
  const model::NodeId router = flat.to(flat.out(flat.nics()[0]).back());
  REQUIRE(flat.is_switch(router));
  std::uint32_t cables = 0;
  for (const model::LinkId out : flat.out(router)) {
    if (!flat.is_switch(flat.to(out))) continue;
    CHECK(reserve.cut_off(gone).empty());
    gone.add(model::entity(out));
    ++cables;
  }
  CHECK(cables > 0);
  CHECK_FALSE(reserve.cut_off(gone).empty());
}

TEST_CASE("forecast: slowdown and standing jobs, and what is no number") {
  const GuardPolicy policy = Scene(small()).policy;
  CHECK_FALSE(guard_forecast(policy, {.jobs = 3, .slowdown_max = 1.1}).has_value());
  CHECK(why(guard_forecast(policy, {.jobs = 3, .slowdown_max = 1.2, .worst = "llama3"})) ==
        "job \"llama3\" would take 1.200 times as long; the limit is 1.100");
  CHECK(contains(why(guard_forecast(policy, {.jobs = 3, .stalled = 1})), "1 of 3 jobs"));
  CHECK(guard_forecast(policy, {.slowdown_max = std::nan("")}).has_value());
}

TEST_CASE("all objections are told, in order") {
  Scene scene(small(), "{drains_per_hour: 0}");
  Situation s = scene.now();
  s.is_killed = true;
  const auto all = all_refusals(s, part(small(), "rtsw:0"));
  REQUIRE(all.size() == 4);
  CHECK(all.front().guard == first_refusal(s, part(small(), "rtsw:0"))->guard);
  CHECK(all[1].guard == "rate");
  CHECK(all[2].guard == "isolation");
  CHECK(all[3].guard == "capacity");
}

}  // namespace
}  // namespace weft::operate::repair
