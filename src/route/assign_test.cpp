#include "route/assign.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/rng.hpp"
#include "base/test_approx.hpp"
#include "route/divide.hpp"

namespace weft::route {
namespace {

using Flow = Assignment::Flow;
using Others = Assignment::Others;

// A case as the tests know it: nothing of Assignment's own books is used.
struct Zone {
  std::uint32_t racks, spines;
  std::vector<Flow> flows;
  std::vector<double> up, down;  // capacity by rack x spine

  Zone(std::uint32_t its_racks, std::uint32_t its_spines)
      : racks(its_racks), spines(its_spines), up(std::size_t{racks} * spines, 1), down(up) {}
  std::size_t at(std::uint32_t rack, std::uint32_t spine) const {
    return std::size_t{rack} * spines + spine;
  }
  bool open(const Flow& flow, std::uint32_t spine) const {
    return up[at(flow.from, spine)] > 0 && down[at(flow.to, spine)] > 0;
  }
  double worst(const std::vector<std::uint32_t>& spine_of) const {
    std::vector<double> sent(up.size(), 0), received(up.size(), 0);
    double worst = 0;
    for (std::size_t f = 0; f < flows.size(); ++f) {
      if (spine_of[f] == Assignment::none) continue;
      const std::size_t a = at(flows[f].from, spine_of[f]), b = at(flows[f].to, spine_of[f]);
      worst = std::max(worst, (sent[a] += flows[f].weight) / up[a]);
      worst = std::max(worst, (received[b] += flows[f].weight) / down[b]);
    }
    return worst;
  }
  // The least worst link of all assignments, by trying every one.
  double best(std::vector<std::uint32_t>& spine_of) const {
    const std::size_t f = spine_of.size();
    if (f == flows.size()) return worst(spine_of);
    double best_cost = std::numeric_limits<double>::infinity();
    bool any = false;
    for (std::uint32_t p = 0; p < spines; ++p) {
      if (!open(flows[f], p)) continue;
      any = true;
      spine_of.push_back(p);
      best_cost = std::min(best_cost, best(spine_of));
      spine_of.pop_back();
    }
    if (any) return best_cost;
    spine_of.push_back(Assignment::none);
    best_cost = best(spine_of);
    spine_of.pop_back();
    return best_cost;
  }
  double best() const {
    std::vector<std::uint32_t> spine_of;
    return best(spine_of);
  }
  Assignment assignment() const {
    Assignment out(racks, spines);
    for (std::uint32_t r = 0; r < racks; ++r)
      for (std::uint32_t p = 0; p < spines; ++p)
        out.set_capacity(r, p, up[at(r, p)], down[at(r, p)]);
    for (std::size_t f = 0; f < flows.size(); ++f) CHECK(out.add(flows[f]) == f);
    return out;
  }
  std::vector<std::uint32_t> spines_of(const Assignment& assignment) const {
    std::vector<std::uint32_t> out;
    for (std::uint32_t f = 0; f < flows.size(); ++f) out.push_back(assignment.spine_of(f));
    return out;
  }
};

// Rings of random order over all racks, in mixed order: each rack sends and receives `rings` flows.
Zone rings(std::uint32_t racks, std::uint32_t spines, int count, bool equal) {
  Zone zone(racks, spines);
  Rng rng(7);
  const auto shuffle = [&](auto& items) {
    for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[rng.below(i)]);
  };
  std::vector<std::uint32_t> order(racks);
  std::iota(order.begin(), order.end(), 0u);
  for (int ring = 0; ring < count; ++ring) {
    shuffle(order);
    for (std::uint32_t i = 0; i < racks; ++i) {
      const double weight = equal ? 1 : 0.1 + 0.0009 * static_cast<double>(rng.below(1000));
      zone.flows.push_back({order[i], order[(i + 1) % racks], weight});
    }
  }
  shuffle(zone.flows);
  return zone;
}

Zone small_zone(Rng& rng, bool equal, bool healthy) {
  const auto racks = static_cast<std::uint32_t>(2 + rng.below(3));
  const auto spines = static_cast<std::uint32_t>(2 + rng.below(2));
  Zone zone(racks, spines);
  for (std::uint64_t flows = 1 + rng.below(7); flows > 0; --flows) {
    const auto from = static_cast<std::uint32_t>(rng.below(zone.racks));
    const auto to = static_cast<std::uint32_t>((from + 1 + rng.below(zone.racks - 1)) % zone.racks);
    zone.flows.push_back({from, to, equal ? 1 : 1 + static_cast<double>(rng.below(9))});
  }
  for (std::vector<double>* side : {&zone.up, &zone.down})
    for (double& capacity : *side)
      if (!healthy && rng.below(6) == 0) capacity = equal || rng.below(2) == 0 ? 0 : 0.5;
  return zone;
}

TEST_CASE("assign: equal flows on a healthy fabric reach the optimum of all assignments") {
  Rng rng(1);
  for (int i = 0; i < 3000; ++i) {
    const Zone zone = small_zone(rng, true, true);
    Assignment assignment = zone.assignment();
    const Assignment::Outcome outcome = assignment.solve();
    CAPTURE(i);
    CHECK(outcome.worst == zone.best());
    CHECK(outcome.bound == outcome.worst);
    CHECK(zone.worst(zone.spines_of(assignment)) == outcome.worst);
  }
}

TEST_CASE(
    "assign: dead and degraded links, unequal flows: between the bound and near the optimum") {
  Rng rng(2);
  int at_best = 0;
  double furthest = 1;
  for (int i = 0; i < 3000; ++i) {
    const Zone zone = small_zone(rng, i % 2 == 0, false);
    Assignment assignment = zone.assignment();
    const Assignment::Outcome outcome = assignment.solve();
    const std::vector<std::uint32_t> spine_of = zone.spines_of(assignment);
    const double best = zone.best();
    CAPTURE(i);
    CHECK(zone.worst(spine_of) == approx(outcome.worst));
    CHECK(outcome.bound <= best * (1 + 1e-9));
    CHECK(outcome.worst >= best * (1 - 1e-9));
    for (std::size_t f = 0; f < spine_of.size(); ++f) {
      bool possible = false;
      for (std::uint32_t p = 0; p < zone.spines; ++p)
        possible = possible || zone.open(zone.flows[f], p);
      CHECK((spine_of[f] != Assignment::none) == possible);
      if (possible) CHECK(zone.open(zone.flows[f], spine_of[f]));
    }
    if (outcome.worst <= best * (1 + 1e-9)) ++at_best;
    if (best > 0) furthest = std::max(furthest, outcome.worst / best);
  }
  CHECK(at_best >= 2950);  // the others are where one flow more on a link is far from the best
  CHECK(furthest <= 2);
}

// The least worst link where each flow takes one spine, or two with half of it on each: by trying
// every choice. Stops where no more flows can make it better.
class Halves {
 public:
  explicit Halves(const Zone& zone) : zone_(zone), sent_(zone.up.size(), 0), received_(sent_) {}
  double best() {
    best_ = std::numeric_limits<double>::infinity();
    visit(0, 0);
    return best_;
  }

 private:
  double put(const Flow& flow, std::uint32_t spine, double weight) {
    const std::size_t a = zone_.at(flow.from, spine), b = zone_.at(flow.to, spine);
    sent_[a] += weight;
    received_[b] += weight;
    return std::max(sent_[a] / zone_.up[a], received_[b] / zone_.down[b]);
  }
  void visit(std::size_t f, double worst) {
    if (worst >= best_) return;
    if (f == zone_.flows.size()) {
      best_ = worst;
      return;
    }
    const Flow& flow = zone_.flows[f];
    bool any = false;
    for (std::uint32_t p = 0; p < zone_.spines; ++p)
      for (std::uint32_t q = p; q < zone_.spines; ++q) {
        if (!zone_.open(flow, p) || !zone_.open(flow, q)) continue;
        any = true;
        const double one = put(flow, p, flow.weight / 2);
        visit(f + 1, std::max({worst, one, put(flow, q, flow.weight / 2)}));
        put(flow, p, -flow.weight / 2);
        put(flow, q, -flow.weight / 2);
      }
    if (!any) visit(f + 1, worst);
  }
  const Zone& zone_;
  std::vector<double> sent_, received_;
  double best_ = 0;
};

double worst_of_halves(const Zone& zone, const Placement& placed) {
  Zone halves = zone;
  std::vector<std::uint32_t> spine_of = placed.first;
  for (std::size_t f = 0; f < zone.flows.size(); ++f) {
    if (placed.second[f] == Assignment::none) continue;
    halves.flows[f].weight /= 2;
    halves.flows.push_back(halves.flows[f]);
    spine_of.push_back(placed.second[f]);
  }
  return halves.worst(spine_of);
}

// Flows are counted by what became of their paths, not by how they were found.
void check_counts(const Assignment& links, const Zone& zone, const Placement& before,
                  const Placement& after) {
  Assignment open = links;
  std::uint32_t placed = 0, moved = 0, without = 0;
  for (std::uint32_t f = 0; f < zone.flows.size(); ++f) {
    open.add(zone.flows[f]);
    const auto is_live = [&](std::uint32_t spine) {
      return spine != Assignment::none && open.open(f, spine);
    };
    const bool was_live = is_live(before.first[f]) &&
                          (before.second[f] == Assignment::none || is_live(before.second[f]));
    if (after.first[f] == Assignment::none)
      ++without;
    else if (!was_live)
      ++placed;
    else if (std::pair(before.first[f], before.second[f]) !=
             std::pair(after.first[f], after.second[f]))
      ++moved;
  }
  CHECK(after.outcome.placed == placed);
  CHECK(after.outcome.moved == moved);
  CHECK(after.outcome.without == without);
}

TEST_CASE("divide: between the best of all divisions and whole flows, near the former") {
  Rng rng(3);
  int better = 0, at_best = 0, gains = 0;
  double furthest = 1;
  for (int i = 0; i < 1500; ++i) {
    CAPTURE(i);
    const Zone zone = small_zone(rng, i % 2 == 0, i % 3 == 0);
    Zone none = zone;
    none.flows.clear();
    const Assignment links = none.assignment();
    const std::vector<bool> all(zone.flows.size(), true);
    const Placement whole = place(links, zone.flows, {}, {});
    const Placement placed = place(links, zone.flows, all, {});
    Assignment alone = zone.assignment();
    CHECK(whole.worst == alone.solve().worst);
    CHECK(whole.first == zone.spines_of(alone));
    CHECK(worst_of_halves(zone, placed) == approx(placed.worst));
    CHECK(placed.worst <= whole.worst);
    const double best = Halves(zone).best();
    CHECK(placed.worst >= best * (1 - 1e-9));
    CHECK(alone.floor() <= best * (1 + 1e-9));
    // What is installed stays, and nothing is divided in vain.
    const Placement again = place(links, zone.flows, all, placed);
    CHECK(again.worst <= placed.worst * (1 + 1e-9));
    check_counts(links, zone, placed, again);
    // A spine fails: of what was not hit nothing moves, if so wished.
    Assignment fewer = links;
    for (std::uint32_t r = 0; r < zone.racks; ++r) fewer.set_capacity(r, 0, 0, 0);
    const Placement rest = place(fewer, zone.flows, all, placed);
    check_counts(fewer, zone, placed, rest);
    const Placement stays = place(fewer, zone.flows, all, placed, Others::stay);
    check_counts(fewer, zone, placed, stays);
    CHECK(stays.outcome.moved == 0);
    const bool is_divided = std::ranges::count(placed.second, Assignment::none) <
                            static_cast<std::ptrdiff_t>(zone.flows.size());
    CHECK(is_divided == (placed.worst < whole.worst));
    gains += best < whole.worst * (1 - 0.01) ? 1 : 0;
    better += is_divided ? 1 : 0;
    at_best += placed.worst <= best * 1.01 ? 1 : 0;
    if (best > 0) furthest = std::max(furthest, placed.worst / best);
  }
  CHECK(gains > 800);
  CHECK(better > 690);
  CHECK(at_best >= 1360);
  CHECK(furthest <= 1.34);
}

TEST_CASE("assign: a zone of Meta's size, 252 racks") {
  for (const std::uint32_t spines : {18u, 16u})
    for (const int per_nic : {1, 4}) {
      CAPTURE(spines);
      CAPTURE(per_nic);
      const Zone equal = rings(252, spines, 16 * per_nic, true);
      Assignment assignment = equal.assignment();
      const double least = std::ceil(16.0 * per_nic / spines);
      CHECK(assignment.solve().worst == least);
      // A spine fails.
      for (std::uint32_t r = 0; r < 252; ++r) assignment.set_capacity(r, 3, 0, 0);
      CHECK(assignment.solve().worst == std::ceil(16.0 * per_nic / (spines - 1)));

      const Zone sizes = rings(252, spines, 16 * per_nic, false);
      Assignment unequal = sizes.assignment();
      Assignment::Outcome outcome = unequal.solve();
      CHECK(outcome.worst <= 1.07 * outcome.bound);
      for (std::uint32_t r = 0; r < 252; ++r) unequal.set_capacity(r, 3, 0, 0);
      outcome = unequal.solve();
      CHECK(outcome.worst <= 1.07 * outcome.bound);
      CHECK(outcome.without == 0);
    }
}

TEST_CASE("assign: after a failure only hit flows move when the others shall stay") {
  const Zone zone = rings(60, 18, 16, true);
  Assignment assignment = zone.assignment();
  assignment.solve();
  const std::vector<std::uint32_t> before = zone.spines_of(assignment);
  for (std::uint32_t r = 0; r < zone.racks; ++r) assignment.set_capacity(r, 3, 0, 0);
  const Assignment::Outcome outcome = assignment.solve(Others::stay);
  const std::vector<std::uint32_t> after = zone.spines_of(assignment);
  CHECK(outcome.moved == 0);
  CHECK(outcome.placed == std::ranges::count(before, 3u));
  for (std::size_t f = 0; f < before.size(); ++f) {
    CHECK(after[f] != 3);
    if (before[f] != 3) CHECK(after[f] == before[f]);
  }
  CHECK(outcome.worst <= 2);
}

TEST_CASE("assign: when lost links are back, equal flows are where they were at their best") {
  Rng rng(7);
  for (std::uint32_t cut = 0; cut < 30; ++cut) {
    Zone zone(6, 4);
    for (std::uint32_t from = 0; from < 6; ++from)
      for (std::uint32_t i = 0; i < 20; ++i)  // as many out of each rack as into it
        zone.flows.push_back({.from = from, .to = (from + 1 + i % 5) % 6});
    Assignment assignment = zone.assignment();
    const double healthy = assignment.solve().worst;
    CHECK(healthy == zone.worst(zone.spines_of(assignment)));
    CHECK(healthy == 5);  // 20 flows over 4 links
    for (std::uint32_t links = 1 + cut % 3; links > 0; --links)
      assignment.set_capacity(static_cast<std::uint32_t>(rng.below(6)),
                              static_cast<std::uint32_t>(rng.below(4)), 0, 0);
    const double failed = assignment.solve().worst;
    CHECK(failed > healthy);
    for (std::uint32_t rack = 0; rack < 6; ++rack)
      for (std::uint32_t spine = 0; spine < 4; ++spine) assignment.set_capacity(rack, spine, 1, 1);
    CHECK(assignment.solve().worst == healthy);
    CHECK(zone.worst(zone.spines_of(assignment)) == healthy);
  }
}

TEST_CASE("assign: the outcome counts what moved; jobs come and go") {
  const Zone zone = rings(40, 12, 24, true);
  Assignment assignment = zone.assignment();
  assignment.solve();
  std::vector<std::uint32_t> before = zone.spines_of(assignment);
  assignment.set_capacity(5, 2, 0, 0);
  Assignment::Outcome outcome = assignment.solve();
  std::vector<std::uint32_t> after = zone.spines_of(assignment);
  std::uint32_t hit = 0, moved = 0;
  for (std::size_t f = 0; f < before.size(); ++f) {
    const Flow& flow = zone.flows[f];
    const bool was_hit = before[f] == 2 && (flow.from == 5 || flow.to == 5);
    hit += was_hit ? 1 : 0;
    moved += !was_hit && before[f] != after[f] ? 1 : 0;
  }
  CHECK(hit > 0);
  CHECK(outcome.placed == hit);
  CHECK(outcome.moved == moved);
  // Half of the flows end: nobody moves. As many begin: the optimum again.
  for (std::uint32_t f = 0; f < zone.flows.size(); f += 2) assignment.remove(f);
  CHECK(assignment.solve(Others::stay).moved == 0);
  assignment.set_capacity(5, 2, 1, 1);
  for (std::uint32_t f = 0; f < zone.flows.size(); f += 2) assignment.add(zone.flows[f]);
  outcome = assignment.solve();
  CHECK(outcome.placed == zone.flows.size() / 2);
  CHECK(outcome.worst == 2);
}

TEST_CASE("assign: priority is placed first") {
  // Two spines, one link degraded: the first to be placed gets the good one.
  for (const bool first : {true, false}) {
    Assignment assignment(2, 2);
    assignment.set_capacity(0, 1, 0.25, 0.25);
    const std::uint32_t a = assignment.add({0, 1, 1, first ? 0u : 1u});
    const std::uint32_t b = assignment.add({0, 1, 1, first ? 1u : 0u});
    assignment.solve(Others::stay);
    CHECK(assignment.spine_of(first ? a : b) == 0);
  }
}

}  // namespace
}  // namespace weft::route
