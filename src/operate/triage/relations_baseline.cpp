// Two ways that others take, for comparison.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "operate/triage/relations.hpp"

namespace weft::operate::triage {
namespace {

using Alarm = AlarmHistory::Alarm;

std::vector<KindEdge> ranked(const AlarmHistory& h, const std::vector<double>& score) {
  std::vector<KindEdge> out;
  for (std::uint32_t from = 0; from < h.kinds; ++from)
    for (std::uint32_t to = 0; to < h.kinds; ++to)
      if (const double s = score[std::size_t{from} * h.kinds + to]; from != to && s > 0)
        out.push_back({from, to, s, s, 0});
  std::ranges::sort(out, [](const KindEdge& a, const KindEdge& b) {
    return std::tuple(-a.evidence, a.from, a.to) < std::tuple(-b.evidence, b.from, b.to);
  });
  return out;
}

// x log(x / y) with the limit at 0.
double xlog(double x, double y) { return x > 0 ? x * std::log(x / y) : 0; }

}  // namespace

std::vector<KindEdge> lift_relations(const AlarmHistory& h, double window_s) {
  const std::size_t pairs = std::size_t{h.kinds} * h.kinds;
  std::vector<double> together(pairs, 0), exposure(h.kinds, 0), count(h.kinds, 0);
  std::size_t oldest = 0;
  for (std::size_t i = 0; i < h.alarms.size(); ++i) {
    const Alarm& now = h.alarms[i];
    ++count[now.kind];
    exposure[now.kind] += static_cast<double>(h.near[now.place].size());
    while (h.alarms[oldest].t_s < now.t_s - window_s) ++oldest;
    for (std::size_t j = oldest; j < i; ++j)
      if (h.alarms[j].t_s < now.t_s &&
          std::ranges::binary_search(h.near[h.alarms[j].place], now.place))
        ++together[std::size_t{h.alarms[j].kind} * h.kinds + now.kind];
  }
  std::vector<double> score(pairs, 0);
  const double context = std::max(h.duration_s(), 1.0) * h.places;
  for (std::size_t e = 0; e < pairs; ++e) {
    const double expected = exposure[e / h.kinds] * window_s * count[e % h.kinds] / context;
    if (together[e] >= 5 && expected > 0) score[e] = together[e] / expected - 1;
  }
  return ranked(h, score);
}

std::vector<KindEdge> transfer_entropy(const AlarmHistory& h, double bin_s) {
  if (h.alarms.empty()) return {};
  // Bins of each kind by (place, bin): where it was seen, and where it was seen nearby.
  using Cell = std::pair<std::uint32_t, std::int64_t>;
  std::vector<std::set<Cell>> seen(h.kinds), nearby(h.kinds);
  for (const Alarm& alarm : h.alarms) {
    const auto bin = static_cast<std::int64_t>((alarm.t_s - h.alarms.front().t_s) / bin_s);
    seen[alarm.kind].emplace(alarm.place, bin);
    for (const std::uint32_t place : h.near[alarm.place]) nearby[alarm.kind].emplace(place, bin);
  }
  const double cells = std::max(h.duration_s() / bin_s, 1.0) * h.places;
  std::vector<double> score(std::size_t{h.kinds} * h.kinds, 0);
  for (std::uint32_t to = 0; to < h.kinds; ++to)
    for (std::uint32_t from = 0; from < h.kinds; ++from) {
      if (from == to) continue;
      // n[next][self][other]: how often `to` is seen after a bin with these.
      double n[2][2][2] = {};
      const auto look = [&](const Cell& before) {
        const Cell next{before.first, before.second + 1};
        ++n[seen[to].contains(next)][seen[to].contains(before)][nearby[from].contains(before)];
      };
      std::set<Cell> befores(seen[to].begin(), seen[to].end());
      befores.insert(nearby[from].begin(), nearby[from].end());
      for (const Cell& cell : seen[to]) befores.emplace(cell.first, cell.second - 1);
      for (const Cell& cell : befores) look(cell);
      n[0][0][0] = std::max(cells - static_cast<double>(befores.size()), 1.0);
      double bits = 0;
      for (int self = 0; self < 2; ++self)
        for (int other = 0; other < 2; ++other)
          for (int next = 0; next < 2; ++next) {
            const double here = n[0][self][other] + n[1][self][other];
            const double plain = n[next][self][0] + n[next][self][1];
            const double all = n[0][self][0] + n[0][self][1] + n[1][self][0] + n[1][self][1];
            if (here > 0 && plain > 0) bits += xlog(n[next][self][other], here * plain / all);
          }
      const bool leads =
          n[1][0][1] * (n[0][0][0] + n[1][0][0]) > n[1][0][0] * (n[0][0][1] + n[1][0][1]);
      score[std::size_t{from} * h.kinds + to] = leads ? bits : 0;
    }
  return ranked(h, score);
}

}  // namespace weft::operate::triage
