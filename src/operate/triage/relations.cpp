#include "operate/triage/relations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>

namespace weft::operate::triage {
namespace {

using Alarm = AlarmHistory::Alarm;

// An earlier alarm that may have brought about a later one.
struct Reason {
  std::uint32_t alarm = 0;  // the earlier
  std::uint32_t edge = 0;   // from kind * kinds + to kind
  double delay_s = 0;
};

// Every alarm's possible reasons: reasons[first[i]] on belong to alarm i.
struct Reasons {
  std::vector<std::size_t> first;
  std::vector<Reason> rows;
};

Reasons find_reasons(const AlarmHistory& h, double memory_s) {
  Reasons out;
  out.first.reserve(h.alarms.size() + 1);
  out.first.push_back(0);
  std::size_t oldest = 0;
  for (std::size_t i = 0; i < h.alarms.size(); ++i) {
    const Alarm& now = h.alarms[i];
    while (h.alarms[oldest].t_s < now.t_s - memory_s) ++oldest;
    for (std::size_t j = oldest; j < i; ++j) {
      const Alarm& then = h.alarms[j];
      if (then.kind == now.kind || then.t_s >= now.t_s) continue;
      if (std::ranges::binary_search(h.near[then.place], now.place))
        out.rows.push_back(
            {static_cast<std::uint32_t>(j), then.kind * h.kinds + now.kind, now.t_s - then.t_s});
    }
    out.first.push_back(out.rows.size());
  }
  return out;
}

class Fit {
 public:
  Fit(const AlarmHistory& history, const RelationOptions& options)
      : h_(history),
        reasons_(find_reasons(history, options.memory_s)),
        strength_(std::size_t{history.kinds} * history.kinds, 0),
        exposure_(history.kinds, 0),
        own_(history.kinds, 0),
        rate_per_s_(4 / options.memory_s) {
    std::vector<double> count(h_.kinds, 0);
    for (const Alarm& alarm : h_.alarms) {
      exposure_[alarm.kind] += static_cast<double>(h_.near[alarm.place].size());
      ++count[alarm.kind];
    }
    ground_ = std::max(h_.duration_s(), 1.0) * h_.places;
    for (std::size_t k = 0; k < own_.size(); ++k) own_[k] = count[k] / ground_ / 2;
    for (const Reason& r : reasons_.rows) strength_[r.edge] = 0.01;
  }

  void set(const std::vector<KindEdge>& edges) {
    std::ranges::fill(strength_, 0);
    for (const KindEdge& e : edges)
      strength_[std::size_t{e.from} * h_.kinds + e.to] = std::max(e.strength, 1e-6);
  }

  // One round: each alarm is shared out among its reasons, and what each brought about is counted.
  void round() {
    std::vector<double> caused(strength_.size(), 0), own(own_.size(), 0);
    double delays = 0, weight = 0;
    for (std::size_t i = 0; i < h_.alarms.size(); ++i) {
      const double total = intensity(i);
      const std::uint32_t kind = h_.alarms[i].kind;
      own[kind] += own_[kind] / total;
      for (std::size_t k = reasons_.first[i]; k < reasons_.first[i + 1]; ++k) {
        const Reason& r = reasons_.rows[k];
        const double share = part_of(r) / total;
        caused[r.edge] += share;
        delays += share * r.delay_s;
        weight += share;
      }
    }
    for (std::size_t e = 0; e < strength_.size(); ++e)
      strength_[e] = strength_[e] > 0 ? caused[e] / exposure_[e / h_.kinds] : 0;
    for (std::size_t k = 0; k < own_.size(); ++k) own_[k] = std::max(own[k] / ground_, 1e-12);
    if (weight > 0) rate_per_s_ = std::clamp(weight / std::max(delays, 1e-9), 1e-4, 10.0);
  }

  // Nats that each edge is worth: what its alarms would lose without it, less what it foretells.
  std::vector<KindEdge> edges() const {
    std::vector<double> worth(strength_.size(), 0);
    std::vector<std::pair<std::uint32_t, double>> parts;
    for (std::size_t i = 0; i < h_.alarms.size(); ++i) {
      const double total = intensity(i);
      parts.clear();
      for (std::size_t k = reasons_.first[i]; k < reasons_.first[i + 1]; ++k)
        parts.emplace_back(reasons_.rows[k].edge, part_of(reasons_.rows[k]) / total);
      std::ranges::sort(parts);
      for (std::size_t k = 0; k < parts.size();) {
        const std::uint32_t edge = parts[k].first;
        double share = 0;
        for (; k < parts.size() && parts[k].first == edge; ++k) share += parts[k].second;
        worth[edge] -= std::log1p(-std::min(share, 1 - 1e-12));
      }
    }
    std::vector<KindEdge> out;
    for (std::uint32_t e = 0; e < strength_.size(); ++e)
      if (strength_[e] > 0)
        out.push_back({e / h_.kinds, e % h_.kinds, strength_[e],
                       worth[e] - strength_[e] * exposure_[e / h_.kinds]});
    return out;
  }

  // The likeliest reason of each alarm; itself where none is likelier than its own accord.
  std::vector<std::uint32_t> likeliest() const {
    std::vector<std::uint32_t> out(h_.alarms.size());
    std::iota(out.begin(), out.end(), 0U);
    for (std::size_t i = 0; i < out.size(); ++i) {
      double best = own_[h_.alarms[i].kind];
      for (std::size_t k = reasons_.first[i]; k < reasons_.first[i + 1]; ++k)
        if (const double part = part_of(reasons_.rows[k]); part > best) {
          best = part;
          out[i] = reasons_.rows[k].alarm;
        }
    }
    return out;
  }

 private:
  double part_of(const Reason& r) const {
    const double strength = strength_[r.edge];
    return strength > 0 ? strength * rate_per_s_ * std::exp(-rate_per_s_ * r.delay_s) : 0;
  }
  double intensity(std::size_t i) const {
    double total = own_[h_.alarms[i].kind];
    for (std::size_t k = reasons_.first[i]; k < reasons_.first[i + 1]; ++k)
      total += part_of(reasons_.rows[k]);
    return total;
  }

  const AlarmHistory& h_;
  Reasons reasons_;
  std::vector<double> strength_;  // by edge
  std::vector<double> exposure_;  // by kind: places that its alarms could have acted at
  std::vector<double> own_;       // by kind: rate per second and place of its own accord
  double ground_ = 1;             // seconds times places
  double rate_per_s_;             // of the delay
};

void sort_by_evidence(std::vector<KindEdge>& edges) {
  std::ranges::sort(edges, [](const KindEdge& a, const KindEdge& b) {
    return std::tuple(-a.evidence, a.from, a.to) < std::tuple(-b.evidence, b.from, b.to);
  });
}

}  // namespace

Status check(const AlarmHistory& history) {
  const auto refuse = [](std::string what) {
    return fail(Errc::value, {}, std::move(what),
                "give alarms in order, of known kinds and places");
  };
  if (history.near.size() != history.places)
    return refuse(
        fmt::format("{} places and {} neighbourhoods", history.places, history.near.size()));
  double last = -std::numeric_limits<double>::infinity();
  for (const Alarm& alarm : history.alarms) {
    if (alarm.kind >= history.kinds || alarm.place >= history.places || !(alarm.t_s >= last))
      return refuse(
          fmt::format("alarm of kind {} at place {} at {} s", alarm.kind, alarm.place, alarm.t_s));
    last = alarm.t_s;
  }
  return {};
}

std::vector<KindEdge> learn_relations(const AlarmHistory& history, const RelationOptions& options) {
  Fit fit(history, options);
  const double pairs = static_cast<double>(history.kinds) * history.kinds;
  const double cost =
      0.5 * std::log(static_cast<double>(std::max<std::size_t>(history.alarms.size(), 2))) +
      std::log(std::max(pairs, 2.0));
  std::vector<KindEdge> edges;
  for (std::uint32_t pruning = 0; pruning < options.prunings; ++pruning) {
    for (std::uint32_t round = 0; round < options.rounds; ++round) fit.round();
    edges = fit.edges();
    const std::size_t before = edges.size();
    // The first prunings are mild: edges that stand in for each other must not all go at once.
    const double share = static_cast<double>(pruning + 1) / options.prunings;
    std::erase_if(edges, [&](const KindEdge& e) { return e.evidence < cost * share; });
    fit.set(edges);
    if (edges.size() == before && share >= 1) break;
  }
  sort_by_evidence(edges);
  return edges;
}

EdgeScore score_edges(const std::vector<KindEdge>& edges, const std::vector<std::uint8_t>& truth,
                      std::uint32_t kinds) {
  const auto hits = static_cast<double>(std::ranges::count_if(
      edges, [&](const KindEdge& e) { return truth[std::size_t{e.from} * kinds + e.to] != 0; }));
  const auto real = static_cast<double>(
      std::ranges::count_if(truth, [](std::uint8_t edge) { return edge != 0; }));
  return {edges.empty() ? 0 : hits / static_cast<double>(edges.size()), real > 0 ? hits / real : 0};
}

std::size_t fold(const AlarmHistory& history, const std::vector<KindEdge>& edges,
                 const RelationOptions& options) {
  Fit fit(history, options);
  fit.set(edges);
  for (std::uint32_t round = 0; round < options.rounds; ++round) fit.round();
  const std::vector<std::uint32_t> reason = fit.likeliest();
  std::size_t roots = 0;
  for (std::uint32_t i = 0; i < reason.size(); ++i) roots += reason[i] == i ? 1 : 0;
  return roots;
}

}  // namespace weft::operate::triage
