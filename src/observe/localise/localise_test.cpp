#include "observe/localise/localise.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/hash.hpp"
#include "base/json_line.hpp"
#include "base/rng.hpp"
#include "base/test_approx.hpp"
#include "model/formats/test_fabric.hpp"
#include "observe/localise/truth.hpp"

namespace weft::observe::localise {
namespace {

using model::testing::link;
using model::testing::make_fabric;
using model::testing::node;

// 6 racks of 2 hosts with a NIC each; rtsw:r is cabled to ctsw:0 ... ctsw:3:
//
//   ctsw:0  ctsw:1  ctsw:2  ctsw:3
//      \       |       |      /
//       rtsw:0 ... rtsw:5              full mesh
//       |    |
//     nic:0 nic:1
Fabric zone() {
  return make_fabric(
      "{generator: ai_zone, racks: 6, hosts_per_rack: 2, gpus_per_host: 1, spines: 4}");
}

// Probes between all NICs of different racks over all spines, which lose what is expected of them.
class Probing {
 public:
  explicit Probing(const Fabric& fabric) : fabric_(fabric) {}

  Probing& lose(std::string_view name, double loss) {
    loss_[link(fabric_, name)] = loss;
    return *this;
  }
  Probing& lose_at(std::string_view name, double loss) {
    for (const LinkId out : fabric_.out(node(fabric_, name)))
      loss_[out] = loss_[model::reverse(out)] = loss;
    return *this;
  }

  EvidenceSet see(std::uint32_t probes, const std::string& traffic_class = "0") const {
    EvidenceSet out;
    const std::uint8_t klass = out.class_index(traffic_class);
    const NodeId none;
    for (const NodeId src : fabric_.nics())
      for (const NodeId dst : fabric_.nics())
        for (const NodeId spine : fabric_.role(fabric_.find_role("ctsw")).nodes) {
          const LinkId up = first_out(src, none), down = model::reverse(first_out(dst, none));
          if (fabric_.to(up) == fabric_.from(down)) continue;
          Evidence row{.t = {1}, .src = src, .dst = dst};
          row.sport = static_cast<std::uint16_t>(spine.value);
          row.traffic_class = klass;
          row.leg = model::Leg::forward;
          out.set_path(row, std::vector{up, first_out(fabric_.to(up), spine),
                                        first_out(spine, fabric_.from(down)), down});
          double passes = 1;
          for (const LinkId one : out.path(row))
            if (const auto found = loss_.find(one); found != loss_.end())
              passes *= 1 - found->second;
          row.sent = probes;
          row.lost = static_cast<std::uint32_t>(std::lround(probes * (1 - passes)));
          out.rows.push_back(row);
        }
    return out;
  }

 private:
  LinkId first_out(NodeId from, NodeId to) const {
    for (const LinkId out : fabric_.out(from))
      if (fabric_.on_wire(out) && (!to.valid() || fabric_.to(out) == to)) return out;
    FAIL("no such link");
    return {};
  }

  const Fabric& fabric_;
  std::map<LinkId, double> loss_;
};

std::vector<std::string> names(const Fabric& fabric, const Report& report) {
  std::vector<std::string> out;
  for (const Verdict& v : report.verdicts)
    out.push_back(std::string(to_text(v.finding)) + " " + name(fabric, v.entity));
  std::ranges::sort(out);
  return out;
}

void append(EvidenceSet& to, const EvidenceSet& from) {
  for (Evidence row : from.rows) {
    to.set_path(row, from.path(row));
    row.traffic_class = to.class_index(from.classes[row.traffic_class]);
    to.rows.push_back(row);
  }
}

using Names = std::vector<std::string>;

TEST_CASE("one lossy direction is one verdict, with its rate") {
  const Fabric fabric = zone();
  const Report report =
      Localiser(fabric).run(Probing(fabric).lose("rtsw:2->ctsw:1", 0.01).see(1000));
  REQUIRE(names(fabric, report) == Names{"loss rtsw:2->ctsw:1"});
  const Verdict& v = report.verdicts.front();
  CHECK(v.probability > 0.99);
  CHECK(v.loss == approx(0.01).epsilon(0.02));
  CHECK(v.loss_low < 0.01);
  CHECK(v.loss_high > 0.01);
  CHECK(v.lost == approx(200).epsilon(0.02));
  CHECK(report.unexplained < 4);
  CHECK(v.needs_probes == 0);
}

TEST_CASE("both directions alike are a cable, unlike ones two links") {
  const Fabric fabric = zone();
  const auto found = [&](double up, double down) {
    return names(
        fabric,
        Localiser(fabric).run(
            Probing(fabric).lose("rtsw:2->ctsw:1", up).lose("ctsw:1->rtsw:2", down).see(1000)));
  };
  CHECK(found(0.01, 0.01) == Names{"loss rtsw:2--ctsw:1"});
  CHECK(found(0.2, 0.004) == Names{"loss ctsw:1->rtsw:2", "loss rtsw:2->ctsw:1"});
}

TEST_CASE("a link that damages payloads is told from one that loses, also where it is the same") {
  const Fabric fabric = zone();
  const Localiser localiser(fabric);
  // What one link loses is what another, or the same, damages.
  const auto found = [&](std::string_view losing, std::string_view damaging) {
    EvidenceSet rows = Probing(fabric).lose(losing, 0.01).see(1000);
    const EvidenceSet other = Probing(fabric).lose(damaging, 0.02).see(1000);
    for (std::size_t i = 0; i < rows.rows.size(); ++i) rows.rows[i].damaged = other.rows[i].lost;
    return localiser.run(rows);
  };
  const Report apart = found("rtsw:2->ctsw:1", "ctsw:3->rtsw:4");
  CHECK(names(fabric, apart) == Names{"corruption ctsw:3->rtsw:4", "loss rtsw:2->ctsw:1"});
  CHECK(apart.damaged == 400);
  for (const Verdict& v : apart.verdicts) {
    const double share = v.finding == Finding::corruption ? 0.02 : 0.01;
    CHECK(v.loss == approx(share).epsilon(0.03));
  }
  CHECK(names(fabric, found("rtsw:2->ctsw:1", "rtsw:2->ctsw:1")) ==
        Names{"corruption rtsw:2->ctsw:1", "loss rtsw:2->ctsw:1"});
}

TEST_CASE("answers that come twice name the link, on the way back") {
  const Fabric fabric = zone();
  EvidenceSet rows = Probing(fabric).lose("ctsw:0->rtsw:5", 0.01).see(1000);
  for (Evidence& row : rows.rows) {
    row.leg = model::Leg::back;
    std::swap(row.src, row.dst);
    row.duplicates = std::exchange(row.lost, 0);
  }
  CHECK(names(fabric, Localiser(fabric).run(rows)) == Names{"duplicates ctsw:0->rtsw:5"});
}

// Round trips that answer over another spine than they come by, some over a link that takes more
// time; as one row each, or one for each way.
EvidenceSet timed(const Fabric& fabric, std::string_view slow, double more_us, bool by_leg) {
  const EvidenceSet ways = Probing(fabric).see(100);
  std::map<std::tuple<NodeId, NodeId, std::uint32_t>, std::size_t> by_ends;
  const std::uint32_t spine_first = ways.rows.front().sport;
  for (std::size_t i = 0; i < ways.rows.size(); ++i)
    by_ends[{ways.rows[i].src, ways.rows[i].dst, ways.rows[i].sport - spine_first}] = i;
  EvidenceSet out;
  out.class_index("0");
  for (const Evidence& there : ways.rows) {
    const std::uint32_t spine = there.sport - spine_first;
    const Evidence& back = ways.rows[by_ends.at({there.dst, there.src, (spine + 1) % 4})];
    std::vector<LinkId> path(ways.path(there).begin(), ways.path(there).end());
    path.insert(path.end(), ways.path(back).begin(), ways.path(back).end());
    Evidence row = there;
    double us = 3 + 0.1 * spine;
    for (const LinkId crossed : path)
      us += fabric.latency(crossed).us() + (crossed == link(fabric, slow) ? more_us : 0);
    row.rtt_p50_us = row.rtt_p99_us = static_cast<float>(us);
    row.leg = by_leg ? model::Leg::forward : model::Leg::round_trip;
    out.set_path(row, by_leg ? ways.path(there) : path);
    out.rows.push_back(row);
    if (!by_leg) continue;
    row.leg = model::Leg::back;
    out.set_path(row, ways.path(back));
    out.rows.push_back(row);
  }
  return out;
}

TEST_CASE("a link that takes longer than queues do is named with its direction") {
  const Fabric fabric = zone();
  const Localiser localiser(fabric);
  for (const bool by_leg : {false, true})
    for (const std::string_view slow : {"rtsw:2->ctsw:1", "ctsw:1->rtsw:2", "ctsw:3->rtsw:0"}) {
      CHECK(names(fabric, localiser.run(timed(fabric, slow, 2000, by_leg))) ==
            Names{fmt::format("delay {}", slow)});
      CHECK(localiser.run(timed(fabric, slow, 900, by_leg)).verdicts.empty());
    }
  CHECK(Localiser(fabric, {.delay_us = 100})
            .run(timed(fabric, "rtsw:2->ctsw:1", 900, false))
            .verdicts.size() == 1);
}

TEST_CASE("a probe counts once, whether its legs have rows of their own or not") {
  const Fabric fabric = zone();
  const Localiser localiser(fabric);
  constexpr std::uint64_t flows = 12 * 10 * 4;  // NICs, NICs of other racks, spines
  for (const bool by_leg : {false, true})
    CHECK(localiser.run(timed(fabric, "rtsw:2->ctsw:1", 0, by_leg)).probes == 100 * flows);
  // On the way back are those that came there.
  EvidenceSet lossy = timed(fabric, "rtsw:2->ctsw:1", 0, true);
  for (Evidence& row : lossy.rows) {
    if (row.leg == model::Leg::forward) ++row.lost;
    if (row.leg == model::Leg::back) --row.sent;
  }
  CHECK(localiser.run(lossy).probes == 100 * flows);
}

TEST_CASE("a switch is one cause, and two links of it are two") {
  const Fabric fabric = zone();
  const auto found = [&](const Probing& probing) {
    return names(fabric, Localiser(fabric).run(probing.see(1000)));
  };
  CHECK(found(Probing(fabric).lose_at("ctsw:3", 0.01)) == Names{"loss ctsw:3"});
  CHECK(found(Probing(fabric).lose("ctsw:3->rtsw:0", 0.01).lose("ctsw:3->rtsw:4", 0.03)) ==
        Names{"loss ctsw:3->rtsw:0", "loss ctsw:3->rtsw:4"});
}

TEST_CASE("every single link of the fabric is found, at 1 % and when dark") {
  const Fabric fabric = zone();
  const Localiser localiser(fabric);
  for (const LinkId bad : fabric.links()) {
    if (!fabric.is_switch(fabric.from(bad)) || !fabric.is_switch(fabric.to(bad))) continue;
    for (const double loss : {0.01, 1.0}) {
      const Report report = localiser.run(Probing(fabric).lose(fabric.name(bad), loss).see(500));
      CHECK(names(fabric, report) == Names{"loss " + fabric.name(bad)});
    }
  }
}

TEST_CASE("any order of rows and counters gives the same bytes") {
  const Fabric fabric = zone();
  EvidenceSet set = Probing(fabric).lose("rtsw:2->ctsw:1", 0.013).lose_at("ctsw:3", 0.007).see(900);
  append(set, Probing(fabric).lose("rtsw:5->ctsw:0", 0.02).see(300, "46"));
  std::vector<LinkCounters> counters;
  for (const LinkId one : fabric.links())
    counters.push_back({{1}, one, "46", 1000, 10, one.value % 7 == 0 ? 20U : 0U, 0});
  const Localiser localiser(fabric);
  const std::string once = to_json_lines(fabric, localiser.run(set, counters));
  Rng rng(1);
  for (int i = 0; i < 5; ++i) {
    rng.shuffle(std::span(set.rows));
    rng.shuffle(std::span(counters));
    CHECK(to_json_lines(fabric, localiser.run(set, counters)) == once);
  }
}

TEST_CASE("too little is no verdict but a suspect, and a wish for more probes") {
  const Fabric fabric = zone();
  EvidenceSet set = Probing(fabric).see(100);
  for (Evidence& row : set.rows)
    if (set.path(row)[1] == link(fabric, "rtsw:2->ctsw:1") && row.src.value % 2 == 0) {
      row.lost = 2;
      break;
    }
  const Report report = Localiser(fabric).run(set);
  CHECK(report.verdicts.empty());
  REQUIRE(!report.suspects.empty());
  CHECK(report.suspects.front().needs_probes > 0);
  CHECK(report.suspects.front().probability <= 0.5);
  CHECK(report.coverage.links == 48);
  CHECK(report.coverage.links_short == 48);
  CHECK(report.coverage.needs_probes > 0);
  const Report enough = Localiser(fabric).run(Probing(fabric).see(10'000));
  CHECK(enough.coverage.links_short == 0);
  CHECK(enough.verdicts.empty());
}

TEST_CASE("nothing at all is nothing") {
  const Fabric fabric = zone();
  const Report report = Localiser(fabric).run({});
  CHECK(report.verdicts.empty());
  CHECK(report.suspects.empty());
  CHECK(report.coverage.links_short == 48);
}

TEST_CASE("a dead host and a starved one are hosts") {
  const Fabric fabric = zone();
  EvidenceSet set = Probing(fabric).see(1000);
  for (Evidence& row : set.rows) {
    if (row.dst == node(fabric, "nic:3")) row.lost = row.sent;
    if (row.dst == node(fabric, "nic:8")) row.lost = 20;
  }
  CHECK(names(fabric, Localiser(fabric).run(set)) == Names{"dead host:3", "starved host:8"});
}

TEST_CASE("a switch that drops some tuples whole") {
  const Fabric fabric = zone();
  EvidenceSet set = Probing(fabric).see(50);
  std::uint32_t count = 0;
  for (Evidence& row : set.rows) {
    const bool through = fabric.to(set.path(row)[1]) == node(fabric, "ctsw:2");
    if (through && mix64(++count) % 10 == 0) row.lost = row.sent;
  }
  const Report report = Localiser(fabric).run(set);
  REQUIRE(names(fabric, report) == Names{"tuple_loss ctsw:2"});
  CHECK(report.verdicts.front().loss == approx(0.1).epsilon(0.3));
}

TEST_CASE("two dead flows are no tuple-selective switch, however long they are seen") {
  const Fabric fabric = zone();
  EvidenceSet one = Probing(fabric).see(50);
  int left = 2;
  for (Evidence& row : one.rows)
    if (fabric.to(one.path(row)[1]) == node(fabric, "ctsw:2") && row.src == node(fabric, "nic:0") &&
        left-- > 0)
      row.lost = row.sent;
  EvidenceSet set;
  for (int window = 0; window < 10; ++window) {
    for (Evidence& row : one.rows) row.t = {window};
    append(set, one);
  }
  for (const std::string& found : names(fabric, Localiser(fabric).run(set)))
    CHECK(found.find("tuple_loss") == std::string::npos);
}

TEST_CASE("one class only: congestion where the counters say so") {
  const Fabric fabric = zone();
  EvidenceSet set = Probing(fabric).lose("rtsw:2->ctsw:1", 0.01).see(1000, "lossy");
  append(set, Probing(fabric).see(1000, "lossless"));
  const Localiser localiser(fabric);
  const Report blind = localiser.run(set);
  REQUIRE(names(fabric, blind) == Names{"class_loss rtsw:2->ctsw:1"});
  CHECK(blind.verdicts.front().traffic_class == "lossy");

  LinkCounters counters{{1}, link(fabric, "rtsw:2->ctsw:1"), "lossy", 100'000, 5000, 1000, 0};
  CHECK(names(fabric, localiser.run(set, std::span(&counters, 1))) ==
        Names{"congestion rtsw:2->ctsw:1"});
  // Both classes lose, one of them more: a fault, and congestion besides.
  EvidenceSet both = Probing(fabric).lose("rtsw:2->ctsw:1", 0.03).see(1000, "lossy");
  append(both, Probing(fabric).lose("rtsw:2->ctsw:1", 0.02).see(1000, "lossless"));
  CHECK(names(fabric, localiser.run(both, std::span(&counters, 1))) ==
        Names{"congestion rtsw:2->ctsw:1", "loss rtsw:2->ctsw:1"});
}

TEST_CASE("rows without a path never make a fault of the fabric certain") {
  const Fabric fabric = zone();
  EvidenceSet set = Probing(fabric).lose("rtsw:2->ctsw:1", 0.04).see(1000);
  EvidenceSet blind = set;
  for (Evidence& row : blind.rows) row.path_size = 0;
  const Localiser localiser(fabric);
  const Report report = localiser.run(blind);
  for (const Verdict& v : report.verdicts) CHECK(v.entity.kind == EntityKind::host);
  // Half of them known: found, and the others do no harm.
  for (std::size_t i = 0; i < set.rows.size(); i += 2) set.rows[i].path_size = 0;
  CHECK(names(fabric, localiser.run(set)) == Names{"loss rtsw:2->ctsw:1"});
}

TEST_CASE("a link that carries nothing, and one that should not") {
  const Fabric fabric = zone();
  EvidenceSet set = Probing(fabric).see(10);
  const LinkId idle = link(fabric, "rtsw:2->ctsw:1");
  std::erase_if(set.rows, [&](const Evidence& row) { return set.path(row)[1] == idle; });
  const Localiser localiser(fabric);
  // A third of the flows: 5 would be expected to cross the link, however often they are probed.
  EvidenceSet few = set;
  std::erase_if(few.rows, [](const Evidence& row) { return (row.src.value + row.dst.value) % 3; });
  for (std::int64_t window = 2; window <= 8; ++window) {
    EvidenceSet again = few;
    for (Evidence& row : again.rows) row.t = {window};
    append(few, again);
  }
  CHECK(names(fabric, localiser.run(few)).empty());
  CHECK(names(fabric, localiser.run(set)) == Names{"unused rtsw:2->ctsw:1"});
  model::State believed;
  believed.set(idle, {.health = model::Health::down});
  CHECK(names(fabric, localiser.run(set, {}, &believed)).empty());
  believed.set(link(fabric, "rtsw:0->ctsw:0"), {.health = model::Health::down});
  CHECK(names(fabric, localiser.run(set, {}, &believed)) == Names{"unexpected rtsw:0->ctsw:0"});
}

TEST_CASE("a path over what is drained or down blames nobody") {
  // The probes go elsewhere by now, and what they lose there is no fault of the planned way.
  const Fabric fabric = zone();
  const EvidenceSet set = Probing(fabric).lose("rtsw:2->ctsw:1", 0.02).see(1000);
  const Localiser localiser(fabric);
  CHECK(names(fabric, localiser.run(set)) == Names{"loss rtsw:2->ctsw:1"});
  for (const model::Health health : {model::Health::draining, model::Health::down}) {
    model::State believed;
    believed.set(node(fabric, "ctsw:1"), {.health = health});
    for (const Verdict& v : localiser.run(set, {}, &believed).verdicts)
      CHECK(v.finding == Finding::unexpected);
    // What is lost on other ways counts as before.
    const EvidenceSet two =
        Probing(fabric).lose("rtsw:2->ctsw:1", 0.02).lose("rtsw:3->ctsw:2", 0.02).see(1000);
    Names lost = names(fabric, localiser.run(two, {}, &believed));
    std::erase_if(lost, [](const std::string& name) { return name.starts_with("unexpected"); });
    CHECK(lost == Names{"loss rtsw:3->ctsw:2"});
  }
}

TEST_CASE("a host that stalls is told from its switch by time") {
  // Both hosts of rack 1 lose 2 %: evenly in all windows, as a switch would; or in bursts.
  const Fabric fabric = zone();
  const auto found = [&](bool even) {
    EvidenceSet set;
    for (int window = 0; window < 10; ++window) {
      EvidenceSet one = Probing(fabric).see(100);
      for (Evidence& row : one.rows) {
        row.t = {window + 1};
        const bool first = row.dst == node(fabric, "nic:2");
        if (!first && row.dst != node(fabric, "nic:3")) continue;
        row.lost = even ? 2 : (window % 5 == (first ? 1 : 3) ? 10 : 0);
      }
      append(set, one);
    }
    return names(fabric, Localiser(fabric).run(set));
  };
  CHECK(found(false) == Names{"starved host:2", "starved host:3"});
  CHECK(found(true).size() == 1);
}

// All rows of ten windows, in which the hosts begin at times of their own.
EvidenceSet windows_of(const EvidenceSet& one, int count) {
  EvidenceSet out;
  for (int window = 0; window < count; ++window) {
    EvidenceSet next = one;
    for (Evidence& row : next.rows)
      row.t = {1'000 * window + 70 * static_cast<int>(row.src.value % 13)};
    append(out, next);
  }
  return out;
}

TEST_CASE("a host that loses evenly on its only cable is that cable; in bursts it stalls") {
  const Fabric fabric = zone();
  const EvidenceSet even = windows_of(
      Probing(fabric).lose("nic:8->rtsw:4", 0.01).lose("rtsw:4->nic:8", 0.01).see(100), 10);
  const Report report = Localiser(fabric).run(even);
  REQUIRE(names(fabric, report) == Names{"loss nic:8--rtsw:4"});
  CHECK(report.verdicts.front().loss == approx(0.01).epsilon(0.1));
  REQUIRE(report.verdicts.front().alternatives.size() == 1);
  CHECK(name(fabric, report.verdicts.front().alternatives.front()) == "host:8");
  // It began three windows ago: too few to tell.
  EvidenceSet late = even;
  for (Evidence& row : late.rows)
    if (row.t.ns < 7'000) row.lost = 0;
  CHECK(names(fabric, Localiser(fabric).run(late)) == Names{"starved host:8"});
  EvidenceSet bursts = even;
  for (Evidence& row : bursts.rows) row.lost *= row.t.ns / 1'000 % 3 == 0 ? 3 : 0;
  CHECK(names(fabric, Localiser(fabric).run(bursts)) == Names{"starved host:8"});
}

TEST_CASE("a switch that does not forward to one host is named, with the host, and no cable") {
  const Fabric fabric = zone();
  const auto is_lost = [&](const EvidenceSet& set, const Evidence& row) {
    return row.dst == node(fabric, "nic:5") &&
           fabric.to(set.path(row)[1]) == node(fabric, "ctsw:3");
  };
  EvidenceSet set;
  for (int window = 0; window < 4; ++window) {
    EvidenceSet one = Probing(fabric).see(50);
    for (Evidence& row : one.rows) {
      row.t = {window};
      // It begins late in the second window.
      if (window >= 1 && is_lost(one, row)) row.lost = window == 1 ? 5 : 50;
    }
    append(set, one);
    const Report report = Localiser(fabric).run(set);
    CAPTURE(window);
    if (window == 0) {
      CHECK(report.verdicts.empty());
      continue;
    }
    REQUIRE(names(fabric, report) == Names{"route ctsw:3"});
    const Verdict& found = report.verdicts.front();
    CHECK(fabric.name(found.destination) == "nic:5");
    CHECK(found.probability > 0.99);
    CHECK(found.loss == approx(window == 1 ? 0.1 : window == 2 ? 0.55 : 0.7).epsilon(0.05));
    CHECK(to_json_lines(fabric, report).find("\"destination\":\"nic:5\"") != std::string::npos);
  }
  // A lossy cable besides: both are told.
  for (Evidence& row : set.rows)
    if (row.lost == 0 && std::ranges::count(set.path(row), link(fabric, "rtsw:0->ctsw:1")) > 0)
      row.lost = 1;
  CHECK(names(fabric, Localiser(fabric).run(set)) == Names{"loss rtsw:0->ctsw:1", "route ctsw:3"});
}

TEST_CASE("a route that is forwarded again was lost meanwhile, and speaks of no cable") {
  const Fabric fabric = zone();
  EvidenceSet set;
  // Of 10 probes a window; it begins and ends within windows, that of row i earlier or later.
  constexpr std::array<std::uint32_t, 8> lost{0, 5, 10, 10, 10, 6, 0, 0};
  for (std::int64_t window = 0; window < std::ssize(lost); ++window) {
    EvidenceSet one = Probing(fabric).see(10);
    std::uint32_t i = 0;
    for (Evidence& row : one.rows) {
      row.t = {window};
      if (row.dst != node(fabric, "nic:5") || fabric.to(one.path(row)[1]) != node(fabric, "ctsw:3"))
        continue;
      row.lost = lost[static_cast<std::size_t>(window)];
      if (window == 1 || window == 5) row.lost -= i++ % 3;
    }
    append(set, one);
    CAPTURE(window);
    const Names expected = window < 1 ? Names{} : Names{"route ctsw:3"};
    CHECK(names(fabric, Localiser(fabric).run(set)) == expected);
  }
  // Seen from then on: what was before is not known.
  while (!set.rows.empty()) {
    std::erase_if(set.rows, [t = set.rows.front().t](const Evidence& row) { return row.t == t; });
    const bool has_hit = !set.rows.empty() && set.rows.front().t.ns <= 5;
    CHECK(names(fabric, Localiser(fabric).run(set)) == (has_hit ? Names{"route ctsw:3"} : Names{}));
  }
}

TEST_CASE("no route is to blame where the cable loses all, the host is dead, or flows are few") {
  const Fabric fabric = zone();
  CHECK(names(fabric, Localiser(fabric).run(Probing(fabric).lose("ctsw:3->rtsw:2", 1).see(50))) ==
        Names{"loss ctsw:3->rtsw:2"});
  EvidenceSet dead = Probing(fabric).see(50);
  for (Evidence& row : dead.rows)
    if (row.dst == node(fabric, "nic:5")) row.lost = row.sent;
  CHECK(names(fabric, Localiser(fabric).run(dead)) == Names{"dead host:5"});
  // A short outage of the cable meets the flows to one host more than those to the other.
  EvidenceSet cut = Probing(fabric).see(50);
  for (Evidence& row : cut.rows)
    if (std::ranges::count(cut.path(row), link(fabric, "ctsw:3->rtsw:2")) > 0)
      row.lost = row.dst == node(fabric, "nic:5") ? 3 : 2;
  for (const std::string& found : names(fabric, Localiser(fabric).run(cut)))
    CHECK(found.find("route") == std::string::npos);
  // Three flows, whatever else they are.
  EvidenceSet few = Probing(fabric).see(50);
  int left = 3;
  for (Evidence& row : few.rows)
    if (row.dst == node(fabric, "nic:5") && fabric.to(few.path(row)[1]) == node(fabric, "ctsw:3") &&
        left-- > 0)
      row.lost = row.sent;
  for (const std::string& found : names(fabric, Localiser(fabric).run(few)))
    CHECK(found.find("route") == std::string::npos);
}

TEST_CASE("verdicts are JSON lines, and compare with the truth") {
  const Fabric fabric = zone();
  const Report report = Localiser(fabric).run(
      Probing(fabric).lose("rtsw:2->ctsw:1", 0.01).lose("ctsw:1->rtsw:2", 0.01).see(1000));
  const std::string lines = to_json_lines(fabric, report);
  auto line = JsonLine::parse(lines.substr(0, lines.find('\n')), {"out", 1, 0});
  REQUIRE(line.has_value());
  Errors errors;
  CHECK(line->text("entity", {}, errors) == "rtsw:2--ctsw:1");
  CHECK(line->text("kind", {}, errors) == "loss");
  CHECK(line->number("probability", {}, 0, 1, errors) > 0.9);
  CHECK(line->count("needs_probes", {}, 0, 0, errors) == 0);
  CHECK(line->texts("window", errors).size() == 2);
  CHECK(errors.empty());

  std::vector<model::Episode> truth(2);
  truth[0].entities = {"rtsw:2->ctsw:1"};
  truth[1].entities = {"ctsw:0", "host:3"};
  const auto compared = compare(fabric, report, truth);
  REQUIRE(compared.has_value());
  CHECK(compared->fabric.right == Names{"link rtsw:2->ctsw:1"});
  CHECK(compared->fabric.wrong == Names{"link ctsw:1->rtsw:2"});
  CHECK(compared->fabric.missed == Names{"switch ctsw:0"});
  CHECK(compared->fabric.precision() == 0.5);
  CHECK(compared->hosts.missed == Names{"host host:3"});
  truth[0].entities = {"rtsw:2->ctsw:77"};
  CHECK(!compare(fabric, report, truth).has_value());
  truth[0].start = {2};  // not yet
  CHECK(!compare(fabric, report, truth).has_value());
}

TEST_CASE("counters that cannot be are refused by line") {
  const Fabric fabric = zone();
  const auto refusal = [&](std::string_view text) {
    LineReader lines(text, "c.jsonl");
    const auto rows = read_counters(fabric, lines);
    return rows ? "accepted " + std::to_string(rows->size()) : rows.error().text();
  };
  using model::testing::contains;
  const std::string good = R"({"t":0,"link":"rtsw:0->ctsw:0","packets":10,"drops":3,"x":1})";
  CHECK(refusal(good + "\n\n" + good) == "accepted 2");
  CHECK(contains(refusal("\n{"), "c.jsonl:2"));
  CHECK(contains(refusal(R"({"t":0,"link":"rtsw:0->ctsw:9","packets":1})"), "ctsw:9"));
  CHECK(contains(refusal(R"({"t":0,"link":"rtsw:0->ctsw:0"})"), "\"packets\" is missing"));
  CHECK(contains(refusal(R"({"t":0,"link":"rtsw:0->ctsw:0","packets":1,"drops":2})"),
                 "0 marks and 2 drops for 1 packets"));
  CHECK(contains(refusal(R"({"t":0,"link":"rtsw:0->ctsw:0","packets":-1})"), "whole number"));
  LineReader lines(good, "c.jsonl");
  const auto rows = read_counters(fabric, lines);
  REQUIRE(rows.has_value());
  CHECK(to_json(fabric, rows->front()) ==
        R"({"t":"1970-01-01T00:00:00Z","link":"rtsw:0->ctsw:0","class":"0","packets":10,)"
        R"("marks":0,"drops":3,"errors":0})");
}

}  // namespace
}  // namespace weft::observe::localise
