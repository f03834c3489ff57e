// Expectation maximisation over all causes at once: which of them each loss is owed to.
#include <algorithm>
#include <cmath>

#include "observe/localise/search.hpp"

namespace weft::observe::localise {
namespace {

constexpr int sweeps_max = 30;
constexpr double settled = 0.01;  // relative change of any intensity

double change(double before, double after) {
  return std::abs(after - before) / std::max(before, 1e-12);
}

}  // namespace

void Search::learn() {
  for (int i = 0; i < sweeps_max; ++i) {
    const double moved = sweep();
    rebuild_extra();
    update_intensities();
    if (moved < settled) break;
  }
}

// A probe is hit by each component with its intensity, and lost if hit at all: of a lost probe,
// component c expects lambda_c / P(lost) hits.
void Search::spread_losses() {
  std::ranges::fill(response_, 0);
  for (std::size_t i = 0; i < mu_.size(); ++i) {
    if (lost_[i] == 0) continue;
    const LossyRow& row = ledger_.lossy[i];
    const double scale = lost_[i] / -std::expm1(-mu_[i]);
    for (const Crossing& c : row.crossings) {
      const std::size_t at = ledger_.at(row.traffic_class, c.component);
      const double lambda =
          background_[static_cast<std::size_t>(structure_.kind(c.component))] + extra_[at];
      response_[at] += scale * static_cast<double>(c.weight) * c.times * lambda;
    }
  }
}

double Search::sweep() {
  spread_losses();
  const std::array<double, kind_count> before = background_;
  double moved = learn_background();
  for (Accepted& verdict : accepted_)
    if (verdict.candidate.shape.type != Shape::Type::tuples)
      moved = std::max(moved, learn_rates(verdict, before));
  return moved;
}

double Search::learn_background() {
  std::array<double, kind_count> hits{}, probes{};
  for (std::uint32_t c = 0; c < ledger_.components; ++c) {
    const auto kind = static_cast<std::size_t>(structure_.kind(ComponentId(c)));
    for (std::size_t k = 0; k < ledger_.classes.size(); ++k) {
      const std::size_t at = ledger_.at(k, ComponentId(c));
      probes[kind] += ledger_.tally[at].survived + ledger_.tally[at].lost - dropped_[at];
      if (response_[at] > 0)
        hits[kind] += response_[at] * background_[kind] / (background_[kind] + extra_[at]);
    }
  }
  double moved = 0;
  for (std::size_t kind = 0; kind < kind_count; ++kind) {
    const double next =
        (hits[kind] + parameters_.normal_losses) / (probes[kind] + parameters_.normal_probes);
    moved = std::max(moved, change(background_[kind], next));
    background_[kind] = next;
  }
  return moved;
}

// Members of a group shrink towards the group's mean (a Gamma prior); a rate known from counters
// holds as one lost probe would.
double Search::learn_rates(Accepted& verdict, const std::array<double, kind_count>& background) {
  const std::size_t count = verdict.members.size();
  double mean = 0;
  for (const double rate : verdict.rates) mean += rate / static_cast<double>(count);
  const bool known = verdict.prior_rate > 0;
  const double shape = known ? 1 : (count > 1 ? parameters_.group_shape : 0);
  const double weight = shape > 0 ? shape / (known ? verdict.prior_rate : mean) : 0;
  double moved = 0, next_mean = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const ComponentId member = verdict.members[i];
    const double normal = background[static_cast<std::size_t>(structure_.kind(member))];
    double hits = 0, probes = 0;
    for (std::uint16_t k = 0; k < ledger_.class_count(); ++k) {
      if (!verdict.candidate.shape.takes(k)) continue;
      const std::size_t at = ledger_.at(k, member);
      probes += ledger_.tally[at].survived + ledger_.tally[at].lost - dropped_[at];
      if (response_[at] > 0) hits += response_[at] * verdict.rates[i] / (normal + extra_[at]);
    }
    const double next = probes + weight > 0 ? (hits + shape) / (probes + weight) : 0;
    moved = std::max(moved, count > 1 ? 0 : change(verdict.rates[i], next));
    verdict.rates[i] = next;
    next_mean += next / static_cast<double>(count);
  }
  verdict.candidate.rate = next_mean;
  return std::max(moved, change(mean, next_mean));
}

// Lost probes that each verdict accounts for.
void Search::attribute() {
  update_intensities();
  for (Accepted& verdict : accepted_) {
    if (verdict.candidate.shape.type == Shape::Type::tuples) continue;
    verdict.explained = 0;
    for (std::size_t i = 0; i < verdict.members.size(); ++i)
      for (const Entry& e : ledger_.entries(verdict.members[i]))
        if (verdict.candidate.shape.takes(ledger_.lossy[e.row].traffic_class))
          verdict.explained += lost_[e.row] * static_cast<double>(e.weight) * e.times *
                               verdict.rates[i] / mu_[e.row];
  }
}

}  // namespace weft::observe::localise
