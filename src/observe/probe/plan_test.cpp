// The planner against a count of its own, on fabrics of several kinds, healthy and not.
#include "observe/probe/plan.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <ranges>
#include <set>
#include <tuple>

#include "base/config.hpp"
#include "base/test_approx.hpp"
#include "model/formats/test_fabric.hpp"
#include "observe/probe/plan_file.hpp"

namespace weft::observe::probe {
namespace {

using model::Fabric;
using model::LinkId;
using model::NodeId;

using model::testing::make_fabric;

route::Router router_of(const Fabric& fabric) {
  auto router = route::Router::create(fabric, {}, 1);
  REQUIRE(router.has_value());
  return *std::move(router);
}

// Crossings by link, each flow's paths asked for anew; they must join its ends.
std::map<LinkId, std::uint64_t> count(route::Router& router, const Plan& plan,
                                      const PlanOptions& options) {
  const Fabric& fabric = router.fabric();
  std::map<LinkId, std::uint64_t> out;
  for (const PlannedFlow& flow : plan.flows) {
    route::Path path;
    REQUIRE(
        router.append_udp_path(flow.src, flow.dst, {flow.source_port, options.target_port}, path));
    REQUIRE(std::ranges::equal(path, plan.forward(flow)));
    CHECK(fabric.from(path.front()) == flow.src);
    CHECK(fabric.to(path.back()) == flow.dst);
    const std::size_t there = path.size();
    REQUIRE(
        router.append_udp_path(flow.dst, flow.src, {options.target_port, flow.source_port}, path));
    CHECK(std::ranges::equal(std::span(path).subspan(there), plan.back(flow)));
    for (const LinkId link : path) out[link] += plan.probes;
  }
  return out;
}

TEST_CASE("every directed link between NICs and switches is crossed often enough") {
  for (const char* yaml :
       {"{generator: ai_zone, racks: 6, hosts_per_rack: 2, gpus_per_host: 8, spines: 4, "
        "link: 400 Gbps}",
        "{generator: fat_tree, k: 4, link: 100 Gbps}",
        "{generator: rail_optimized, groups: 2, hosts_per_group: 4, spines: 4, link: 400 Gbps}"}) {
    CAPTURE(yaml);
    const Fabric fabric = make_fabric(yaml);
    route::Router router = router_of(fabric);
    const PlanOptions options{.crossings = 50};
    const auto plan = make_plan(router, {}, options);
    REQUIRE(plan.has_value());
    const auto counts = count(router, *plan, options);
    std::uint64_t least = UINT64_MAX;
    for (const LinkId link : fabric.links()) {
      if (!fabric.on_wire(link)) continue;
      const auto at = counts.find(link);
      least = std::min(least, at == counts.end() ? 0 : at->second);
    }
    CHECK(least >= 50);
    CHECK(plan->coverage.below.empty());
    CHECK(plan->coverage.total().least == least);
    CHECK(plan->host_rate_max == approx(plan->host_rate_mean));
  }
}

TEST_CASE("no flow is planned twice, however few there can be") {
  const Fabric fabric = make_fabric("{generator: ai_zone, racks: 2, hosts_per_rack: 1, spines: 2}");
  route::Router router = router_of(fabric);
  const PlanOptions options{.flows_each = 64, .ports = {50'000, 50'001}};
  const auto plan = make_plan(router, {}, options);
  REQUIRE(plan.has_value());
  std::set<std::tuple<NodeId, NodeId, std::uint16_t>> flows;
  for (const PlannedFlow& flow : plan->flows)
    CHECK(flows.insert({flow.src, flow.dst, flow.source_port}).second);
  count(router, *plan, options);
}

// So many ports of every pair; with their ways back, or without.
std::vector<LearnedFlow> learned_flows(const Fabric& fabric, route::Router& router,
                                       std::uint16_t ports, bool with_back) {
  std::vector<LearnedFlow> out;
  for (const NodeId src : fabric.nics())
    for (const NodeId dst : fabric.nics())
      for (std::uint16_t port = 50'000; src != dst && port < 50'000 + ports; ++port) {
        LearnedFlow flow{.src = src, .dst = dst, .source_port = port};
        REQUIRE(router.append_udp_path(src, dst, {port, default_port}, flow.forward));
        if (with_back) REQUIRE(router.append_udp_path(dst, src, {default_port, port}, flow.back));
        out.push_back(std::move(flow));
      }
  return out;
}

// By breadth first from each host: switches on shortest paths from NICs of other hosts that pass on
// to a switch, and neither stand first nor last. And how many flows cross each.
using Routes = std::map<std::pair<NodeId, NodeId>, std::size_t>;
std::vector<std::size_t> distances(const Fabric& fabric, const model::LiveView& live, NodeId to) {
  std::vector<std::size_t> out(fabric.node_count(), SIZE_MAX);
  std::vector<NodeId> level{to};
  out[to.index()] = 0;
  for (std::size_t i = 0; i < level.size(); ++i) {
    const NodeId at = level[i];
    if (at != to && !fabric.is_switch(at)) continue;  // hosts pass nothing on
    for (const LinkId link : fabric.out(at))
      if (const NodeId next = fabric.to(link); live.usable(model::reverse(link)) &&
                                               fabric.on_wire(link) &&
                                               out[next.index()] == SIZE_MAX) {
        out[next.index()] = out[at.index()] + 1;
        level.push_back(next);
      }
  }
  return out;
}
Routes count_routes(const Fabric& fabric, const model::State& state, const Plan& plan) {
  const model::LiveView live(fabric, state);
  Routes out;
  for (const NodeId dst : fabric.nics()) {
    const std::vector<std::size_t> left = distances(fabric, live, dst);
    for (const NodeId src : fabric.nics()) {
      if (fabric.host_of(src) == fabric.host_of(dst) || left[src.index()] == SIZE_MAX) continue;
      std::vector<NodeId> level{src};
      for (std::size_t hop = 0; hop < level.size(); ++hop) {
        const NodeId at = level[hop];
        for (const LinkId link : fabric.out(at)) {
          const NodeId next = fabric.to(link);
          if (!live.usable(link) || !fabric.on_wire(link) ||
              left[next.index()] + 1 != left[at.index()])
            continue;
          const bool is_first = left[at.index()] + 1 == left[src.index()];
          if (fabric.is_switch(at) && fabric.is_switch(next) && !is_first)
            out[{at, fabric.host_of(dst)}];
          if (std::ranges::find(level, next) == level.end()) level.push_back(next);
        }
      }
    }
  }
  const auto add = [&](std::span<const LinkId> path, NodeId end) {
    for (std::size_t i = 1; i + 1 < path.size(); ++i)
      if (const auto at = out.find({fabric.from(path[i]), fabric.host_of(end)}); at != out.end())
        ++at->second;
  };
  for (const PlannedFlow& flow : plan.flows) {
    add(plan.forward(flow), flow.dst);
    add(plan.back(flow), flow.src);
  }
  return out;
}

TEST_CASE(
    "every transit route is crossed by as many flows as asked for, where parts are down too") {
  for (const char* yaml :
       {"{generator: ai_zone, racks: 6, hosts_per_rack: 2, gpus_per_host: 4, spines: 4, "
        "link: 400 Gbps}",
        "{generator: ai_zone, racks: 3, hosts_per_rack: 2, gpus_per_host: 1, spines: 4, "
        "link: 400 Gbps}",
        "{generator: fat_tree, k: 4, link: 100 Gbps}",
        "{generator: rail_optimized, groups: 2, hosts_per_group: 3, spines: 4, link: 400 Gbps}"}) {
    CAPTURE(yaml);
    const Fabric fabric = make_fabric(yaml);
    route::Router router = router_of(fabric);
    model::State state;
    for (const LinkId link : fabric.links())  // one between switches
      if (fabric.is_switch(fabric.from(link)) && fabric.is_switch(fabric.to(link))) {
        state.set(link, {.health = model::Health::down});
        state.set(model::reverse(link), {.health = model::Health::down});
        break;
      }
    for (const std::uint32_t each : {0u, 1u, 6u}) {
      CAPTURE(each);
      const auto plan = make_plan(router, state, {.flows_each = 1, .routes_each = each});
      REQUIRE(plan.has_value());
      const Routes routes = count_routes(fabric, state, *plan);
      std::size_t least = SIZE_MAX, sum = 0;
      for (const std::size_t flows : std::views::values(routes)) {
        least = std::min(least, flows);
        sum += flows;
      }
      CHECK(plan->coverage.routes_below.empty());
      if (each == 0) {  // as it happens
        CHECK(plan->coverage.transit.parts == 0);
        continue;
      }
      CHECK(least >= each);
      CHECK(plan->coverage.transit.parts == routes.size());
      CHECK(plan->coverage.transit.least == least);
      CHECK(plan->coverage.transit.sum == sum);
    }
  }
}

TEST_CASE("from learned ways: all transit routes that they cross; the others are named") {
  const Fabric fabric =
      make_fabric("{generator: ai_zone, racks: 4, hosts_per_rack: 2, gpus_per_host: 1, spines: 4}");
  route::Router router = router_of(fabric);
  std::vector<LearnedFlow> learned = learned_flows(fabric, router, 32, true);
  const PlanOptions options{.crossings = 4, .flows_each = 1, .routes_each = 4};
  const auto plan = make_plan(router, {}, learned, options);
  REQUIRE(plan.has_value());
  CHECK(plan->coverage.routes_below.empty());
  for (const std::size_t flows : std::views::values(count_routes(fabric, {}, *plan)))
    CHECK(flows >= 4);
  CHECK(plan->flows.size() < learned.size() / 10);
  const NodeId spine = model::testing::node(fabric, "ctsw:2");
  const NodeId nic = model::testing::node(fabric, "nic:5");
  const auto is_lost = [&](const route::Path& path) {
    return !path.empty() && fabric.to(path.back()) == nic &&
           std::ranges::any_of(path, [&](LinkId link) { return fabric.to(link) == spine; });
  };
  std::erase_if(learned, [&](const LearnedFlow& flow) {
    return is_lost(flow.forward) || is_lost(flow.back);
  });
  const auto less = make_plan(router, {}, learned, options);
  REQUIRE(less.has_value());
  REQUIRE(less->coverage.routes_below.size() == 1);
  CHECK(less->coverage.routes_below.front() == Route{spine, fabric.host_of(nic)});
}

TEST_CASE("routes are covered by default where that takes few flows; too many are refused") {
  const Fabric zone = make_fabric(
      "{generator: ai_zone, racks: 252, hosts_per_rack: 2, gpus_per_host: 8, spines: 18}");
  CHECK(usual_routes_each(zone) == 4);  // 18 x 504 routes
  const Fabric large = make_fabric(
      "{generator: ai_zone, racks: 1024, hosts_per_rack: 2, gpus_per_host: 8, spines: 32}");
  CHECK(usual_routes_each(large) == 0);  // 32 x 2,048
  route::Router router = router_of(zone);
  const auto plan = make_plan(router, {}, {.routes_each = 64 * 64});
  REQUIRE_FALSE(plan.has_value());
  CHECK(plan.error().text().find("--routes") != std::string::npos);
}

TEST_CASE("what is down is neither crossed nor probed") {
  const Fabric fabric = make_fabric(
      "{generator: ai_zone, racks: 4, hosts_per_rack: 2, gpus_per_host: 2, spines: 4, "
      "link: 400 Gbps}");
  model::State state;
  const auto cable = fabric.find_cable({"rtsw:1--ctsw:2", {}});
  REQUIRE(cable.has_value());
  const NodeId nic = fabric.nics()[3];
  state.set(model::forward(*cable), {.health = model::Health::down});
  state.set(nic, {.health = model::Health::down});
  route::Router router = router_of(fabric);
  const PlanOptions options{.crossings = 10};
  const auto plan = make_plan(router, state, options);
  REQUIRE(plan.has_value());
  CHECK(plan->coverage.below.empty());
  for (const auto& [link, times] : count(router, *plan, options)) {
    CHECK(link != model::forward(*cable));
    CHECK(fabric.from(link) != nic);
    CHECK(fabric.to(link) != nic);
  }
}

TEST_CASE("from learned ways: all that any crosses, by few flows, and none over what is down") {
  const Fabric fabric = make_fabric("{generator: fat_tree, k: 4, link: 100 Gbps}");
  route::Router router = router_of(fabric);
  const std::vector<LearnedFlow> learned = learned_flows(fabric, router, 8, false);
  const auto plan =
      make_plan(router, {}, learned, {.crossings = 5, .flows_each = 4, .routes_each = 0});
  REQUIRE(plan.has_value());
  CHECK(plan->coverage.below.empty());
  CHECK(plan->coverage.total().least >= 5);
  // 96 links, 6 of them on a way between pods.
  CHECK(plan->flows.size() >= 4 * 16);
  CHECK(plan->flows.size() <= 4 * 40);
  const auto single =
      make_plan(router, {}, learned, {.crossings = 5, .flows_each = 1, .routes_each = 0});
  REQUIRE(single.has_value());
  CHECK(single->probes == 5);
  CHECK(single->flows.size() >= 16);
  CHECK(single->flows.size() <= 40);

  model::State state;
  const LinkId down = learned.front().forward[1];
  state.set(down, {.health = model::Health::down});
  const auto rest =
      make_plan(router, state, learned, {.crossings = 5, .flows_each = 4, .routes_each = 0});
  REQUIRE(rest.has_value());
  for (const PlannedFlow& flow : rest->flows)
    for (const LinkId link : rest->forward(flow)) CHECK(link != down);
  CHECK_FALSE(make_plan(router, {}, std::span<const LearnedFlow>{}, {}).has_value());
}

TEST_CASE("from learned ways there and back: every host probes, and about as much as any other") {
  const Fabric fabric =
      make_fabric("{generator: ai_zone, racks: 4, hosts_per_rack: 2, gpus_per_host: 1, spines: 4}");
  route::Router router = router_of(fabric);
  const std::vector<LearnedFlow> learned = learned_flows(fabric, router, 16, true);
  const auto plan = make_plan(router, {}, learned, {.crossings = 8, .flows_each = 8});
  REQUIRE(plan.has_value());
  std::map<NodeId, std::size_t> flows;
  for (const PlannedFlow& flow : plan->flows) ++flows[flow.src];
  REQUIRE(flows.size() == fabric.nics().size());
  const auto [least, most] = std::ranges::minmax(std::views::values(flows));
  CAPTURE(plan->flows.size());
  CHECK(most <= 2 * least);
}

TEST_CASE("ways that a switch swallows are completed by what the others do not pass") {
  const Fabric fabric =
      make_fabric("{generator: ai_zone, racks: 4, hosts_per_rack: 2, gpus_per_host: 1, spines: 4}");
  route::Router router = router_of(fabric);
  const NodeId spine = model::testing::node(fabric, "ctsw:2");
  const NodeId other = model::testing::node(fabric, "ctsw:1");
  const NodeId host = model::testing::node(fabric, "nic:5");
  // `cut`: no way leads over this node, or from it to the rack of `host`.
  enum class Cut : std::uint8_t { nowhere, near, everywhere };
  using enum Cut;
  const auto check = [&](std::uint16_t ports, Cut cut, bool is_completed) {
    std::vector<LearnedFlow> whole, partial, truth;
    for (LearnedFlow& flow : learned_flows(fabric, router, ports, false)) {
      const auto crosses = [&](NodeId node) {
        return std::ranges::any_of(flow.forward, [&](LinkId l) { return fabric.to(l) == node; });
      };
      const bool is_near = flow.dst == host || flow.dst == model::testing::node(fabric, "nic:4");
      if ((cut == everywhere || (cut == near && is_near)) && crosses(other)) continue;
      const bool is_lost = flow.dst == host && crosses(spine);
      (is_lost ? truth : whole).push_back(flow);
    }
    REQUIRE_FALSE(truth.empty());
    partial = truth;
    for (LearnedFlow& flow : partial) flow.forward.resize(1);  // the spine says nothing either
    complete_ways(router, whole, partial);
    REQUIRE(partial.size() == (is_completed ? truth.size() : 0));
    for (std::size_t i = 0; i < partial.size(); ++i)
      CHECK((partial[i].forward == truth[i].forward));
  };
  check(16, nowhere, true);
  check(16, everywhere, true);  // a spine that takes no part at all is no candidate
  check(16, near, true);        // nor is one whose cable to that rack is down
  check(2, nowhere, false);     // so few that it may be chance
  CHECK(only_way(router, spine, host).size() == 2);
  CHECK(only_way(router, model::testing::node(fabric, "rtsw:0"), host).empty());
}

TEST_CASE("by default links of small fabrics get 64 flows, those of large ones 4") {
  const Fabric small =
      make_fabric("{generator: ai_zone, racks: 4, hosts_per_rack: 2, gpus_per_host: 1, spines: 4}");
  CHECK(usual_flows_each(small) == 64);  // 48 links
  const Fabric large = make_fabric("{generator: fat_tree, k: 16, link: 100 Gbps}");
  CHECK(usual_flows_each(large) == 5);  // 6,144 links
  route::Router router = router_of(small);
  const auto plan = make_plan(router, {}, {.crossings = 1'000});
  REQUIRE(plan.has_value());
  CHECK(plan->flows.size() >= 64 * 48 / 8);
  CHECK(plan->flows.size() <= 64 * 48 / 4);
  CHECK(plan->probes == 16);
}

TEST_CASE("the rate bounds what is reached, and the plan says by how much") {
  const Fabric fabric = make_fabric(
      "{generator: ai_zone, racks: 4, hosts_per_rack: 2, gpus_per_host: 2, spines: 4, "
      "link: 400 Gbps}");
  route::Router router = router_of(fabric);
  const auto plan = make_plan(router, {}, {.crossings = 1000, .rate_max = 100});
  REQUIRE(plan.has_value());
  CHECK(plan->host_rate_max <= 100);
  CHECK_FALSE(plan->coverage.below.empty());
  CHECK(plan->coverage.total().least < 1000);
  CHECK(plan->coverage.total().least > 0);
}

TEST_CASE("the zone: 9,072 directed links between switches, in well under a second") {
  const Fabric fabric = make_fabric(
      "{generator: ai_zone, racks: 252, hosts_per_rack: 2, gpus_per_host: 8, spines: 18, "
      "link: 400 Gbps}");
  route::Router router = router_of(fabric);
  const auto start = std::chrono::steady_clock::now();
  const auto plan = make_plan(router, {}, {.crossings = 7});
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  REQUIRE(plan.has_value());
  std::size_t between_switches = 0;
  for (const Coverage::Tier& tier : plan->coverage.tiers)
    if (fabric.role(fabric.tiers()[tier.tier].from).kind == model::NodeKind::fabric_switch &&
        fabric.role(fabric.tiers()[tier.tier].to).kind == model::NodeKind::fabric_switch)
      between_switches += tier.parts;
  CHECK(between_switches == 9'072);
  CHECK(plan->coverage.total().least >= 7);
  CHECK(plan->probes == 2);
  CHECK(plan->coverage.below.empty());
  MESSAGE("planned in " << seconds << " s, " << plan->flows.size() << " flows");
  CHECK(plan->coverage.transit.parts == 18 * 504);
  CHECK(plan->coverage.transit.least >= 4);
  CHECK(plan->coverage.routes_below.empty());
  CHECK(seconds < 20);  // of a debug build on a busy machine; the bench has the figure
}

TEST_CASE("plans are the same each time, and are read back") {
  const Fabric fabric = make_fabric("{generator: fat_tree, k: 4, link: 100 Gbps}");
  route::Router router = router_of(fabric);
  const PlanOptions options{.crossings = 12, .flows_each = 4, .routes_each = 0};
  const auto plan = make_plan(router, {}, options), again = make_plan(router, {}, options);
  REQUIRE((plan.has_value() && again.has_value()));
  const std::string text = to_json_lines(fabric, *plan, options);
  CHECK(text == to_json_lines(fabric, *again, options));
  LineReader lines(text, "plan.jsonl");
  const auto rows = read_plan(fabric, lines);
  REQUIRE(rows.has_value());
  REQUIRE(rows->size() == plan->flows.size());
  for (std::size_t i = 0; i < rows->size(); ++i) {
    CHECK((*rows)[i].src == plan->flows[i].src);
    CHECK((*rows)[i].source_port == plan->flows[i].source_port);
    CHECK((*rows)[i].probes == 3);
    CHECK(std::ranges::equal((*rows)[i].forward, plan->forward(plan->flows[i])));
    CHECK(std::ranges::equal((*rows)[i].back, plan->back(plan->flows[i])));
  }
}

TEST_CASE("a bad plan names every bad line") {
  const Fabric fabric = make_fabric("{generator: fat_tree, k: 4, link: 100 Gbps}");
  LineReader lines("{\"src\":\"nic:0\",\"dst\":\"nic:99\",\"sport\":1}\n{}\nnothing\n", "plan");
  const auto rows = read_plan(fabric, lines);
  REQUIRE_FALSE(rows.has_value());
  const std::string text = rows.error().text();
  for (const char* part : {"plan:1", "nic:99", "plan:2", "sport", "plan:3"})
    CHECK(text.find(part) != std::string::npos);
}

}  // namespace
}  // namespace weft::observe::probe
