#include "operate/triage/relations.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "base/csv.hpp"
#include "base/file.hpp"
#include "base/rng.hpp"
#include "base/text.hpp"

namespace weft::operate::triage {
namespace {

constexpr const char* data = "../shared/data/alarms/";

// A matrix of numpy's .npy format, version 1, little-endian doubles in C order.
std::vector<double> read_matrix(const std::string& path, std::size_t& rows) {
  const auto bytes = read_file(path);
  REQUIRE(bytes.has_value());
  std::uint16_t head = 0;
  std::memcpy(&head, bytes->data() + 8, sizeof head);
  std::vector<double> out((bytes->size() - 10 - head) / sizeof(double));
  std::memcpy(out.data(), bytes->data() + 10 + head, out.size() * sizeof(double));
  rows = 1;
  while (rows * rows < out.size()) ++rows;
  return out;
}

AlarmHistory read_alarms(std::vector<std::uint8_t>& truth) {
  AlarmHistory out;
  std::size_t places = 0, kinds = 0;
  const auto topology = read_matrix(std::string(data) + "topology.npy", places);
  for (const double edge : read_matrix(std::string(data) + "true_graph.npy", kinds))
    truth.push_back(edge != 0 ? 1 : 0);
  out.places = static_cast<std::uint32_t>(places);
  out.kinds = static_cast<std::uint32_t>(kinds);
  for (std::uint32_t a = 0; a < places; ++a) {
    auto& near = out.near.emplace_back();
    for (std::uint32_t b = 0; b < places; ++b)
      if (a == b || topology[a * places + b] != 0) near.push_back(b);
  }
  const auto packed = read_file(std::string(data) + "alarm.csv.gz");
  REQUIRE(packed.has_value());
  const auto text = gunzip(*packed, "alarm.csv.gz");
  REQUIRE(text.has_value());
  bool is_head = true;
  for (const std::string_view line : split(*text, '\n')) {
    const auto cells = split(line, ',');
    if (!is_head && cells.size() == 4) {
      const auto number = [&](std::size_t i) { return *parse_count({trim(cells[i]), {}}); };
      out.alarms.push_back({static_cast<double>(number(2)), static_cast<std::uint32_t>(number(1)),
                            static_cast<std::uint32_t>(number(0))});
    }
    is_head = false;
  }
  std::ranges::sort(out.alarms, [](const auto& a, const auto& b) {
    return std::tuple(a.t_s, a.place, a.kind) < std::tuple(b.t_s, b.place, b.kind);
  });
  return out;
}

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

TEST_CASE("the public alarm set: better than lift and transfer entropy at their best") {
  if (!std::filesystem::exists(std::string(data) + "alarm.csv.gz")) {
    MESSAGE("skipped: needs ../shared/data/alarms");
    return;
  }
  std::vector<std::uint8_t> truth;
  const AlarmHistory history = read_alarms(truth);
  REQUIRE(check(history).has_value());
  REQUIRE(history.alarms.size() == 30'691);
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
