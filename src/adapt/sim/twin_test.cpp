#include "adapt/sim/twin.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "adapt/sim/sample.hpp"
#include "adapt/sim/test_probing.hpp"
#include "base/config.hpp"
#include "base/test_approx.hpp"
#include "model/formats/test_fabric.hpp"
#include "observe/localise/localise.hpp"
#include "observe/probe/plan.hpp"
#include "observe/probe/wire.hpp"

namespace weft::adapt::sim {
namespace {

using testing::Accumulator;
using testing::aim;
using testing::make_plan;

constexpr std::string_view zone_yaml =
    "{generator: ai_zone, racks: 6, hosts_per_rack: 2, gpus_per_host: 2, spines: 4}";

Fabric twin_zone() { return model::testing::make_fabric(zone_yaml); }

route::Router router_of(const Fabric& fabric) {
  auto router = route::Router::create(fabric, {.scheme = "e_ecmp"}, 1);
  REQUIRE(router.has_value());
  return *std::move(router);
}

struct Sum {
  double sent = 0, lost = 0, late = 0;
};
template <class Which>
Sum sum_of(const EvidenceSet& set, Which which) {
  Sum out;
  for (const model::Evidence& row : set.rows) {
    if (!which(row)) continue;
    out.sent += row.sent;
    out.lost += row.lost;
    out.late += row.late;
  }
  return out;
}
bool crosses(const EvidenceSet& set, const model::Evidence& row, LinkId link) {
  return std::ranges::find(set.path(row), link) != set.path(row).end();
}

TEST_CASE("binomial draws have the chances of the closed form") {
  constexpr int draws = 200'000;
  for (const double p : {0.001, 0.3, 0.5, 0.9, 1.0}) {
    Rng rng(7);
    std::array<int, 4> seen{};
    for (int i = 0; i < draws; ++i) ++seen[draw_binomial(rng, 3, p)];
    const std::array<double, 4> chance{std::pow(1 - p, 3), 3 * p * std::pow(1 - p, 2),
                                       3 * p * p * (1 - p), p * p * p};
    for (std::size_t k = 0; k < 4; ++k) {
      const double deviation = std::sqrt(draws * chance[k] * (1 - chance[k]));
      CHECK(std::abs(seen[k] - draws * chance[k]) <= 4 * deviation + 1e-9);
    }
  }
}

TEST_CASE("large binomial and Poisson draws have mean and variance") {
  Rng rng(3);
  const auto check = [&](auto draw, double mean, double variance) {
    constexpr int draws = 20'000;
    double sum = 0, squares = 0;
    for (int i = 0; i < draws; ++i) {
      const double k = draw();
      sum += k;
      squares += (k - mean) * (k - mean);
    }
    CHECK(std::abs(sum / draws - mean) < 5 * std::sqrt(variance / draws));
    CHECK(squares / draws == approx(variance).epsilon(0.06));
  };
  check([&] { return draw_binomial(rng, 100'000, 0.01); }, 1000, 990);
  check([&] { return draw_binomial(rng, 1000, 0.8); }, 800, 160);
  check([&] { return draw_poisson(rng, 0.3); }, 0.3, 0.3);
  check([&] { return draw_poisson(rng, 100); }, 100, 100);
  CHECK(draw_binomial(rng, 0, 0.5) == 0);
  CHECK(draw_binomial(rng, 9, 0) == 0);
  CHECK(draw_binomial(rng, UINT32_MAX, 1e-9) < 100);
}

TEST_CASE("a plan crosses every link between switches about equally, and keeps its budget") {
  const Fabric fabric = twin_zone();
  route::Router router = router_of(fabric);
  const auto plan = make_plan(router, {.peers = 4, .ports = 8, .per_host = 320}, 5);
  REQUIRE(plan.has_value());
  CHECK(plan->flows.size() == 12 * 4 * 8);
  std::vector<int> flows(fabric.link_count(), 0);
  double per_s = 0;
  for (const TwinFlow& flow : plan->flows) {
    per_s += flow.per_s;
    CHECK(fabric.from(plan->forward(flow).front()) == flow.src);
    CHECK(fabric.to(plan->forward(flow).back()) == flow.dst);
    CHECK(fabric.from(plan->back(flow).front()) == flow.dst);
    CHECK(fabric.to(plan->back(flow).back()) == flow.src);
    for (const LinkId link : plan->forward(flow)) ++flows[link.index()];
    for (const LinkId link : plan->back(flow)) ++flows[link.index()];
  }
  CHECK(per_s == approx(12 * 320));
  for (const LinkId link : fabric.links()) {
    if (!fabric.is_switch(fabric.from(link)) || !fabric.is_switch(fabric.to(link))) continue;
    CHECK(flows[link.index()] >= 20);  // 32 in the mean
    CHECK(flows[link.index()] <= 48);
  }
}

TEST_CASE("one rack has nobody to probe") {
  const Fabric fabric = model::testing::make_fabric(
      "{generator: ai_zone, racks: 1, hosts_per_rack: 2, gpus_per_host: 1, spines: 2}");
  route::Router router = router_of(fabric);
  CHECK(!make_plan(router, {}, 1).has_value());
}

TEST_CASE("aiming moves half of a rack's probes onto the suspect, and no more") {
  const Fabric fabric = twin_zone();
  route::Router router = router_of(fabric);
  TwinPlan plan = *make_plan(router, {.peers = 4, .ports = 8}, 5);
  const TwinPlan before = plan;
  const LinkId suspect = *fabric.find_link({"ctsw:2->rtsw:3", {}});
  aim(plan, router, std::vector{suspect});
  std::size_t over = 0, moved = 0, of_rack = 0;
  for (std::size_t i = 0; i < plan.flows.size(); ++i) {
    const TwinFlow &now = plan.flows[i], &was = before.flows[i];
    CHECK(now.per_s == was.per_s);
    const bool mine = fabric.name(fabric.to(plan.forward(now).front())) == "rtsw:3" ||
                      fabric.name(fabric.to(plan.forward(now).front())) == "ctsw:2";
    of_rack += mine ? 1 : 0;
    if (now.sport == was.sport) continue;
    ++moved;
    CHECK(mine);
    CHECK(now.back_size == was.back_size);
    over += std::ranges::count(plan.back(now), suspect) == 1 ? 1 : 0;
  }
  CHECK(over == moved);
  CHECK(moved == of_rack / 2);
}

TEST_CASE("losses are those asked for, by link and class") {
  const Fabric fabric = twin_zone();
  route::Router router = router_of(fabric);
  const TwinPlan plan =
      *make_plan(router, {.peers = 4, .ports = 8, .per_host = 5000, .classes = {"a", "b"}}, 5);
  const LinkId bad = *fabric.find_link({"rtsw:1->ctsw:0", {}});
  Twin twin(fabric, 2, 9);
  twin.set_loss(bad, 1, 0.05);
  CHECK(twin.loss(bad, 1) == approx(0.05));
  const EvidenceSet set = twin.observe(plan, {0}, 100_s).evidence;
  const auto of = [&](std::uint8_t klass, bool through) {
    return sum_of(set, [&](const model::Evidence& row) {
      return row.traffic_class == klass && crosses(set, row, bad) == through;
    });
  };
  CHECK(of(0, true).lost == 0);
  CHECK(of(0, false).lost == 0);
  CHECK(of(1, false).lost == 0);
  const Sum hit = of(1, true);
  CHECK(hit.sent > 50'000);
  CHECK(hit.lost / hit.sent == approx(0.05).epsilon(0.05));
}

TEST_CASE("the same seed gives the same evidence, another one does not") {
  const Fabric fabric = twin_zone();
  route::Router router = router_of(fabric);
  const TwinPlan plan = *make_plan(router, {.peers = 4, .ports = 8}, 5);
  const auto text = [&](std::uint64_t seed) {
    Twin twin(fabric, 1, seed);
    for (const LinkId link : fabric.links()) twin.set_loss(link, 0.01);
    const Observation seen = twin.observe(plan, {0}, 10_s);
    std::string out;
    for (const model::Evidence& row : seen.evidence.rows)
      out += to_json(fabric, seen.evidence, row) + "\n";
    return out;
  };
  CHECK(text(1) == text(1));
  CHECK(text(1) != text(2));
}

TEST_CASE("hosts stall, answer late, and die") {
  const Fabric fabric = twin_zone();
  route::Router router = router_of(fabric);
  const TwinPlan plan = *make_plan(router, {.peers = 4, .ports = 8, .per_host = 1000}, 5);
  Twin twin(fabric, 1, 3);
  twin.set_stalls(fabric.hosts()[0], {.per_s = 2, .late_share = 0.5});  // a tenth of the time
  twin.kill(fabric.hosts()[5]);
  const EvidenceSet set = twin.observe(plan, {0}, 100_s).evidence;
  const auto towards = [&](std::size_t host) {
    return sum_of(set, [&](const model::Evidence& row) {
      return row.leg == model::Leg::forward && fabric.host_of(row.dst) == fabric.hosts()[host] &&
             row.sent > 0;
    });
  };
  const Sum stalled = towards(0), dead = towards(5), well = towards(1);
  CHECK(stalled.lost / stalled.sent == approx(0.05).epsilon(0.3));
  CHECK(stalled.late == approx(stalled.lost).epsilon(0.1));
  CHECK(dead.lost == dead.sent);
  CHECK(well.lost == 0);
  for (const model::Evidence& row : set.rows)
    if (fabric.host_of(row.src) == fabric.hosts()[5]) CHECK(row.sent == 0);
}

TEST_CASE("a tuple fault hits tuples whole") {
  const Fabric fabric = twin_zone();
  route::Router router = router_of(fabric);
  const TwinPlan plan = *make_plan(router, {.peers = 6, .ports = 32, .per_host = 4000}, 5);
  Twin twin(fabric, 1, 3);
  const NodeId spine = *fabric.find_node({"ctsw:1", {}});
  TupleFault fault{.links = {}, .salt = 11, .buckets = 8, .loss = 1};
  for (const LinkId out : fabric.out(spine)) fault.links.push_back(out);
  twin.add(fault);
  const EvidenceSet set = twin.observe(plan, {0}, 10_s).evidence;
  double through = 0, hit = 0;
  for (const model::Evidence& row : set.rows) {
    if (row.sent == 0) continue;
    CHECK((row.lost == 0 || row.lost == row.sent));
    const bool spined =
        std::ranges::any_of(set.path(row), [&](LinkId link) { return fabric.from(link) == spine; });
    through += spined ? 1 : 0;
    hit += row.lost > 0 ? 1 : 0;
  }
  CHECK(hit / through == approx(1.0 / 8).epsilon(0.4));
}

TEST_CASE("bursts show in losses and in counters of their link and class alone") {
  const Fabric fabric = twin_zone();
  route::Router router = router_of(fabric);
  const TwinPlan plan =
      *make_plan(router, {.peers = 4, .ports = 8, .per_host = 4000, .classes = {"a", "b"}}, 5);
  const LinkId busy = *fabric.find_link({"rtsw:1->ctsw:0", {}});
  Twin twin(fabric, 2, 3);
  twin.add(Bursts{.link = busy, .traffic_class = 1, .per_s = 4, .loss = 0.1});
  const Observation seen = twin.observe(plan, {0}, 60_s, Counters::all_links);
  const Sum lost = sum_of(seen.evidence, [](const model::Evidence&) { return true; });
  CHECK(lost.lost > 0);
  for (const LinkCounters& row : seen.counters) {
    const bool here = row.link == busy && row.traffic_class == "b";
    CHECK((row.drops > 0) == here);
    if (here)
      CHECK(static_cast<double>(row.drops) / static_cast<double>(row.packets) ==
            approx(0.02).epsilon(0.3));
    CHECK(row.marks + row.drops <= row.packets);
  }
}

TEST_CASE("an accumulator keeps what was seen before a flow was moved") {
  const Fabric fabric = twin_zone();
  route::Router router = router_of(fabric);
  TwinPlan plan = *make_plan(router, {.peers = 4, .ports = 8}, 5);
  Twin twin(fabric, 1, 3);
  Accumulator sum;
  double sent = 0;
  for (int i = 0; i < 3; ++i) {
    const EvidenceSet seen = twin.observe(plan, {i}, 1_s).evidence;
    sent += sum_of(seen, [](const model::Evidence&) { return true; }).sent;
    sum.add(plan, seen);
    if (i == 1) aim(plan, router, std::vector{*fabric.find_link({"ctsw:2->rtsw:3", {}})});
  }
  const EvidenceSet total = sum.total();
  CHECK(sum_of(total, [](const model::Evidence&) { return true; }).sent == sent);
  CHECK(total.rows.size() > 2 * plan.flows.size());
}

// The probes that `weft probe plan` makes for the zone of 252 racks, and where they go.
class ZoneProbes {
 public:
  explicit ZoneProbes(double crossings_per_s) : router_(router()) {
    constexpr std::int64_t window_s = 10;
    const auto found = observe::probe::make_plan(
        router_, {},
        {.crossings = static_cast<std::uint64_t>(crossings_per_s * window_s), .routes_each = 0});
    REQUIRE(found.has_value());
    REQUIRE(found->coverage.below.empty());
    for (const observe::probe::PlannedFlow& one : found->flows) {
      TwinFlow flow{.src = one.src, .dst = one.dst, .sport = one.source_port};
      flow.per_s = static_cast<double>(found->probes) / window_s;
      per_s += flow.per_s;
      const route::UdpPorts there{one.source_port, observe::probe::default_port};
      add(one.src, one.dst, there, flow.forward_first, flow.forward_size);
      add(one.dst, one.src, {there.dst, there.src}, flow.back_first, flow.back_size);
      plan.flows.push_back(flow);
    }
  }

  Fabric fabric = model::testing::make_fabric(
      "{generator: ai_zone, racks: 252, hosts_per_rack: 2, gpus_per_host: 8, spines: 18, "
      "link: 400 Gbps}");
  TwinPlan plan;
  double per_s = 0;  // probes of all hosts

 private:
  route::Router router() {
    auto out = route::Router::create(fabric, {}, 1);
    REQUIRE(out.has_value());
    return *std::move(out);
  }
  void add(NodeId src, NodeId dst, const route::UdpPorts& ports, std::uint32_t& first,
           std::uint16_t& size) {
    route::Path path;
    REQUIRE(router_.append_udp_path(src, dst, ports, path));
    first = static_cast<std::uint32_t>(plan.links.size());
    size = static_cast<std::uint16_t>(path.size());
    plan.links.insert(plan.links.end(), path.begin(), path.end());
  }
  route::Router router_;
};

TEST_CASE("flips in 1 of 10^5 packets of one of 17,136 links are named first within a minute") {
  const ZoneProbes probes(12'000);
  const Fabric& fabric = probes.fabric;
  std::vector<LinkId> wires;
  for (const LinkId link : fabric.links())
    if (fabric.on_wire(link)) wires.push_back(link);
  REQUIRE(wires.size() == 17'136);
  const observe::localise::Localiser localiser(fabric);
  Rng rng(11);
  Twin twin(fabric, 1, 1);
  constexpr std::uint64_t planted = 8;
  std::size_t first = 0;
  double seen = 0, expected = 0;
  for (std::uint64_t i = 0; i < planted; ++i) {
    const LinkId bad = wires[rng.below(wires.size())];
    twin.set_damage(bad, 1e-5 * observe::probe::flip_shows);
    const EvidenceSet rows =
        twin.observe(probes.plan, {0}, Duration{60 * ns_per_s * ps_per_ns}).evidence;
    twin.set_damage(bad, 0);
    for (const model::Evidence& row : rows.rows) {
      seen += row.damaged;
      if (crosses(rows, row, bad)) expected += row.sent * 1e-5 * observe::probe::flip_shows;
    }
    const auto report = localiser.run(rows);
    if (report.verdicts.empty()) continue;
    const auto& verdict = report.verdicts.front();
    const bool is_link = verdict.entity.kind == observe::localise::EntityKind::link;
    CHECK(verdict.finding == observe::localise::Finding::corruption);
    first += is_link && verdict.entity.id == bad.value ? 1 : 0;
  }
  MESSAGE(fmt::format("{:.0f} probes/s of each host; {} of {} named first, {:.1f} damaged each",
                      probes.per_s / 504, first, planted, seen / static_cast<double>(planted)));
  CHECK(first == planted);
  CHECK(std::abs(seen - expected) < 5 * std::sqrt(expected));

  // 10^9 probes over links of which none is worse than another blame nobody: nothing at all
  // happens, or what cosmic rays and the like do to memories anywhere.
  for (const double stray : {0.0, 1e-9}) {
    for (const LinkId link : wires) twin.set_damage(link, stray);
    const auto rows = twin.observe(probes.plan, {0}, Duration{60 * ns_per_s * ps_per_ns}).evidence;
    const auto report = localiser.run(rows);
    CHECK(report.probes > 1'000'000'000);
    CHECK((report.damaged > 0) == (stray > 0));
    CHECK(report.verdicts.empty());
  }
}

}  // namespace
}  // namespace weft::adapt::sim
