#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "base/rng.hpp"
#include "base/test_approx.hpp"
#include "model/formats/test_fabric.hpp"
#include "operate/te/controller.hpp"
#include "operate/te/flow_file.hpp"
#include "operate/te/predict.hpp"

namespace weft::operate::te {
namespace {

using model::Health;
using model::LinkId;
using model::State;
using model::testing::make_fabric;
using route::Zone;

constexpr Time second{1'000 * ps_per_ms};

struct Net {
  explicit Net(std::string_view yaml)
      : fabric(make_fabric(yaml)),
        zone(route::find_zone(fabric).value()),
        hashing(route::Router::create(fabric, {}, 1).value()) {}
  Fabric fabric;
  Zone zone;
  route::Router hashing;
};

std::vector<Flow> random_flows(const Net& net, std::size_t count, bool equal, std::uint64_t seed) {
  Rng rng(seed);
  std::vector<Flow> out;
  const auto nics = net.fabric.nics();
  for (std::size_t i = 0; i < count; ++i)
    out.push_back({.src = nics[rng.below(nics.size())],
                   .dst = nics[rng.below(nics.size())],
                   .port = static_cast<std::uint16_t>(49'152 + i),
                   .weight = equal ? 1 : 1 + static_cast<double>(rng.below(100)),
                   .priority = 0});
  return out;
}

void cut(State& state, LinkId link) {
  state.set(link, {.health = Health::down});
  state.set(reverse(link), {.health = Health::down});
}

// Loads added up from the names of links alone, by another hand than judge().
double worst_by_hand(const Net& net, std::span<const Flow> flows, const Marks& marks) {
  std::map<std::string, double> load;
  for (std::size_t f = 0; f < flows.size(); ++f) {
    if (marks[f] == Zone::none) continue;
    const std::uint32_t from = net.zone.rack_of[flows[f].src], to = net.zone.rack_of[flows[f].dst];
    load[fmt::format("rtsw:{}->ctsw:{}", from, marks[f])] += flows[f].weight;
    load[fmt::format("ctsw:{}->rtsw:{}", marks[f], to)] += flows[f].weight;
  }
  double out = 0;
  for (const auto& [link, weight] : load) out = std::max(out, weight);
  return out;
}

TEST_CASE("decide: never worse than ECMP, at the bound for equal flows, dead links avoided") {
  Net net("{generator: ai_zone, racks: 8, spines: 4}");
  for (std::uint64_t seed = 1; seed <= 20; ++seed)
    for (const bool equal : {true, false}) {
      const std::vector<Flow> flows = random_flows(net, 200, equal, seed);
      State state;
      if (seed % 3 == 0) cut(state, net.zone.uplink(2, 1));
      const Decision d = decide(net.zone, net.hashing, state, flows, {});
      CHECK(d.refused == "");
      CHECK(d.judgement.dead.empty());
      CHECK(d.judgement.worst <= d.judgement.hashed);
      CHECK(d.judgement.worst == approx(worst_by_hand(net, flows, d.marks)));
      CHECK(d.judgement.worst >= d.bound - 1e-9);
      if (equal && state.healthy()) CHECK(d.judgement.worst == approx(d.bound));
      for (std::size_t f = 0; f < flows.size(); ++f) {
        const bool inside = net.zone.rack_of[flows[f].src] == net.zone.rack_of[flows[f].dst];
        CHECK((d.marks[f] == Zone::none) == inside);
      }
      // What is installed already stays.
      const Decision again = decide(net.zone, net.hashing, state, flows, d.marks);
      CHECK(again.marks == d.marks);
      CHECK(again.hit == 0);
    }
}

TEST_CASE("decide: a failure moves the flows that were hit, and no others where so told") {
  Net net("{generator: ai_zone, racks: 8, spines: 8}");
  const std::vector<Flow> flows = random_flows(net, 300, true, 5);
  const Decision before = decide(net.zone, net.hashing, {}, flows, {});
  State state;
  cut(state, net.zone.uplink(3, 2));
  const Decision after = decide(net.zone, net.hashing, state, flows, before.marks,
                                {.others = route::Assignment::Others::stay});
  std::uint32_t hit = 0;
  for (std::size_t f = 0; f < flows.size(); ++f) {
    const bool crossed = before.marks[f] == 2 && (net.zone.rack_of[flows[f].src] == 3 ||
                                                  net.zone.rack_of[flows[f].dst] == 3);
    hit += crossed ? 1 : 0;
    CHECK((after.marks[f] != before.marks[f]) == crossed);
  }
  CHECK(hit > 0);
  CHECK(after.hit == hit);
  CHECK(after.moved == 0);
}

TEST_CASE("a NIC that is cut off costs its own flows their marks, and no others") {
  Net net("{generator: ai_zone, racks: 4, hosts_per_rack: 1, gpus_per_host: 4, spines: 4}");
  const auto nics = net.fabric.nics();
  std::vector<Flow> flows;
  for (std::size_t i = 0; i < nics.size(); ++i)
    flows.push_back({.src = nics[i], .dst = nics[(i + 4) % nics.size()]});
  const Decision before = decide(net.zone, net.hashing, {}, flows, {});
  CHECK(before.without == 0);
  CHECK(before.judgement.worst == 1);
  State state;
  cut(state, net.zone.port_of[nics[5]]);
  for (const Marks& installed : {Marks{}, before.marks}) {
    const Decision after = decide(net.zone, net.hashing, state, flows, installed);
    CHECK(after.refused.empty());
    CHECK(after.without == 2);  // what it sends and what is sent to it
    CHECK(after.judgement.worst == 1);
    for (std::size_t f = 0; f < flows.size(); ++f)
      CHECK((after.marks[f] == Zone::none) == (f == 1 || f == 5));
  }
}

TEST_CASE("judge: bad marks of anybody are found") {
  Net net("{generator: ai_zone, racks: 4, spines: 4}");
  const auto nics = net.fabric.nics();
  // All flows of a rack over one spine.
  std::vector<Flow> flows;
  for (std::size_t i = 0; i < 16; ++i) flows.push_back({.src = nics[i], .dst = nics[16 + i]});
  const Judgement heaped = judge(net.zone, net.hashing, {}, flows, Marks(flows.size(), 1));
  CHECK(heaped.worst == 16);
  CHECK(heaped.worst > heaped.hashed);
  CHECK(net.fabric.name(heaped.worst_link) == "rtsw:0->ctsw:1");
  State state;
  cut(state, net.zone.uplink(1, 1));
  const Judgement dead = judge(net.zone, net.hashing, state, flows, Marks(flows.size(), 1));
  CHECK(dead.dead.size() == 16);
  // Without marks: what ECMP does.
  const Judgement none =
      judge(net.zone, net.hashing, state, flows, Marks(flows.size(), Zone::none));
  CHECK(none.worst == none.hashed);
  // A link at half rate counts double.
  State slow;
  slow.set(net.zone.uplink(0, 1), {.rate_factor = 0.5});
  CHECK(judge(net.zone, net.hashing, slow, flows, Marks(flows.size(), 1)).worst == 32);
  for (std::uint32_t r = 0; r < 4; ++r) cut(state, net.zone.uplink(1, r));
  CHECK(judge(net.zone, net.hashing, state, flows, Marks(flows.size(), 1)).cut_off.size() == 16);
}

TEST_CASE("damping: down at once, up after a hold that doubles, forgotten in the end") {
  const Net net("{generator: ai_zone, racks: 2, spines: 2}");
  const model::CableId cable = model::cable_of(net.zone.uplink(0, 0));
  LinkHistory history({.hold = Duration{2 * second.ps},
                       .hold_max = Duration{10 * second.ps},
                       .forget = Duration{100 * second.ps}});
  const auto is_usable = [&](Time at) {
    return history.state_at(at).link(net.zone.uplink(0, 0)).health == Health::up &&
           history.state_at(at).link(reverse(net.zone.uplink(0, 0))).health == Health::up;
  };
  Time now{};
  history.note(cable, true, now);  // no news
  CHECK(is_usable(now));
  for (const std::int64_t hold : {2, 4, 8, 10, 10}) {
    history.note(cable, false, now);
    CHECK(!is_usable(now));
    CHECK(!history.next_release(now));
    now = now + Duration{second.ps};
    history.note(cable, true, now);
    const Time free = now + Duration{hold * second.ps};
    CHECK(!is_usable(Time{free.ps - 1}));
    CHECK(is_usable(free));
    CHECK(history.next_release(now) == free);
    now = free;
  }
  now = now + Duration{200 * second.ps};
  history.note(cable, false, now);
  history.note(cable, true, now);
  CHECK(is_usable(now + Duration{2 * second.ps}));
}

// What a switch would hold.
class Table final : public port::RouteSink {
 public:
  Status apply(std::span<const port::RouteMark> changes) override {
    if (fails) return fail(Errc::io, {}, "the switch does not answer");
    for (port::RouteMark mark : changes) {
      const LinkId uplink = std::exchange(mark.uplink, LinkId{});
      if (uplink.valid())
        marks[mark] = uplink;
      else
        marks.erase(mark);
    }
    return {};
  }
  Result<std::vector<port::RouteMark>> installed() override {
    std::vector<port::RouteMark> out;
    for (const auto& [mark, uplink] : marks) {
      out.push_back(mark);
      out.back().uplink = uplink;
    }
    return out;
  }
  Status renew() override {
    ++renewals;
    return {};
  }
  Status restore(std::span<const model::CableId> cables) override {
    restored.insert(restored.end(), cables.begin(), cables.end());
    return {};
  }
  std::map<port::RouteMark, LinkId> marks;
  bool fails = false;
  int renewals = 0;
  std::vector<model::CableId> restored;
};

TEST_CASE("loop: the sink has what was decided, through failures, flaps and a second controller") {
  Net net("{generator: ai_zone, racks: 6, spines: 4}");
  const std::vector<Flow> flows = random_flows(net, 120, true, 9);
  Table table;
  auto loop = TeLoop::create(net.fabric, table, 1);
  REQUIRE(loop);
  REQUIRE(loop->start(flows, {}));
  const auto before = table.marks;
  const auto crosses = [&](LinkId link) {
    std::size_t out = 0;
    for (const auto& [mark, uplink] : table.marks) {
      std::uint32_t c = 0;
      const std::uint32_t rack = net.zone.rack_of[mark.src];
      while (net.zone.uplink(rack, c) != uplink) ++c;
      const auto path = net.zone.path(mark.src, mark.dst, c);
      out += std::ranges::count(path, link) > 0 ? 1 : 0;
    }
    return out;
  };
  const LinkId bad = net.zone.uplink(2, 3);
  CHECK(crosses(bad) + crosses(reverse(bad)) > 0);
  const auto down = loop->step(std::array{LinkNews{model::cable_of(bad), false}}, second);
  REQUIRE(down);
  CHECK(down->changes >= down->decision.hit);
  CHECK(crosses(bad) + crosses(reverse(bad)) == 0);
  CHECK(table.marks.size() == before.size());
  // Back, and on hold: nothing goes there yet.
  REQUIRE(loop->step(std::array{LinkNews{model::cable_of(bad), true}}, second));
  CHECK(crosses(bad) == 0);
  REQUIRE(loop->next_step(second));
  const auto then = *loop->next_step(second);
  CHECK(then > second);
  REQUIRE(loop->step({}, then));
  CHECK(!loop->next_step(then));

  // Another one takes over: the same marks, and flows that are gone are cleared.
  auto second_loop = TeLoop::create(net.fabric, table, 1);
  REQUIRE(second_loop);
  const auto held = table.marks;
  const auto taken = second_loop->start(flows, {});
  REQUIRE(taken);
  CHECK(taken->changes == 0);
  CHECK(table.marks == held);
  REQUIRE(second_loop->start({flows.begin(), flows.begin() + 10}, {}));
  CHECK(table.marks.size() <= 10);

  // What the sink refuses is tried again.
  table.fails = true;
  const LinkNews news{model::cable_of(net.zone.uplink(net.zone.rack_of[flows[0].src], 0)), false};
  const std::size_t at = crosses(net.zone.uplink(net.zone.rack_of[flows[0].src], 0));
  const auto refused = second_loop->step(std::array{news}, then);
  CHECK(refused.has_value() == (at == 0));
  table.fails = false;
  REQUIRE(second_loop->step({}, then));
  CHECK(crosses(net.zone.uplink(net.zone.rack_of[flows[0].src], 0)) == 0);
}

// Each NIC of a rack to the same one of the next, with a second QP.
std::vector<Flow> ring_flows(const Net& net) {
  std::vector<Flow> out;
  const auto nics = net.fabric.nics();
  for (std::uint32_t i = 0; i < nics.size(); ++i)
    out.push_back({.src = nics[i],
                   .dst = nics[(i + 4) % nics.size()],
                   .port = 50'000,
                   .weight = 1,
                   .priority = 0,
                   .second = 51'000});
  return out;
}

constexpr std::string_view six_racks =
    "{generator: ai_zone, racks: 6, hosts_per_rack: 1, gpus_per_host: 4, spines: 4}";

// A rack of 4 flows that has lost one of 4 uplinks carries 2 on some link, and with halves 8/3,
// rounded up, of them: 1.5. No division is below 4/3.
TEST_CASE("split: halves where they make the worst link better, and nowhere else") {
  Net net(six_racks);
  const std::vector<Flow> flows = ring_flows(net);
  const Settings split{.split = true};
  const Decision healthy = decide(net.zone, net.hashing, {}, flows, {}, split);
  CHECK(healthy.divided == 0);
  CHECK(healthy.judgement.worst == 1);

  State state;
  cut(state, net.zone.uplink(2, 1));
  CHECK(decide(net.zone, net.hashing, state, flows, healthy.marks).judgement.worst == 2);
  const Decision one = decide(net.zone, net.hashing, state, flows, healthy.marks, split);
  CHECK(one.judgement.worst == 1.5);
  CHECK(one.bound == 2);
  const MarkedFlows qps = by_qp(flows, one.marks, one.second);
  CHECK(one.judgement.worst == worst_by_hand(net, qps.flows, qps.marks));
  CHECK(one.divided > 0);
  CHECK(one.divided <= 8);  // of 24: those from and to that rack
  REQUIRE(qps.flows.size() == flows.size() + one.divided);
  std::map<std::pair<NodeId, NodeId>, double> weight;
  std::set<std::tuple<NodeId, NodeId, std::uint16_t>> ports;
  for (const Flow& flow : qps.flows) {
    weight[{flow.src, flow.dst}] += flow.weight;
    CHECK(ports.insert({flow.src, flow.dst, flow.port}).second);
  }
  for (const Flow& flow : flows) CHECK(weight[{flow.src, flow.dst}] == 1);
  // They come back whole from a file, too.
  const std::string text = marks_csv(net.fabric, net.zone, qps.flows, qps.marks);
  const auto file = read_marks_csv(net.fabric, net.zone, text, "marks.csv");
  REQUIRE_MESSAGE(file.has_value(), (file ? "" : file.error().text()));
  CHECK(file->marks == qps.marks);
  const std::vector<Flow> whole = whole_flows(file->flows);
  REQUIRE(whole.size() == flows.size());
  for (std::size_t f = 0; f < flows.size(); ++f) {
    CHECK(whole[f].port == flows[f].port);
    CHECK(whole[f].weight == 1);
  }
  // What is installed stays, and is joined again when the cable is back.
  const Decision again = decide(net.zone, net.hashing, state, flows, one.marks, split, one.second);
  CHECK(again.marks == one.marks);
  CHECK(again.second == one.second);
  const Decision back = decide(net.zone, net.hashing, {}, flows, one.marks, split, one.second);
  CHECK(back.divided == 0);
  CHECK(back.judgement.worst == 1);

  // Without a second QP there is nothing to divide.
  std::vector<Flow> single = flows;
  for (Flow& flow : single) flow.second = 0;
  CHECK(decide(net.zone, net.hashing, state, single, {}, split).divided == 0);

  // Never worse, by flows divided or not, healthy or broken.
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    std::vector<Flow> random = random_flows(net, 30, seed % 2 == 0, seed);
    for (Flow& flow : random) flow.second = static_cast<std::uint16_t>(flow.port + 1'000);
    Rng rng(seed);
    State broken;
    for (int i = 0; i < 3; ++i)
      cut(broken, net.zone.uplink(static_cast<std::uint32_t>(rng.below(6)),
                                  static_cast<std::uint32_t>(rng.below(3))));
    const Decision whole = decide(net.zone, net.hashing, broken, random, {});
    const Decision d = decide(net.zone, net.hashing, broken, random, {}, split);
    CHECK(d.judgement.worst <= whole.judgement.worst);
    CHECK(d.judgement.worst <= d.judgement.hashed * (1 + 1e-9));
    CHECK(d.judgement.hashed == whole.judgement.hashed);
    CHECK(d.judgement.dead.empty());
  }
}

TEST_CASE("loop: second QPs have marks while their flows are divided, whoever is the controller") {
  Net net(six_racks);
  const std::vector<Flow> flows = ring_flows(net);
  Table table;
  const LoopOptions options{.base = {}, .settings = {.split = true}, .damping = {}};
  auto loop = TeLoop::create(net.fabric, table, 1, options);
  REQUIRE(loop);
  REQUIRE(loop->start(flows, {}));
  const auto seconds = [&] {
    return std::ranges::count(table.marks, 51'000,
                              [](const auto& entry) { return entry.first.port; });
  };
  CHECK(table.marks.size() == 24);
  CHECK(seconds() == 0);
  const model::CableId cable = model::cable_of(net.zone.uplink(2, 1));
  const auto down = loop->step(std::array{LinkNews{cable, false}}, second);
  REQUIRE(down);
  CHECK(down->decision.judgement.worst == 1.5);
  CHECK(seconds() == down->decision.divided);
  CHECK(seconds() > 0);
  CHECK(table.marks.size() == 24 + down->decision.divided);
  CHECK(loop->step({}, second)->changes == 0);

  // Another controller finds what is divided; one that does not divide joins it again.
  const auto held = table.marks;
  auto heir = TeLoop::create(net.fabric, table, 1, options);
  heir->note(std::array{LinkNews{cable, false}}, second);
  CHECK(heir->start(flows, second)->changes == 0);
  CHECK(table.marks == held);
  auto plain = TeLoop::create(net.fabric, table, 1);
  plain->note(std::array{LinkNews{cable, false}}, second);
  CHECK(plain->start(flows, second)->decision.judgement.worst == 2);
  CHECK(seconds() == 0);
  CHECK(table.marks.size() == 24);

  // The cable is back, and its hold is over: whole flows again.
  table.marks = held;
  REQUIRE(heir->start(flows, second));
  REQUIRE(heir->step(std::array{LinkNews{cable, true}}, second));
  REQUIRE(heir->next_step(second));
  CHECK(heir->step({}, *heir->next_step(second))->decision.judgement.worst == 1);
  CHECK(seconds() == 0);
}

// Cables as a test has them.
class Cables final : public port::LinkFeed {
 public:
  std::vector<LinkNews> news() override { return std::exchange(coming, {}); }
  std::vector<model::CableId> routed(std::span<const model::CableId> cables) override {
    ++asked;
    std::vector<model::CableId> out;
    for (const model::CableId cable : cables)
      if (ready.contains(cable)) out.push_back(cable);
    return out;
  }
  State drained() override { return drains; }
  std::vector<LinkNews> coming;
  std::set<model::CableId> ready;
  State drains;
  int asked = 0;
};

TEST_CASE("controller: renews, and waits for routes and holds of cables that come back") {
  Net net(six_racks);
  const std::vector<Flow> flows = ring_flows(net);
  Table table;
  Cables cables;
  const LinkId uplink = net.zone.uplink(2, 1);
  const model::CableId cable = model::cable_of(uplink);
  const auto over = [&] {
    return std::ranges::count(table.marks, uplink, [](const auto& entry) { return entry.second; });
  };
  cables.coming = {{cable, false}};  // down before the controller began
  auto controller = Controller::create(net.fabric, cables, table, 1);
  REQUIRE(controller);
  const auto first = controller->start(flows, {});
  REQUIRE(first);
  CHECK(first->is_first);
  CHECK(first->news.size() == 1);
  CHECK(over() == 0);
  CHECK(table.renewals == 1);
  CHECK(controller->next_turn() == Time{} + 1_s);
  CHECK(!controller->turn(Time{} + 1_s));
  CHECK(table.renewals == 2);

  // Down again before it was up, in one batch: it is not asked about its routes.
  cables.coming = {{cable, true}, {cable, false}};
  cables.ready = {cable};
  Time now = Time{} + 1'500'000_us;
  REQUIRE(controller->turn(now));
  CHECK(!controller->turn(Time{} + 2_s));
  CHECK(cables.asked == 0);
  // Up: its routes are waited for, then its hold.
  cables.ready.clear();
  cables.coming = {{cable, true}};
  now = Time{} + 3_s;
  CHECK(!controller->turn(now));
  CHECK(controller->next_turn() == now + 200'000_us);
  cables.ready = {cable};
  const auto up = controller->turn(now + 200'000_us);
  REQUIRE(up);
  CHECK(table.restored == std::vector{cable});
  CHECK(over() == 0);
  now = now + 200'000_us;
  std::optional<Event> released;
  for (int turns = 0; turns < 100 && !released; ++turns) {
    now = controller->next_turn();
    released = controller->turn(now);
  }
  REQUIRE(released);
  CHECK(over() == 1);
  CHECK(released->step.decision.judgement.worst == 1);
}

TEST_CASE("controller: tries again what a sink refused, and leaves what is drained") {
  Net net(six_racks);
  Table table;
  Cables cables;
  const auto over = [&](LinkId uplink) {
    return std::ranges::count(table.marks, uplink, [](const auto& entry) { return entry.second; });
  };
  const LinkId uplink = net.zone.uplink(2, 1);
  const Time now = Time{} + 500'000_us;
  auto controller = Controller::create(net.fabric, cables, table, 1);
  REQUIRE(controller);
  REQUIRE(controller->start(ring_flows(net), {}));
  // What is refused is tried again a second later, though no news come.
  table.fails = true;
  cables.coming = {{model::cable_of(uplink), false}};
  CHECK(!controller->turn(now));
  CHECK(over(uplink) == 1);
  table.fails = false;
  CHECK(!controller->turn(now + 999'000_us));
  CHECK(controller->next_turn() <= now + 1_s);
  REQUIRE(controller->turn(now + 1_s));
  CHECK(over(uplink) == 0);

  // Drains are heard of as they happen.
  const LinkId drained = net.zone.uplink(4, 3);
  for (const LinkId link : {drained, reverse(drained)})
    cables.drains.set(link, {.health = model::Health::draining});
  const auto decided = controller->turn(now + 1'100'000_us);
  REQUIRE(decided);
  CHECK(decided->step.changes >= 2);
  CHECK(over(drained) == 0);
}

TEST_CASE("predict: flows hit, seconds without a path and bytes, in closed form") {
  Net net(six_racks);  // one flow over each uplink, each way
  const std::vector<Flow> flows = ring_flows(net);
  const Decision before = decide(net.zone, net.hashing, {}, flows, {});
  State failed;
  cut(failed, net.zone.uplink(2, 1));
  const Decision after = decide(net.zone, net.hashing, failed, flows, before.marks);
  route::RoutingConfig routing;
  const auto predicted = [&](const State& state, const Decision& then) {
    auto out = predict({.fabric = net.fabric,
                        .routing = routing,
                        .seed = 1,
                        .healthy = {},
                        .failed = state,
                        .flows = flows,
                        .before = before,
                        .after = then,
                        .bytes_per_s = 50e9});
    REQUIRE(out);
    return *std::move(out);
  };
  const model::FailureOutcome live = predicted(failed, after);
  CHECK(live.hit == 2);
  CHECK(live.stranded == 0);
  CHECK(live.path_again_p50_s == approx(1.2e-3));
  CHECK(live.path_again_max_s == approx(2.3e-3));
  CHECK(live.stalled_bytes == approx(50e9 * 3.5e-3));
  const auto path = net.zone.path(flows[0].src, flows[0].dst, 0);
  double latency_s = 0;
  for (const LinkId link : path) latency_s += net.fabric.latency(link).seconds();
  CHECK(live.lost_bytes == approx(2 * 50e9 * latency_s));

  // Nobody there: until the lease is over, or BGP has led round, whichever is later.
  routing.te_dead = true;
  CHECK(predicted(failed, after).path_again_max_s == approx(3));
  routing.te_lease = 50'000_us;
  routing.convergence.emplace(route::RoutingConfig::Convergence{}).bgp = 200'000_us;
  const double last = predicted(failed, after).path_again_max_s;
  CHECK((last == approx(0.05) || last == approx(0.2)));  // as it is hashed
  CHECK(predicted(failed, after).path_again_p50_s == approx(1.2e-3));

  // All uplinks of a rack: its flows have no path any more.
  State gone;
  for (std::uint32_t column = 0; column < 4; ++column) cut(gone, net.zone.uplink(2, column));
  const model::FailureOutcome never =
      predicted(gone, decide(net.zone, net.hashing, gone, flows, before.marks));
  CHECK(never.hit == 8);
  CHECK(never.stranded == 8);
  CHECK(std::isnan(never.path_again_max_s));
  CHECK(predicted({}, before).hit == 0);
}

TEST_CASE("files: marks come back as they were; what is wrong is named") {
  Net net("{generator: ai_zone, racks: 4, spines: 4}");
  const std::vector<Flow> flows = random_flows(net, 40, false, 3);
  const Decision d = decide(net.zone, net.hashing, {}, flows, {});
  const std::string text = marks_csv(net.fabric, net.zone, flows, d.marks);
  const auto back = read_marks_csv(net.fabric, net.zone, text, "marks.csv");
  REQUIRE_MESSAGE(back.has_value(), (back ? "" : back.error().text()));
  CHECK(back->marks == d.marks);
  CHECK(marks_csv(net.fabric, net.zone, back->flows, back->marks) == text);

  const auto error = [&](std::string_view csv) {
    const auto read = read_marks_csv(net.fabric, net.zone, csv, "m.csv");
    return read ? std::string("none") : read.error().text();
  };
  CHECK(error("src,dst\nnic:0,host:1\n").starts_with("m.csv:2:7: host:1 is not a NIC"));
  CHECK(error("src,dst,weight\nnic:0,nic:20,0\n")
            .starts_with("m.csv:2:14: the weight is not above 0"));
  CHECK(error("src,dst,port\nnic:0,nic:20,70000\n").starts_with("m.csv:2:14: 70000 is above"));
  CHECK(error("src,dst\nnic:0,nic:20\nnic:0,nic:20\n")
            .starts_with("m.csv:3:1: nic:0 to nic:20 with port 49152 is there twice"));
  CHECK(error("src,dst,uplink\nnic:0,nic:20,rtsw:1->ctsw:0\n")
            .starts_with("m.csv:2:14: rtsw:1->ctsw:0 is not an uplink of the rack of nic:0"));
  for (const char* rows : {"1,2", "1,1", "1,2\nnic:0,nic:20,2,1", "1,3\nnic:0,nic:20,2,3"})
    CHECK(error(std::string("src,dst,port,second\nnic:0,nic:20,") + rows + "\n")
              .find("that could be the other half") != std::string::npos);
  CHECK(error("src,dst,port,second\nnic:0,nic:20,1,2\nnic:0,nic:20,2,\n") == "none");
}

}  // namespace
}  // namespace weft::operate::te
