#include "observe/localise/search.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <queue>
#include <ranges>

#include "base/check.hpp"

namespace weft::observe::localise {
namespace {

constexpr int rounds_max = 16;

// Highest score first; equal ones by id, so that nothing hangs on the order of evidence.
struct Worse {
  bool operator()(const Candidate& a, const Candidate& b) const {
    if (a.score != b.score) return a.score < b.score;
    if (a.cause != b.cause) return a.cause > b.cause;
    return a.shape > b.shape;
  }
};
using Queue = std::priority_queue<Candidate, std::vector<Candidate>, Worse>;

}  // namespace

Search::Search(const Structure& structure, const EvidenceIndex& ledger,
               const CounterFacts& counters, std::uint32_t card_ports)
    : structure_(structure),
      ledger_(ledger),
      counters_(counters),
      card_ports_(card_ports),
      extra_(ledger.tally.size(), 0),
      mu_(ledger.lossy.size()),
      response_(ledger.tally.size(), 0),
      dropped_(ledger.tally.size(), 0),
      place_(ledger.lossy.size(), 0) {
  WEFT_CHECK(ledger.tally.size() == ledger.classes.size() * ledger.components);
  WEFT_CHECK(ledger.components == structure.component_count());
  for (const LossyRow& row : ledger.lossy) lost_.push_back(row.lost);
  for (std::uint32_t c = 0; c < ledger.components; ++c) atoms_.emplace_back(c);
}

void Search::run() {
  count_kinds();
  judge_ends();
  const double all = static_cast<double>(ledger_.total_lost) + parameters_.normal_losses;
  const double crossings = kind_crossings_[0] + kind_crossings_[1] + kind_crossings_[2];
  background_.fill(all / (crossings + parameters_.normal_probes));
  update_intensities();
  accept_congestion();
  accept_dead_ends();
  for (int round = 0; round < rounds_max; ++round) {
    const double before = background_[0];
    propose_ranges();
    const Pass pass = greedy();
    learn();
    if (pass == Pass::settled && learned_ && std::abs(background_[0] - before) < 0.1 * before)
      break;
    learned_ = learned_ || pass != Pass::cut_short;
  }
  refine_ranges();
  prune();
  merge_neighbours();
}

// How many causes of each kind the evidence touches.
void Search::count_kinds() {
  std::vector<bool> seen(ledger_.components);
  for (std::uint32_t c = 0; c < ledger_.components; ++c) {
    for (std::size_t k = 0; k < ledger_.classes.size(); ++k) {
      const Tally& tally = ledger_.tally[ledger_.at(k, ComponentId(c))];
      if (tally.rows > 0) seen[c] = true;
      kind_crossings_[static_cast<std::size_t>(structure_.kind(ComponentId(c)))] +=
          tally.survived + tally.lost;
    }
    if (seen[c] && structure_.is_link(ComponentId(c)))
      kind_total_[static_cast<std::size_t>(EntityKind::link)] += 1;
  }
  for (const Group& group : structure_.groups())
    if (std::ranges::any_of(group.members, [&](ComponentId c) { return seen[c.index()]; }))
      kind_total_[static_cast<std::size_t>(group.entity.kind)] += 1;
}

namespace {

// Variance over mean: 1 where losses fall independently.
double dispersion_of(std::span<const double> by_window) {
  const auto windows = static_cast<double>(by_window.size());
  const double mean = std::reduce(by_window.begin(), by_window.end()) / windows;
  double squares = 0;
  for (const double y : by_window) squares += (y - mean) * (y - mean);
  return squares / mean / (windows - 1);
}

// Without the first with losses, in which they may have begun, and the last, in which not every
// prober has told yet.
std::span<const double> since_it_began(std::span<const double> by_window) {
  const auto first = std::ranges::find_if(by_window, [](double y) { return y > 0; });
  const auto from = static_cast<std::size_t>(first - by_window.begin()) + 1;
  return from + 1 < by_window.size() ? by_window.subspan(from, by_window.size() - from - 1)
                                     : std::span<const double>();
}

}  // namespace

// Hosts stall in bursts and answer late; what goes on evenly from window to window is less like a
// host. The dispersion of losses over windows is 1 where they fall independently.
void Search::judge_ends() {
  const double usual = -std::log(parameters_.end_odds);
  end_cost_.assign(ledger_.components - structure_.link_count(), usual);
  even_.assign(end_cost_.size(), false);
  const double late_share = static_cast<double>(ledger_.total_late) /
                            std::max(1.0, static_cast<double>(ledger_.total_sent));
  for (std::size_t i = 0; i < end_cost_.size(); ++i) {
    const ComponentId end(structure_.link_count() + i);
    double late = 0, sent = 0, lost = 0;
    for (std::size_t k = 0; k < ledger_.classes.size(); ++k) {
      const Tally& tally = ledger_.tally[ledger_.at(k, end)];
      late += tally.late;
      sent += tally.survived + tally.lost;
    }
    if (late >= 3 && late > 5 * late_share * sent) end_cost_[i] = std::log(2);
    if (ledger_.windows < 5 || ledger_.entries(end).empty()) continue;
    const std::size_t windows = std::min<std::size_t>(ledger_.windows, 256);
    std::vector<double> by_window(windows, 0);
    for (const Entry& e : ledger_.entries(end)) {
      by_window[ledger_.window_of[e.row] * windows / ledger_.windows] += ledger_.lossy[e.row].lost;
      lost += ledger_.lossy[e.row].lost;
    }
    if (lost < 20) continue;
    const std::span<const double> since = since_it_began(by_window);
    even_[i] = since.size() >= 4 && std::ranges::max(since) > 0 && dispersion_of(since) < 2 &&
               end_cost_[i] >= usual;  // less: it answers late
    const double dispersion = dispersion_of(by_window);
    if (dispersion > 4) end_cost_[i] = std::min(end_cost_[i], std::log(10));
    if (dispersion < 2) end_cost_[i] = std::max(end_cost_[i], usual + std::log(100));
  }
}

void Search::accept_congestion() {
  for (const Congestion& known : counters_.congested) {
    const ComponentId component = Structure::of(known.link);
    const double rate = -std::log1p(-std::min(known.rate, 0.999));
    const Shape shape{Shape::Type::one_class, known.traffic_class};
    accepted_.push_back(
        {{CauseId(component.value), shape, 0, rate, 0}, {component}, {rate}, rate, 0, {}});
  }
  rebuild_extra();
  update_intensities();
}

// Ends that nothing came through to, unless a switch would explain several of them.
void Search::accept_dead_ends() {
  constexpr double dead = 0.95, rows_min = 10;
  const auto is_dead = [&](ComponentId end) {
    const Tally all = tally(CauseId(end.value), {});
    return all.rows >= rows_min && all.lost > dead * (all.survived + all.lost);
  };
  std::vector<Candidate> found;
  std::vector<bool> shared(ledger_.components);
  for (const Group& group : structure_.groups())
    if (group.entity.kind == EntityKind::fabric_switch &&
        std::ranges::count_if(group.rivals, is_dead) > 1)
      for (const ComponentId end : group.rivals) shared[end.index()] = true;
  for (std::size_t c = structure_.link_count(); c < ledger_.components; ++c)
    if (!shared[c] && is_dead(ComponentId(c))) found.push_back(score(CauseId(c), {}));
  taken_.assign(ledger_.components + structure_.groups().size(), 0);
  for (const Candidate& candidate : found)
    if (candidate.score > parameters_.accept) accept(candidate);
}

void Search::rebuild_extra() {
  std::ranges::fill(extra_, 0);
  for (const Accepted& verdict : accepted_) add_extra(verdict, 1);
}

// Adds the verdict's intensities to its components, or with -1 takes them away.
void Search::add_extra(const Accepted& verdict, int sign) {
  constexpr double rounding = 1e-15;
  WEFT_CHECK(verdict.members.size() == verdict.rates.size());
  if (verdict.candidate.shape.type == Shape::Type::tuples) return;
  for (std::size_t i = 0; i < verdict.members.size(); ++i)
    for (std::uint16_t k = 0; k < ledger_.class_count(); ++k) {
      if (!verdict.candidate.shape.takes(k)) continue;
      double& extra = extra_[ledger_.at(k, verdict.members[i])];
      extra += sign * verdict.rates[i];
      if (extra < rounding) extra = 0;
    }
}

void Search::score_shapes(CauseId cause, std::vector<Candidate>& out) {
  const auto keep = [&](const Candidate& candidate) {
    if (candidate.score > parameters_.suspect) out.push_back(candidate);
  };
  const Candidate all = score(cause, {});
  keep(all);
  if (is_end(cause)) return;
  const EntityKind kind = entity(cause).kind;
  if (kind == EntityKind::card) return;
  if (all.gain > 1 && ledger_.classes.size() > 1 && kind != EntityKind::cable)
    for (std::uint16_t k = 0; k < ledger_.class_count(); ++k)
      keep(score(cause, {Shape::Type::one_class, k}));
  keep(score(cause, {Shape::Type::tuples, 0}));
}

std::vector<Candidate> Search::score_all() {
  std::vector<Candidate> out;
  const std::size_t count = ledger_.components + structure_.groups().size() + ranges_.size();
  for (std::uint32_t cause = 0; cause < count; ++cause) {
    if (taken_[cause] != 0) continue;
    const auto lossless = [&](ComponentId c) { return ledger_.entries(c).empty(); };
    if (!std::ranges::all_of(members(CauseId(cause)), lossless)) score_shapes(CauseId(cause), out);
  }
  return out;
}

// Takes the best candidate until none is good enough. Explaining losses only lowers the scores of
// others, so a score from before is a bound and is renewed when its turn comes.
Search::Pass Search::greedy() {
  taken_.assign(ledger_.components + structure_.groups().size() + ranges_.size(), 0);
  for (const Accepted& verdict : accepted_)
    if (verdict.prior_rate == 0) taken_[verdict.candidate.cause.index()] = 1;
  suspects_.clear();
  Queue queue(Worse{}, score_all());
  Pass pass = Pass::settled;
  while (!queue.empty()) {
    const Candidate top = queue.top();
    queue.pop();
    if (taken_[top.cause.index()] != 0) continue;
    const Candidate now = score(top.cause, top.shape);
    if (now.score <= parameters_.suspect) continue;
    if (!queue.empty() && Worse{}(now, queue.top()) && now.score < top.score - 1e-3) {
      queue.push(now);
      continue;
    }
    if (now.score <= parameters_.accept || !take(now)) {
      if (!is_end(now.cause)) suspects_.push_back(now);
      continue;
    }
    if (taken_[now.cause.index()] == 2) continue;
    pass = Pass::again;
    // The members of a large group first find their own rates.
    if (members(now.cause).size() > 2) return Pass::cut_short;
  }
  return pass;
}

// Accepts the candidate, or marks it (2) where its parts or rivals explain more. False: too little
// to tell for certain.
bool Search::take(const Candidate& candidate) {
  double least = is_end(candidate.cause) ? 0 : parameters_.losses_min;
  if (entity(candidate.cause).kind == EntityKind::card && card_ports_ == 0)
    least *= static_cast<double>(members(candidate.cause).size());
  if (losses_on_known_paths(gather(candidate.cause), candidate.shape) < least) return false;
  const bool group = candidate.cause.index() >= ledger_.components;
  if (group && (!is_spread(candidate) ||
                explained_by(parts_of(candidate.cause), candidate) >= candidate.score ||
                explained_by(rivals_of(candidate.cause), candidate) >= candidate.score)) {
    taken_[candidate.cause.index()] = 2;
    return true;
  }
  accept(candidate);
  return true;
}

void Search::accept(const Candidate& candidate) {
  WEFT_CHECK(taken_[candidate.cause.index()] == 0);
  taken_[candidate.cause.index()] = 1;
  if (!is_end(candidate.cause)) ++fabric_faults_;
  const std::span<const ComponentId> parts = members(candidate.cause);
  accepted_.push_back({candidate,
                       {parts.begin(), parts.end()},
                       std::vector<double>(parts.size(), candidate.rate),
                       0,
                       0,
                       {}});
  if (candidate.shape.type == Shape::Type::tuples) {
    for (const Entry& e : gather(candidate.cause)) {
      const LossyRow& row = ledger_.lossy[e.row];
      if (!is_hit_tuple(row) || e.weight < 1.0F || mu_[e.row] > explained_mu) continue;
      accepted_.back().explained += lost_[e.row];
      for (const Crossing& c : row.crossings)
        dropped_[ledger_.at(row.traffic_class, c.component)] += lost_[e.row];
      lost_[e.row] = 0;
    }
    return;
  }
  add_extra(accepted_.back(), 1);
  update_intensities(candidate.cause);
}

// Whether about as many members show losses as should if all had the group's rate.
bool Search::is_spread(const Candidate& group) const {
  constexpr double share = 0.8;
  if (group.shape.type == Shape::Type::tuples) return true;
  double expected = 0, seen = 0;
  for (const ComponentId member : members(group.cause)) {
    const CauseId alone(member.value);
    expected += -std::expm1(-group.rate * tally(alone, group.shape).survived);
    const auto lossy = [&](const Entry& e) {
      return lost_[e.row] > 0 && group.shape.takes(ledger_.lossy[e.row].traffic_class);
    };
    if (std::ranges::any_of(ledger_.entries(member), lossy)) seen += 1;
  }
  return seen >= share * expected;
}

// Groups within the group, and its members.
std::vector<CauseId> Search::parts_of(CauseId group) const {
  std::vector<CauseId> out;
  const std::span<const ComponentId> inside = members(group);
  std::vector<GroupId> seen;
  for (const ComponentId member : inside) {
    out.emplace_back(member.value);
    const auto groups = structure_.groups_of(member);
    seen.insert(seen.end(), groups.begin(), groups.end());
  }
  std::ranges::sort(seen);
  for (std::size_t i = 0; i < seen.size();) {
    std::size_t next = i;
    while (next < seen.size() && seen[next] == seen[i]) ++next;
    const CauseId part(ledger_.components + seen[i].index());
    if (part != group && next - i == members(part).size() && next - i < inside.size())
      out.push_back(part);
    i = next;
  }
  const std::size_t fixed = ledger_.components + structure_.groups().size();
  for (std::size_t i = 0; i < ranges_.size(); ++i) {
    const CauseId range(fixed + i);
    if (range != group && ranges_[i].members.size() < inside.size() &&
        std::ranges::includes(inside, ranges_[i].members))
      out.push_back(range);
  }
  return out;
}

std::vector<CauseId> Search::rivals_of(CauseId group) const {
  std::vector<CauseId> out;
  for (const ComponentId rival : rivals(group)) out.emplace_back(rival.value);
  return out;
}

// What the best of `parts` score together, each given those before it.
double Search::explained_by(std::span<const CauseId> parts, const Candidate& group) {
  WEFT_CHECK(taken_.size() == ledger_.components + structure_.groups().size() + ranges_.size());
  const Shape shape = group.shape;
  struct Saved {
    std::uint32_t row;
    double mu, lost;
  };
  std::vector<Saved> saved;
  const std::size_t faults = fabric_faults_;
  std::vector<Candidate> found;
  for (const CauseId part : parts) {
    const bool range = entity(part).kind == EntityKind::card;
    if (range && shape.type == Shape::Type::tuples) continue;  // never a cause of its own
    const Candidate candidate = score(part, is_end(part) ? Shape{} : shape);
    if (taken_[part.index()] == 0 && candidate.score > 0) found.push_back(candidate);
  }
  Queue queue(Worse{}, std::move(found));
  double sum = 0;
  while (!queue.empty()) {
    const Candidate top = queue.top();
    queue.pop();
    const Candidate now = score(top.cause, top.shape);
    if (now.score <= 0) continue;
    if (!queue.empty() && Worse{}(now, queue.top()) && now.score < top.score - 1e-3) {
      queue.push(now);
      continue;
    }
    sum += now.score;
    if (!is_end(now.cause)) ++fabric_faults_;
    for (const Entry& e : gather(now.cause)) {
      saved.push_back({e.row, mu_[e.row], lost_[e.row]});
      if (shape.type == Shape::Type::tuples && is_hit_tuple(ledger_.lossy[e.row]))
        lost_[e.row] = 0;
      else if (now.shape.takes(ledger_.lossy[e.row].traffic_class))
        mu_[e.row] += static_cast<double>(e.weight) * e.times * now.rate;
    }
  }
  fabric_faults_ = faults;
  for (const Saved& before : saved | std::views::reverse) {
    mu_[before.row] = before.mu;
    lost_[before.row] = before.lost;
  }
  return sum;
}

// Each verdict must still be needed, given all the others.
void Search::prune() {
  for (std::size_t i = accepted_.size(); i-- > 0;) {
    if (accepted_[i].prior_rate > 0 || accepted_[i].candidate.shape.type == Shape::Type::tuples)
      continue;
    const Accepted verdict = accepted_[i];
    accepted_.erase(accepted_.begin() + static_cast<std::ptrdiff_t>(i));
    add_extra(verdict, -1);
    update_intensities(verdict.candidate.cause);
    const bool fabric = !is_end(verdict.candidate.cause);
    WEFT_CHECK(!fabric || fabric_faults_ > 0);
    if (fabric) --fabric_faults_;
    const Candidate alone = score(verdict.candidate.cause, verdict.candidate.shape);
    if (alone.score <= parameters_.accept) {
      if (alone.score > parameters_.suspect && fabric) suspects_.push_back(alone);
      continue;
    }
    Accepted kept = verdict;
    kept.candidate.score = alone.score;
    kept.candidate.gain = alone.gain;
    find_alternatives(kept);
    if (fabric) ++fabric_faults_;
    accepted_.insert(accepted_.begin() + static_cast<std::ptrdiff_t>(i), kept);
    add_extra(verdict, 1);
    update_intensities(verdict.candidate.cause);
  }
  attribute();
  std::ranges::sort(suspects_,
                    [](const Candidate& a, const Candidate& b) { return Worse{}(b, a); });
}

// With the verdict taken out: single causes that cross at least half of its losses and score nearly
// as well.
void Search::find_alternatives(Accepted& verdict) {
  constexpr double nearly = 4;
  if (verdict.members.size() > 2) return;
  std::vector<double> through(ledger_.components, 0);
  double all = 0;
  const std::span<const Entry> entries = gather(verdict.candidate.cause);
  for (const Entry& e : entries) {
    all += lost_[e.row];
    for (const Crossing& c : ledger_.lossy[e.row].crossings)
      through[c.component.index()] += static_cast<double>(c.weight) * lost_[e.row];
  }
  std::vector<CauseId> others;
  for (std::uint32_t c = 0; c < through.size(); ++c) {
    if (through[c] < 0.5 * all) continue;
    others.emplace_back(c);
    for (const GroupId group : structure_.groups_of(ComponentId(c)))
      if (structure_.groups()[group].members.size() <= 2)
        others.emplace_back(ledger_.components + group.index());
  }
  std::ranges::sort(others);
  const auto twice = std::ranges::unique(others);
  others.erase(twice.begin(), twice.end());
  for (const CauseId other : others) {
    const auto inside = [&](ComponentId c) { return std::ranges::count(verdict.members, c) > 0; };
    if (std::ranges::any_of(members(other), inside)) continue;  // the same place
    const Candidate candidate = score(other, is_end(other) ? Shape{} : verdict.candidate.shape);
    if (candidate.score > verdict.candidate.score - nearly)
      verdict.alternatives.push_back({candidate, score_beside(verdict.candidate, candidate)});
  }
  std::ranges::sort(verdict.alternatives, [](const Alternative& a, const Alternative& b) {
    return Worse{}(b.candidate, a.candidate);
  });
}

// The score that a cause has left once another one is known.
double Search::score_beside(const Candidate& cause, const Candidate& known) {
  std::vector<std::pair<std::uint32_t, double>> saved;
  for (const Entry& e : gather(known.cause)) {
    saved.emplace_back(e.row, mu_[e.row]);
    if (known.shape.takes(ledger_.lossy[e.row].traffic_class))
      mu_[e.row] += static_cast<double>(e.weight) * e.times * known.rate;
  }
  const double left = score(cause.cause, cause.shape).score;
  for (const auto& [row, mu] : saved) mu_[row] = mu;
  return left;
}

}  // namespace weft::observe::localise
