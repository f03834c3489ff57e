#include "operate/triage/relation_fit.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/check.hpp"

namespace weft::operate::triage {

RelationFit::RelationFit(const RelationProblem& problem, double memory_s)
    : p_(problem),
      strength_(problem.edge_count(), 0),
      own_(problem.kinds, 0),
      context_(std::max(problem.duration_s, 1.0) * problem.places),
      rate_per_s_(4 / memory_s) {
  WEFT_CHECK(p_.first.size() == p_.alarms.size() + 1 && p_.first.back() == p_.reasons.size());
  for (const std::uint32_t kind : p_.alarms) own_[kind] += 0.5 / context_;
  for (const Reason& r : p_.reasons) strength_[r.edge] = 0.01;
}

void RelationFit::set(const std::vector<KindEdge>& edges) {
  std::ranges::fill(strength_, 0);
  for (const KindEdge& e : edges) strength_[p_.edge(e)] = std::max(e.strength, 1e-6);
}

double RelationFit::exposure_of(std::size_t edge) const {
  const std::size_t from = edge / p_.nearnesses / p_.kinds;
  return p_.exposure[from * p_.nearnesses + edge % p_.nearnesses];
}

double RelationFit::part_of(const Reason& r) const {
  const double strength = strength_[r.edge];
  return strength > 0 ? strength * rate_per_s_ * std::exp(-rate_per_s_ * r.delay_s) : 0;
}

double RelationFit::intensity(std::size_t i) const {
  double total = own_[p_.alarms[i]];
  for (std::size_t k = p_.first[i]; k < p_.first[i + 1]; ++k) total += part_of(p_.reasons[k]);
  return total;
}

void RelationFit::run(std::uint32_t rounds) {
  for (std::uint32_t i = 0; i < rounds; ++i) round();
}

void RelationFit::round() {
  std::vector<double> caused(strength_.size(), 0), own(own_.size(), 0);
  double delays = 0, weight = 0;
  for (std::size_t i = 0; i < p_.alarms.size(); ++i) {
    const double total = intensity(i);
    const std::uint32_t kind = p_.alarms[i];
    own[kind] += own_[kind] / total;
    for (std::size_t k = p_.first[i]; k < p_.first[i + 1]; ++k) {
      const Reason& r = p_.reasons[k];
      const double share = part_of(r) / total;
      caused[r.edge] += share;
      delays += share * r.delay_s;
      weight += share;
    }
  }
  for (std::size_t e = 0; e < strength_.size(); ++e)
    strength_[e] = strength_[e] > 0 ? caused[e] / exposure_of(e) : 0;
  for (std::size_t k = 0; k < own_.size(); ++k) own_[k] = std::max(own[k] / context_, 1e-12);
  if (weight > 0) rate_per_s_ = std::clamp(weight / std::max(delays, 1e-9), 1e-4, 10.0);
}

std::vector<KindEdge> RelationFit::edges() const {
  std::vector<double> worth(strength_.size(), 0);
  std::vector<std::pair<std::uint32_t, double>> parts;
  for (std::size_t i = 0; i < p_.alarms.size(); ++i) {
    const double total = intensity(i);
    parts.clear();
    for (std::size_t k = p_.first[i]; k < p_.first[i + 1]; ++k)
      parts.emplace_back(p_.reasons[k].edge, part_of(p_.reasons[k]) / total);
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
      out.push_back({e / p_.nearnesses / p_.kinds, e / p_.nearnesses % p_.kinds, strength_[e],
                     worth[e] - strength_[e] * exposure_of(e), e % p_.nearnesses});
  return out;
}

std::vector<std::uint32_t> RelationFit::likeliest() const {
  std::vector<std::uint32_t> out(p_.alarms.size());
  std::iota(out.begin(), out.end(), 0U);
  for (std::size_t i = 0; i < out.size(); ++i) {
    double best = own_[p_.alarms[i]];
    for (std::size_t k = p_.first[i]; k < p_.first[i + 1]; ++k)
      if (const double part = part_of(p_.reasons[k]); part > best) {
        best = part;
        out[i] = p_.reasons[k].alarm;
      }
  }
  return out;
}

std::vector<double> RelationFit::shares() const {
  std::vector<double> out;
  out.reserve(p_.reasons.size());
  for (std::size_t i = 0; i < p_.alarms.size(); ++i) {
    const double total = intensity(i);
    for (std::size_t k = p_.first[i]; k < p_.first[i + 1]; ++k)
      out.push_back(part_of(p_.reasons[k]) / total);
  }
  return out;
}

std::vector<KindEdge> fit_edges(RelationFit& fit, const RelationProblem& problem,
                                const RelationOptions& options) {
  const auto alarms = static_cast<double>(std::max<std::size_t>(problem.alarms.size(), 2));
  const auto pairs = static_cast<double>(std::max<std::size_t>(problem.edge_count(), 2));
  const double cost = 0.5 * std::log(alarms) + std::log(pairs);
  std::vector<KindEdge> edges;
  for (std::uint32_t pruning = 0; pruning < options.prunings; ++pruning) {
    fit.run(options.rounds);
    edges = fit.edges();
    const std::size_t before = edges.size();
    // The first prunings are mild: edges that stand in for each other must not all go at once.
    const double share = static_cast<double>(pruning + 1) / options.prunings;
    std::erase_if(edges, [&](const KindEdge& e) { return e.evidence < cost * share; });
    fit.set(edges);
    if (edges.size() == before && share >= 1) break;
  }
  std::ranges::sort(edges, [](const KindEdge& a, const KindEdge& b) {
    return std::tuple(-a.evidence, a.from, a.to, a.nearness) <
           std::tuple(-b.evidence, b.from, b.to, b.nearness);
  });
  return edges;
}

}  // namespace weft::operate::triage
