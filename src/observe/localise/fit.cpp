// Likelihoods and scores.
#include <algorithm>
#include <cmath>

#include "base/check.hpp"
#include "observe/localise/search.hpp"

namespace weft::observe::localise {
namespace {

constexpr double rate_max = 30;  // 1 - e^-30: everything is lost

// log of P(lost | mu + x) / P(lost | mu).
double log_ratio(double mu, double x) { return std::log(std::expm1(-(mu + x)) / std::expm1(-mu)); }

// exp, short of infinity.
double likelihood(double log) { return std::exp(std::min(log, 600.0)); }

}  // namespace

std::span<const ComponentId> Search::members(CauseId cause) const {
  const std::size_t atoms = ledger_.components, fixed = atoms + structure_.groups().size();
  if (cause.index() < atoms) return {&atoms_[cause.index()], 1};
  if (cause.index() < fixed) return structure_.groups()[GroupId(cause.index() - atoms)].members;
  WEFT_CHECK(cause.index() - fixed < ranges_.size());
  return ranges_[cause.index() - fixed].members;
}

Entity Search::entity(CauseId cause) const {
  const std::size_t atoms = ledger_.components, fixed = atoms + structure_.groups().size();
  if (cause.index() < atoms) return structure_.entity(ComponentId(cause.value));
  if (cause.index() < fixed) return structure_.groups()[GroupId(cause.index() - atoms)].entity;
  return ranges_[cause.index() - fixed].entity;
}

bool Search::is_end(CauseId cause) const { return !structure_.is_link(members(cause).front()); }

bool Search::is_even(CauseId end) const {
  return is_end(end) && std::ranges::all_of(members(end), [this](ComponentId one) {
           return even_[one.index() - structure_.link_count()];
         });
}

std::span<const ComponentId> Search::rivals(CauseId group) const {
  const std::size_t atoms = ledger_.components, fixed = atoms + structure_.groups().size();
  if (group.index() < fixed) return structure_.groups()[GroupId(group.index() - atoms)].rivals;
  return ranges_[group.index() - fixed].rivals;
}

Tally Search::tally(CauseId cause, Shape shape) const {
  Tally sum;
  for (const ComponentId member : members(cause))
    for (std::uint16_t k = 0; k < ledger_.class_count(); ++k) {
      if (!shape.takes(k)) continue;
      const Tally& one = ledger_.tally[ledger_.at(k, member)];
      sum.survived += one.survived;
      sum.lost += one.lost;
      sum.rows += one.rows;
    }
  return sum;
}

double Search::mean_intensity() const {
  double sum = 0;
  for (std::size_t kind = 0; kind < kind_count; ++kind)
    sum += background_[kind] * kind_crossings_[kind];
  return sum / std::max(1.0, static_cast<double>(ledger_.total_sent));
}

double Search::intensity(const LossyRow& row) const {
  double sum = 0;
  for (const Crossing& c : row.crossings) {
    const double of_component =
        background_[static_cast<std::size_t>(structure_.kind(c.component))] +
        extra_[ledger_.at(row.traffic_class, c.component)];
    sum += static_cast<double>(c.weight) * c.times * of_component;
  }
  return sum;
}

void Search::update_intensities() {
  for (std::size_t i = 0; i < mu_.size(); ++i) mu_[i] = intensity(ledger_.lossy[i]);
}

void Search::update_intensities(CauseId cause) {
  for (const Entry& e : gather(cause)) mu_[e.row] = intensity(ledger_.lossy[e.row]);
}

// The lossy rows through a cause. A path over two members of a group gives one entry.
std::span<const Entry> Search::gather(CauseId cause) {
  if (cause.index() < ledger_.components) return ledger_.entries(ComponentId(cause.value));
  gathered_.clear();
  for (const ComponentId member : members(cause))
    for (const Entry& e : ledger_.entries(member)) {
      std::uint32_t& place = place_[e.row];
      if (place == 0) {
        gathered_.push_back(e);
        place = static_cast<std::uint32_t>(gathered_.size());
      } else {
        Entry& known = gathered_[place - 1];
        if (ledger_.lossy[e.row].known_path)
          known.times += e.times;
        else
          known.weight = std::min(1.0F, known.weight + e.weight);
      }
    }
  WEFT_CHECK(gathered_.size() <= ledger_.lossy.size());
  for (const Entry& e : gathered_) place_[e.row] = 0;
  return gathered_;
}

// First and second derivative of F, see maximise().
Search::Slope Search::slope(std::span<const Entry> entries, Shape shape, double survivors,
                            double x) const {
  Slope out{-survivors, 0};
  for (const Entry& e : entries) {
    const LossyRow& row = ledger_.lossy[e.row];
    const double lost = lost_[e.row], mu = mu_[e.row];
    if (lost == 0 || !shape.takes(row.traffic_class)) continue;
    const double k = e.times, q = std::expm1(mu + k * x);
    if (row.known_path) {
      out.first += lost * k / q;
      out.second -= lost * k * k * (1 + q) / (q * q);
      continue;
    }
    const double w = e.weight, kept = row.sent - row.lost;
    const double hit = w * likelihood(lost * log_ratio(mu, x) - kept * x);
    const double odds = w < 1 ? hit / (1 - w + hit) : 1;
    out.first += odds * (lost / q - kept) + w * kept;
    out.second -= odds * lost * (1 + q) / (q * q);
  }
  return out;
}

double Search::gain_at(std::span<const Entry> entries, Shape shape, double survivors,
                       double x) const {
  double gain = -survivors * x;
  for (const Entry& e : entries) {
    const LossyRow& row = ledger_.lossy[e.row];
    if (lost_[e.row] == 0 || !shape.takes(row.traffic_class)) continue;
    const double ratio = lost_[e.row] * log_ratio(mu_[e.row], e.times * x);
    if (row.known_path) {
      gain += ratio;
      continue;
    }
    const double w = e.weight, kept = row.sent - row.lost;
    gain += std::log(1 - w + w * likelihood(ratio - kept * x)) + w * kept * x;
  }
  return gain;
}

// The intensity x that, added to a cause's members, makes the evidence likeliest:
//   F(x) = sum over lossy rows of lost * log(P(lost | mu + k x) / P(lost | mu)) - survivors * x.
// A row without a path is the mixture of both cases. F is concave but for these; Newton's method
// inside a bracket. Cost: a few exponentials a row and step, at most 50 steps.
Search::Fit Search::maximise(std::span<const Entry> entries, Shape shape, double survivors) const {
  if (slope(entries, shape, survivors, 0).first <= 0) return {};
  double lost = 0;
  for (const Entry& e : entries)
    if (shape.takes(ledger_.lossy[e.row].traffic_class)) lost += lost_[e.row];
  double low = 0, high = rate_max, x = lost / (survivors + lost);
  for (int step = 0; step < 50; ++step) {
    const Slope s = slope(entries, shape, survivors, x);
    (s.first > 0 ? low : high) = x;
    double next = s.second < 0 ? x - s.first / s.second : x;
    if (!(next > low && next < high)) next = high < rate_max ? 0.5 * (low + high) : 2 * x;
    const bool close = std::abs(next - x) < 1e-3 * x;
    x = std::min(next, rate_max);
    if (close || x == rate_max) break;
  }
  return {x, std::max(0.0, gain_at(entries, shape, survivors, x))};
}

double Search::end_cost(ComponentId end) const {
  WEFT_CHECK(!structure_.is_link(end));
  return end_cost_[end.index() - structure_.link_count()];
}

// How rare the cause is, among how many: what the likelihood must gain to believe it.
double Search::cost(CauseId cause, Shape shape) const {
  const Parameters& p = parameters_;
  double out = 0;
  if (shape.type == Shape::Type::one_class)
    out += std::log(2 * static_cast<double>(ledger_.classes.size()));
  if (shape.type == Shape::Type::tuples) out += std::log(8);
  if (is_end(cause)) {
    double least = end_cost(members(cause).front());
    for (const ComponentId end : members(cause)) least = std::min(least, end_cost(end));
    return out + least;
  }
  const Entity what = entity(cause);
  if (what.kind == EntityKind::link && !counters_.damaged.empty() && counters_.damaged[what.id])
    return out - std::log(p.damaged_odds);
  out += std::log(std::max(1.0, kind_total_[static_cast<std::size_t>(what.kind)])) -
         std::log(fabric_faults_ > 0 ? p.next_fault : p.first_fault);
  if (what.kind == EntityKind::cable || what.kind == EntityKind::nic) out -= std::log(p.pair_odds);
  if (what.kind == EntityKind::card || what.kind == EntityKind::fabric_switch)
    out -= std::log(p.group_odds);
  return out;
}

double Search::losses_on_known_paths(std::span<const Entry> entries, Shape shape) const {
  double sum = 0;
  for (const Entry& e : entries)
    if (e.weight == 1.0F && shape.takes(ledger_.lossy[e.row].traffic_class)) sum += lost_[e.row];
  return sum;
}

Candidate Search::score(CauseId cause, Shape shape) {
  if (shape.type == Shape::Type::tuples) return score_tuples(cause);
  constexpr double hopeless = -100;
  const std::span<const Entry> entries = gather(cause);
  const double survivors = tally(cause, shape).survived;
  const Fit fit = maximise(entries, shape, survivors);
  if (fit.gain < 1) return {cause, shape, hopeless, fit.rate, fit.gain};
  // A good link may be worse than its like: its intensity above the mean is taken to fall off as
  // exp(-3 x / mean), which only adds to the survivors. (Uniform on [0, 2 mean] ends at x = mean.)
  Fit normal;
  const std::span<const ComponentId> parts = members(cause);
  if (learned_ && parts.size() <= 2 && !is_end(cause)) {
    const auto kind = static_cast<std::size_t>(structure_.kind(parts.front()));
    normal = maximise(entries, shape, survivors + 3 / background_[kind]);
  }
  // The rate is unknown, log-uniform over four decades (Laplace's approximation).
  const double occam = std::log(4 * std::log(10.0)) - 0.5 * std::log(2 * M_PI) +
                       0.5 * std::log(std::max(1.0, fit.rate * survivors));
  const double score = fit.gain - normal.gain - cost(cause, shape) - occam;
  return {cause, shape, score, fit.rate, fit.gain};
}

// A share f of the tuples through the cause loses (nearly) all, the others nothing more: each row
// is a mixture, and a clean row has weight 1 - f at least. Needs several tuples.
Candidate Search::score_tuples(CauseId cause) {
  double hit = 0, gain = 0;
  std::vector<std::uint32_t> flows;
  for (const Entry& e : gather(cause)) {
    const LossyRow& row = ledger_.lossy[e.row];
    if (lost_[e.row] == 0 || mu_[e.row] > explained_mu || !is_hit_tuple(row) || e.weight < 1.0F)
      continue;
    const double kept = row.sent - row.lost;
    const double share = std::min(row.lost / row.sent, 1 - 1e-9);
    hit += 1;
    flows.push_back(row.flow);
    gain += row.lost * (std::log(share) - std::log(-std::expm1(-mu_[e.row]))) +
            kept * (std::log1p(-share) + mu_[e.row]);
  }
  const Shape shape{Shape::Type::tuples, 0};
  std::ranges::sort(flows);
  const auto twice = std::ranges::unique(flows);
  flows.erase(twice.begin(), twice.end());
  // One flow that lost everything in three windows is one tuple.
  if (static_cast<double>(flows.size()) < parameters_.tuples_min) return {cause, shape, -100, 0, 0};
  double rows = tally(cause, {}).rows;
  // A path through a switch crosses two of its links.
  if (entity(cause).kind == EntityKind::fabric_switch) rows /= 2;
  rows = std::max(rows, hit);
  const double f = hit / rows;
  gain += hit * std::log(f) + (f < 1 ? (rows - hit) * std::log1p(-f) : 0);
  return {cause, shape, gain - cost(cause, shape) - 0.5 * std::log(hit), f, gain};
}

}  // namespace weft::observe::localise
