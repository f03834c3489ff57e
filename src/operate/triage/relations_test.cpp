#include "operate/triage/relations.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/rng.hpp"

namespace weft::operate::triage {
namespace {

// The best F1 that any cut of the ranking gives: more than the method could know.
EdgeScore best_cut(const std::vector<KindEdge>& ranked, const std::vector<std::uint8_t>& truth,
                   std::uint32_t kinds) {
  EdgeScore best;
  for (std::size_t n = 1; n <= ranked.size(); ++n) {
    const EdgeScore at =
        score_edges({ranked.begin(), ranked.begin() + std::ptrdiff_t(n)}, truth, kinds);
    if (at.f1() > best.f1()) best = at;
  }
  return best;
}

// 0 -> 1 -> 2 on a ring of places, and 3 for itself.
AlarmHistory chain(std::uint64_t seed) {
  AlarmHistory out;
  out.kinds = 4;
  out.places = 12;
  for (std::uint32_t p = 0; p < 12; ++p) {
    out.near.push_back({(p + 11) % 12, p, (p + 1) % 12});
    std::ranges::sort(out.near.back());
  }
  Rng rng(seed);
  for (int i = 0; i < 600; ++i) {
    double t = rng.uniform() * 500'000;
    auto place = static_cast<std::uint32_t>(rng.below(12));
    out.alarms.push_back({rng.uniform() * 500'000, static_cast<std::uint32_t>(rng.below(12)), 3});
    for (std::uint32_t kind = 0; kind < 3; ++kind) {
      out.alarms.push_back({t, place, kind});
      if (rng.uniform() > 0.8) break;
      t += 1 - 30 * std::log(1 - rng.uniform());
      place = out.near[place][rng.below(3)];
    }
  }
  std::ranges::sort(out.alarms, {}, &AlarmHistory::Alarm::t_s);
  return out;
}

TEST_CASE("a chain is learned as a chain: what a reason's reason did is no edge") {
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    const AlarmHistory history = chain(seed);
    REQUIRE(check(history).has_value());
    const auto edges = learn_relations(history);
    REQUIRE(edges.size() == 2);
    std::vector<std::uint8_t> truth(16, 0);
    truth[0 * 4 + 1] = truth[1 * 4 + 2] = 1;
    CHECK(score_edges(edges, truth, 4).f1() == 1);
    // Each chain is one group, and each alarm of kind 3 as well.
    const std::size_t groups = fold(history, edges);
    CHECK(groups >= 1150);
    CHECK(groups <= 1250);
  }
}

TEST_CASE("no alarms, no relations; nonsense is refused") {
  AlarmHistory none;
  none.kinds = 3;
  CHECK(learn_relations(none).empty());
  CHECK(lift_relations(none).empty());
  CHECK(transfer_entropy(none).empty());
  CHECK(fold(none, {}) == 0);
  AlarmHistory wrong = chain(1);
  wrong.alarms[5].kind = 4;
  CHECK_FALSE(check(wrong).has_value());
  wrong = chain(1);
  std::swap(wrong.alarms[5], wrong.alarms[500]);
  CHECK_FALSE(check(wrong).has_value());
}

// Week of alarms of a network whose relations are known: kinds in layers, each of which brings
// about up to three of the next, at the place or a neighbour's, with shares from 0.2 to 0.8; what
// one reason brings about twice looks like a relation and is none.
AlarmHistory network_week(std::uint64_t seed, std::vector<std::uint8_t>& truth) {
  constexpr std::uint32_t layers = 5, width = 6, places = 40;
  constexpr double week_s = 7 * 86'400.0;
  AlarmHistory out;
  out.kinds = layers * width;
  out.places = places;
  Rng rng(seed);
  for (std::uint32_t p = 0; p < places; ++p) {
    out.near.push_back({p, (p + 1) % places, (p + places - 1) % places, (p + 7) % places});
    std::ranges::sort(out.near.back());
  }
  truth.assign(std::size_t{out.kinds} * out.kinds, 0);
  std::vector<double> share(truth.size(), 0);
  for (std::uint32_t kind = 0; kind + width < out.kinds; ++kind)
    for (int i = 0; i < 3; ++i) {
      const auto next =
          static_cast<std::uint32_t>(std::uint64_t{kind / width + 1} * width + rng.below(width));
      truth[kind * out.kinds + next] = 1;
      share[kind * out.kinds + next] = 0.2 + 0.6 * rng.uniform();
    }
  std::vector<AlarmHistory::Alarm> open;
  for (int i = 0; i < 4'000; ++i)  // of their own accord
    open.push_back({rng.uniform() * week_s, static_cast<std::uint32_t>(rng.below(places)),
                    static_cast<std::uint32_t>(rng.below(out.kinds))});
  while (!open.empty()) {
    const AlarmHistory::Alarm alarm = open.back();
    open.pop_back();
    out.alarms.push_back(alarm);
    for (std::uint32_t to = 0; to < out.kinds; ++to)
      if (rng.uniform() < share[alarm.kind * out.kinds + to])
        open.push_back({alarm.t_s + 1 - 40 * std::log(1 - rng.uniform()),
                        out.near[alarm.place][rng.below(4)], to});
  }
  std::ranges::sort(out.alarms, [](const auto& a, const auto& b) {
    return std::tuple(a.t_s, a.place, a.kind) < std::tuple(b.t_s, b.place, b.kind);
  });
  return out;
}

TEST_CASE("a week of a network: better than lift and transfer entropy at their best") {
  std::vector<std::uint8_t> truth;
  const AlarmHistory history = network_week(1, truth);
  REQUIRE(check(history).has_value());
  REQUIRE(history.alarms.size() > 8'000);
  const auto edges = learn_relations(history);
  const EdgeScore ours = score_edges(edges, truth, history.kinds);
  const EdgeScore lift = best_cut(lift_relations(history), truth, history.kinds);
  const EdgeScore entropy = best_cut(transfer_entropy(history), truth, history.kinds);
  const std::size_t groups = fold(history, edges);
  const auto tell = [](const char* name, const EdgeScore& s) {
    return fmt::format("{}: precision {:.3f}, recall {:.3f}, F1 {:.3f}", name, s.precision,
                       s.recall, s.f1());
  };
  MESSAGE(tell("learned", ours), " (", edges.size(), " edges)");
  MESSAGE(tell("lift, best cut", lift));
  MESSAGE(tell("transfer entropy, best cut", entropy));
  MESSAGE(history.alarms.size(), " alarms fold into ", groups, " groups");
  CHECK(ours.f1() > 0.8);
  CHECK(ours.f1() > lift.f1());
  CHECK(ours.f1() > entropy.f1());
  CHECK(groups < history.alarms.size() / 2);
}

}  // namespace
}  // namespace weft::operate::triage
