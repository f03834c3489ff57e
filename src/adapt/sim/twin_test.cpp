#include "adapt/sim/twin.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "adapt/sim/sample.hpp"
#include "base/config.hpp"
#include "model/formats/test_fabric.hpp"

namespace weft::adapt::sim {
namespace {

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
    CHECK(squares / draws == doctest::Approx(variance).epsilon(0.06));
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
  CHECK(per_s == doctest::Approx(12 * 320));
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
  CHECK(twin.loss(bad, 1) == doctest::Approx(0.05));
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
  CHECK(hit.lost / hit.sent == doctest::Approx(0.05).epsilon(0.05));
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
  CHECK(stalled.lost / stalled.sent == doctest::Approx(0.05).epsilon(0.3));
  CHECK(stalled.late == doctest::Approx(stalled.lost).epsilon(0.1));
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
  CHECK(hit / through == doctest::Approx(1.0 / 8).epsilon(0.4));
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
            doctest::Approx(0.02).epsilon(0.3));
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

}  // namespace
}  // namespace weft::adapt::sim
