#include "plan/explain/explain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>

#include "base/rng.hpp"
#include "base/test_approx.hpp"
#include "model/fabric/faults.hpp"
#include "model/formats/test_fabric.hpp"

namespace weft::plan {

using namespace model;
namespace {

using namespace testing;

const FabricFacts::SwitchTier& switches(const FabricFacts& facts, std::string_view role) {
  const auto it = std::ranges::find(facts.switch_tiers, role, &FabricFacts::SwitchTier::role);
  REQUIRE(it != facts.switch_tiers.end());
  return *it;
}
const FabricFacts::RoleFacts& nodes(const FabricFacts& facts, std::string_view role) {
  const auto it = std::ranges::find(facts.roles, role, &FabricFacts::RoleFacts::name);
  REQUIRE(it != facts.roles.end());
  return *it;
}
const FabricFacts::Loss& loss(const FabricFacts& facts, std::string_view role) {
  const auto it = std::ranges::find(facts.losses, role, &FabricFacts::Loss::role);
  REQUIRE(it != facts.losses.end());
  return *it;
}
const FabricFacts::PathFacts& path(const FabricFacts& facts, std::string_view what) {
  const auto it = std::ranges::find(facts.paths, what, &FabricFacts::PathFacts::what);
  REQUIRE(it != facts.paths.end());
  return *it;
}
FabricFacts facts_of(std::string_view yaml) { return explain(make_fabric(yaml)); }

// P-01: 252 racks x 16 = 4,032 GPUs. P-02: one CTSW is 1/18 of every rack. P-03: 18 up-ports over
// 16 down-ports.
TEST_CASE("AI Zone") {
  const FabricFacts facts = facts_of("{generator: ai_zone, racks: 252}");
  CHECK(facts.gpus == 4032);
  CHECK(facts.racks == 252);
  CHECK(nodes(facts, "rtsw").ports_min == 34);
  CHECK(nodes(facts, "ctsw").ports_max == 252);
  const auto& rtsw = switches(facts, "rtsw");
  CHECK(rtsw.worst == Ratio{8, 9});
  CHECK(ratio_of(rtsw.up, rtsw.down) == Ratio{9, 8});
  CHECK(rtsw.uniform);
  CHECK(rtsw.level_max == 1);
  CHECK(switches(facts, "ctsw").level_min == 2);
  CHECK(switches(facts, "ctsw").worst.under == 0);

  const auto& ctsw = loss(facts, "ctsw");
  CHECK(ctsw.racks_affected == 252);
  CHECK(ctsw.nics_cut_off == 0);
  CHECK(ctsw.rack_share_min == approx(1.0 / 18).epsilon(1e-12));
  CHECK(ctsw.rack_share_max == approx(1.0 / 18).epsilon(1e-12));
  CHECK(loss(facts, "rtsw").nics_cut_off == 16);
  CHECK(loss(facts, "rtsw").racks_affected == 1);

  REQUIRE(facts.bisection.has_value());
  CHECK(facts.bisection->share() == Ratio{1, 1});
  CHECK(facts.bisection->capacity == 400_Gbps * 2016);
  CHECK(path(facts, "same rack").hops == 2);
  CHECK(path(facts, "same rack").shortest == 1);
  const auto& zone = path(facts, "same zone");
  CHECK(zone.hops == 4);
  CHECK(zone.shortest == 18);
  CHECK(zone.disjoint == 1);
  CHECK(zone.disjoint_inside == 18);
  CHECK(zone.latency == 2_us);
}

FabricFacts facts_with(const Fabric& fabric, std::string_view faults) {
  const auto section = parse_yaml(faults, "faults.yaml");
  REQUIRE(section.has_value());
  const auto timeline = read_faults(fabric, *section);
  REQUIRE_MESSAGE(timeline.has_value(), (timeline ? "" : timeline.error().text()));
  return explain(fabric, timeline->initial());
}

TEST_CASE("faults take capacity away: as a fabric that was built without it") {
  const Fabric zone = make_fabric("{generator: ai_zone, racks: 4}");
  for (int dead = 0; dead <= 3; ++dead) {
    CAPTURE(dead);
    const std::string count = std::to_string(dead);
    const FabricFacts faulty =
        dead == 0 ? explain(zone)
                  : facts_with(zone, "[{kind: switch_down, role: ctsw, count: " + count + "}]");
    const FabricFacts built =
        facts_of("{generator: ai_zone, racks: 4, spines: " + std::to_string(18 - dead) + "}");
    CHECK(switches(faulty, "rtsw").worst == switches(built, "rtsw").worst);
    CHECK(switches(faulty, "rtsw").worst == ratio_of(16_Gbps, Rate{(18 - dead) * 1'000'000'000LL}));
    CHECK(switches(faulty, "rtsw").uniform);
    REQUIRE(faulty.bisection.has_value());
    CHECK(faulty.bisection->capacity == built.bisection->capacity);
    CHECK(faulty.bisection->share() == built.bisection->share());
    CHECK(switches(faulty, "ctsw").out_of_service == static_cast<std::size_t>(dead));
    CHECK(path(faulty, "same zone").shortest == static_cast<std::uint64_t>(18 - dead));
    CHECK(path(faulty, "same zone").disjoint_inside == static_cast<std::uint64_t>(18 - dead));
    CHECK(loss(faulty, "ctsw").rack_share_max == approx(1.0 / (18 - dead)).epsilon(1e-9));
  }
}

TEST_CASE("a drained switch, a slow cable and a rack without uplinks") {
  const Fabric zone = make_fabric("{generator: ai_zone, racks: 4, spines: 2}");
  const auto rtsw = [&](std::string_view faults) {
    return switches(facts_with(zone, faults), "rtsw");
  };
  CHECK(rtsw("[{kind: switch_drain, switch: ctsw:0}]").worst == Ratio{16, 1});
  const auto slow = rtsw("[{kind: link_degraded, link: \"rtsw:0--ctsw:0\", factor: 0.5}]");
  CHECK(slow.worst == Ratio{32, 3});
  CHECK(slow.best == Ratio{8, 1});
  CHECK_FALSE(slow.uniform);
  const auto cut = rtsw(
      "[{kind: link_down, link: \"rtsw:0--ctsw:0\"}, {kind: link_down, link: \"rtsw:0--ctsw:1\"}]");
  CHECK(cut.cut_off == 1);
  CHECK(cut.best == Ratio{8, 1});
  const FabricFacts facts = facts_with(
      zone,
      "[{kind: link_down, link: \"rtsw:0--ctsw:0\"}, {kind: link_down, link: \"rtsw:0--ctsw:1\"}]");
  CHECK(contains(to_table(facts), "cut off"));
  CHECK(nlohmann::json::parse(to_json(facts))["oversubscription"]["rtsw"].is_null());
  // Two of the four racks send to the others; one of them can no longer.
  CHECK(facts.bisection->capacity == 800_Gbps);
  // All switches dead: nothing is left, and nothing breaks.
  const FabricFacts none = facts_with(zone, "[{kind: switch_down, role: ctsw, count: 2}]");
  CHECK(none.bisection->capacity == Rate{});
  CHECK(switches(none, "rtsw").cut_off == 4);
  CHECK(switches(none, "ctsw").out_of_service == 2);
}

TEST_CASE("halves keep hosts whole: of an odd number the smaller one is counted") {
  const auto line = [](int racks) {
    return to_table(facts_of(fmt::format(
        "{{generator: ai_zone, racks: {}, hosts_per_rack: 1, gpus_per_host: 8, spines: 8}}",
        racks)));
  };
  CHECK(contains(line(2), "that half of the NICs can send"));
  CHECK(contains(line(3), "that 8 of the 24 NICs can send"));
}

TEST_CASE("P-03: an AI Zone without one CTSW has 17 up-ports over 16") {
  const FabricFacts facts = facts_of("{generator: ai_zone, racks: 4, spines: 17}");
  CHECK(switches(facts, "rtsw").worst == Ratio{16, 17});
  CHECK(ratio_of(switches(facts, "rtsw").up, switches(facts, "rtsw").down).value() == 1.0625);
}

// P-04: 192 x 16 x 8 = 24,576 GPUs.
TEST_CASE("24K cluster: exactly 1:7 above the pod") {
  const FabricFacts facts =
      facts_of("{generator: three_tier, pods: 8, racks: 192, oversubscription: 7, atsws: 24}");
  CHECK(facts.gpus == 24'576);
  // Rates are whole bits per second, 76.8 Tbps / 7 / 24 is not.
  CHECK(switches(facts, "ctsw").worst.value() == approx(7).epsilon(1e-11));
  CHECK(switches(facts, "rtsw").worst == Ratio{1, 1});
  CHECK(switches(facts, "atsw").level_min == 3);
  REQUIRE(facts.bisection.has_value());
  CHECK(facts.bisection->share().value() == approx(1.0 / 7).epsilon(1e-11));
  // One of 24 uplinks of one of the pod's 16 CTSWs.
  CHECK(loss(facts, "atsw").rack_share_max == approx(1.0 / (16 * 24)));
  CHECK(loss(facts, "ctsw").racks_affected == 192);
  CHECK(path(facts, "same building").hops == 6);
  CHECK(path(facts, "same building").shortest == 16 * 24);
  CHECK(path(facts, "same building").disjoint_inside == 16);
}

TEST_CASE("1:7 to the bit where the rates divide") {
  const FabricFacts facts =
      facts_of("{generator: three_tier, pods: 4, racks: 14, oversubscription: 7, atsws: 2}");
  CHECK(switches(facts, "ctsw").worst == Ratio{7, 1});
  CHECK(facts.bisection->share() == Ratio{1, 7});
}

TEST_CASE("P-05: 28 up-ports under 192 down-ports are 1:6.86") {
  const FabricFacts facts = facts_of("{generator: three_tier, pods: 2, racks: 192, atsws: 28}");
  CHECK(switches(facts, "ctsw").worst == Ratio{48, 7});
  CHECK(switches(facts, "ctsw").worst.value() == approx(6.857).epsilon(1e-4));
}

// k-ary fat tree: k^3/4 NICs, full bisection, (k/2)^2 shortest paths between pods.
TEST_CASE("fat trees") {
  for (const std::uint64_t k : {4u, 6u, 8u}) {
    CAPTURE(k);
    const FabricFacts facts =
        facts_of("{generator: fat_tree, gpus_per_host: 1, k: " + std::to_string(k) + "}");
    CHECK(facts.nics == k * k * k / 4);
    REQUIRE(facts.bisection.has_value());
    CHECK(facts.bisection->share() == Ratio{1, 1});
    CHECK(path(facts, "same zone").hops == 6);
    CHECK(path(facts, "same zone").shortest == k * k / 4);
    CHECK(path(facts, "same zone").disjoint_inside == k / 2);
    CHECK(loss(facts, "agg").rack_share_max == approx(2.0 / static_cast<double>(k)));
    CHECK(loss(facts, "core").rack_share_min == approx(4.0 / static_cast<double>(k * k)));
  }
}

// P-09: 25.6T down over 24T up, 15 x 1,024 GPUs.
TEST_CASE("HPN pod") {
  const FabricFacts facts = facts_of("{generator: hpn}");
  CHECK(facts.gpus == 15'360);
  CHECK(switches(facts, "tor").worst == Ratio{16, 15});
  CHECK(switches(facts, "tor").down == Rate{25'600'000'000'000});
  CHECK(path(facts, "same rack").disjoint == 2);
  CHECK(path(facts, "same pod").disjoint == 2);
  CHECK(path(facts, "same pod").disjoint_inside == 120);
  // Dual-ToR: nobody is cut off; one of 16 ToRs of the segment.
  CHECK(loss(facts, "tor").nics_cut_off == 0);
  CHECK(loss(facts, "tor").nics_affected == 128);
  CHECK(loss(facts, "tor").rack_share_max == approx(1.0 / 16));
  CHECK(loss(facts, "agg").rack_share_max == approx(1.0 / 120));
  // Seven segments send 24T of 25.6T per ToR across, half a segment all it has.
  REQUIRE(facts.bisection.has_value());
  CHECK(facts.bisection->share() == Ratio{113, 120});
}

// P-19: two NICs are at most three switch hops (local, global, local) apart.
TEST_CASE("dragonfly") {
  const Fabric fabric = make_fabric("{generator: dragonfly, p: 2, a: 4, h: 2, g: 9}");
  const FabricFacts facts = explain(fabric);
  CHECK(nodes(facts, "router").ports_max == 2 + 3 + 2);
  CHECK(path(facts, "same pod").hops == 3);
  CHECK(path(facts, "same zone").hops - 2 == 3);
  CHECK(std::ranges::none_of(facts.paths, [](const auto& p) { return p.what == "farthest"; }));
  CHECK(path(facts, "same zone").disjoint_inside == 5);
  CHECK(switches(facts, "router").peer == 200_Gbps * 5);
  CHECK(switches(facts, "router").worst.under == 0);
  CHECK(loss(facts, "router").nics_cut_off == 2);
}

TEST_CASE("rails meet only inside hosts") {
  const FabricFacts facts = facts_of("{generator: rail_only, hosts: 4}");
  CHECK(path(facts, "same rack").hops == 2);
  CHECK(path(facts, "out of reach").hops == 0);
  CHECK(path(facts, "out of reach").shortest == 0);
  CHECK(loss(facts, "rail").rack_share_max == approx(1.0 / 8));
}

//      core:0         Two leaves of unequal uplinks; nic:3 hangs on leaf:1 alone.
//     /  2x  \ 1x
//  leaf:0   leaf:1
//  |  |      |  |
//  0  1      2  3
TEST_CASE("unequal switches: the worst and the best are told apart") {
  const FabricFacts facts = facts_of(R"({rate: 100 Gbps, nodes: [{role: nic, count: 4},
    {role: leaf, count: 2}, {role: core}], links: ["nic:0..1--leaf:0", "nic:2..3--leaf:1",
    {link: "leaf:0--core:0", count: 2}, "leaf:1--core:0"]})");
  const auto& leaf = switches(facts, "leaf");
  CHECK(leaf.worst == Ratio{2, 1});
  CHECK(leaf.best == Ratio{1, 1});
  CHECK(!leaf.uniform);
  CHECK(loss(facts, "leaf").examined == 2);
  CHECK(facts.bisection->capacity == 100_Gbps);
  CHECK(facts.bisection->share() == Ratio{1, 2});
  CHECK(path(facts, "same zone").shortest == 2);
  CHECK(facts.notes.empty());
}

// Every edge-disjoint set of paths on tiny graphs, counted by hand: the smallest number of cables
// whose removal parts the two leaves (Menger).
TEST_CASE("disjoint paths equal the smallest cut of cables on random graphs") {
  Rng rng(5);
  for (int round = 0; round < 300; ++round) {
    constexpr std::uint32_t switch_count = 5;
    FabricBuilder builder;
    const ScopeId zone = builder.add_scope(ScopeKind::zone, {});
    std::vector<NodeId> sw;
    const NodeId a = builder.add_node({NodeKind::nic, "nic", zone});
    const NodeId b = builder.add_node({NodeKind::nic, "nic", zone});
    for (std::uint32_t i = 0; i < switch_count; ++i)
      sw.push_back(builder.add_node({NodeKind::fabric_switch, "sw", zone}));
    builder.add_circuit(a, sw.front(), {100_Gbps, 0_ps});
    builder.add_circuit(b, sw.back(), {100_Gbps, 0_ps});
    std::vector<std::pair<std::uint32_t, std::uint32_t>> cables;
    for (std::uint64_t i = rng.below(11); i-- > 0;) {
      const auto x = static_cast<std::uint32_t>(rng.below(switch_count));
      const auto y = static_cast<std::uint32_t>(rng.below(switch_count));
      if (x == y) continue;
      cables.emplace_back(x, y);
      builder.add_circuit(sw[x], sw[y], {100_Gbps, 0_ps});
    }
    std::uint64_t cut_min = UINT64_MAX;
    for (std::uint32_t side = 1; side < (1u << switch_count); side += 2) {
      if ((side >> (switch_count - 1) & 1) != 0) continue;
      std::uint64_t cut = 0;
      for (const auto& [x, y] : cables) cut += (side >> x & 1) != (side >> y & 1) ? 1 : 0;
      cut_min = std::min(cut_min, cut);
    }
    const FabricFacts facts = explain(builder.freeze());
    REQUIRE(facts.paths.size() == 1);
    CHECK(facts.paths[0].what == (cut_min == 0 ? "out of reach" : "same zone"));
    CHECK(facts.paths[0].disjoint_inside == cut_min);
    CHECK(facts.paths[0].disjoint == std::min<std::uint64_t>(cut_min, 1));
    CHECK((facts.paths[0].hops == 0) == (cut_min == 0));
  }
}

TEST_CASE("fabrics without NICs, with one, with absurd rates") {
  const FabricFacts none = facts_of(
      "{rate: 1 Gbps, nodes: [{role: core, count: 2}], "
      "links: [\"core:0--core:1\"]}");
  CHECK(!none.bisection.has_value());
  CHECK(none.paths.empty());
  CHECK(switches(none, "core").level_max == 0);
  CHECK(facts_of("{nodes: [{role: nic}]}").notes.size() == 1);
  const FabricFacts huge = facts_of(
      "{rate: 9000000 Tbps, nodes: [{role: nic, count: 9}, "
      "{role: tor, count: 3}], links: [\"nic:0..8--tor:0..2\"]}");
  CHECK(nodes(huge, "tor").capacity_max == Rate{INT64_MAX});
  CHECK(to_table(huge).size() > 0);
}

TEST_CASE("JSON keeps its keys and figures") {
  const FabricFacts facts = facts_of("{generator: ai_zone, racks: 4}");
  const auto json = nlohmann::ordered_json::parse(to_json(facts));
  CHECK(json["gpus"] == 64);
  CHECK(json["switches"][1]["oversubscription"]["over"] == 8);
  CHECK(json["bisection"]["share"]["value"] == 1.0);
  CHECK(json["failures"][0]["rack_share_max"].get<double>() == approx(1.0 / 18));
  CHECK(json["paths"][1]["shortest_paths"] == 18);
  CHECK(json.begin().key() == "nodes");
  CHECK(contains(to_table(facts), "rtsw->ctsw"));
}

}  // namespace
}  // namespace weft::plan
