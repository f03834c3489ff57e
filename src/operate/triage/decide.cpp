// Which cause explains what waits on a part: every suspect whose footprint holds the part is
// weighed, and the cheapest story wins.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "operate/triage/correlator.hpp"

namespace weft::operate::triage {
namespace {

using model::EventKind;

// Nats to say which `k` of `n` parts are meant.
double entropy(double k, double n) {
  if (k <= 0 || k >= n) return 0;
  const double share = k / n;
  return -n * (share * std::log(share) + (1 - share) * std::log(1 - share));
}

}  // namespace

double Correlator::price_of_ports(double spoken, double ports, double runs) {
  return std::min(entropy(spoken, ports), 2 * runs * std::log(ports));
}

bool Correlator::speaks(const Pending& pending, const CauseRule& rule, CauseKind kind,
                        std::int64_t onset) const {
  if ((pending.tally.kinds & rule.expects) == 0) return false;
  const bool is_down = (pending.tally.kinds & down_) != 0;
  if (pending.tally.policies > 0 && !is_down) return false;  // that is somebody's will
  // The control plane alone leaves links up, or lets them be what they were.
  if (kind == CauseKind::control_plane && is_down && !pending.is_up) return false;
  return is_near(pending, onset);
}

bool Correlator::is_near(const Pending& pending, std::int64_t onset) const {
  return std::abs(pending.onset() - onset) <= rules_.timing.together_ns + pending.slack;
}

// Whether the case of a part would be swallowed by the suspect: a lesser cause inside its
// footprint that began with it.
bool Correlator::is_lesser(const OpenCase& c, PartId part, SuspectId suspect,
                           std::int64_t onset) const {
  const bool is_slow = c.kind == CauseKind::flap || c.kind == CauseKind::optic;
  // What was proven to be apart a rack without power may still have brought about.
  const bool is_apart = c.is_apart && (is_splitting_ || suspects_[suspect].kind < CauseKind::rack);
  if (is_slow || is_apart || c.kind >= suspects_[suspect].kind || !states_[part.index()].has_spoken)
    return false;
  if (std::abs(c.onset - onset) > rules_.timing.together_ns) return false;
  if (suspects_[suspect].kind == CauseKind::control_plane && (c.tally.kinds & down_) != 0)
    return false;
  return std::ranges::binary_search(suspects_.of(c.root), suspect);
}

// The price of the lesser case that the part belongs to; each part of it brings its share.
double Correlator::refund(PartId part, SuspectId suspect, std::int64_t onset) const {
  const std::uint32_t owner = states_[part.index()].owner;
  const OpenCase& c = cases_[owner];
  if (!is_lesser(c, part, suspect, onset)) return 0;
  const auto spoken = std::ranges::count_if(c.owned, [&](PartId owned) {
    const PartState& state = states_[owned.index()];
    return state.owner == owner && state.has_spoken;
  });
  return rules_.cause(c.kind).price / static_cast<double>(std::max<std::ptrdiff_t>(spoken, 1));
}

double Correlator::weigh_cable(PartId part, const CauseRule& rule, const Suspects::Suspect& row,
                               SuspectId suspect, std::int64_t onset, Weighing& sum) const {
  const PartState& state = states_[part.index()];
  if (state.pending != none && speaks(pendings_[state.pending], rule, row.kind, onset)) {
    ++sum.spoken;
    return rules_.gain;
  }
  // A session that is lost over a link that is up speaks against the cause, but not aloud.
  if (state.pending != none && (pendings_[state.pending].tally.kinds & session_) != 0 &&
      is_near(pendings_[state.pending], onset))
    return -rule.silent / 2;
  // What belongs to another cause can not be expected to speak for this one.
  if (is_live_at(part, onset) && !state.is_clear) {
    const double back = refund(part, suspect, onset);
    return back > 0 && !state.was_down ? back - rule.silent / 2 : back;
  }
  return -rule.silent;
}

double Correlator::weigh_other(PartId part, const CauseRule& rule, SuspectId suspect,
                               std::int64_t onset, Weighing& sum) const {
  const PartState& state = states_[part.index()];
  if (state.pending == none)
    return state.owner != none && is_live_at(part, onset) ? refund(part, suspect, onset) : 0;
  const Pending& pending = pendings_[state.pending];
  const KindMask said = pending.tally.kinds & rule.explains;
  double direct = 0;
  for (KindMask left = said; left != 0; left &= left - 1)
    direct = std::max(direct, rule.direct[static_cast<std::size_t>(std::countr_zero(left))]);
  sum.direct += direct;
  if (direct > 0) return direct;
  // In a rack without power nobody is left to see a cable within it go down.
  const bool is_dark = suspects_[suspect].kind == CauseKind::rack;
  if (!is_near(pending, onset) || (is_dark && parts_.is_cable(part))) return 0;
  return (said & (down_ | silence_)) != 0 ? rules_.gain : 0;
}

// No weighing of the suspect gives more.
double Correlator::score_max(SuspectId suspect) const {
  const auto kind = static_cast<std::size_t>(suspects_[suspect].kind);
  return alarms_[suspect.index()] * worth_max_[kind] + recents_[suspect.index()] * price_max_ -
         rules_.causes[kind].price;
}

Correlator::Weighing Correlator::weigh(SuspectId suspect, std::int64_t onset) const {
  const Suspects::Suspect& row = suspects_[suspect];
  const CauseRule& rule = rules_.cause(row.kind);
  Weighing sum;
  sum.score = -rule.price;
  // With the best that can still come, all the rest silent: once that is not enough, it is over.
  const double hope = score_max(suspect) + rule.price;
  const bool may_be_part = (is_device(row.kind) || row.kind == CauseKind::card) &&
                           alarms_[suspect.index()] >= rules_.counts.part;
  for (const PartId part : suspects_.expected(suspect)) {
    sum.score += weigh_cable(part, rule, row, suspect, onset, sum);
    if (!may_be_part && sum.score - rules_.gain * sum.spoken + hope <= 0) return sum;
  }
  for (const PartId part : suspects_.possible(suspect))
    sum.score += weigh_other(part, rule, suspect, onset, sum);
  return sum;
}

bool Correlator::speaks_at_once(PartId part, std::int64_t onset) const {
  const std::uint32_t slot = states_[part.index()].pending;
  if (slot == none || (pendings_[slot].tally.kinds & down_) == 0) return false;
  return std::abs(pendings_[slot].onset() - onset) <= rules_.timing.at_once_ns;
}

// A host that answers nobody.
bool Correlator::is_silenced(PartId part, std::int64_t onset) const {
  const std::uint32_t slot = states_[part.index()].pending;
  if (slot == none || !parts_.is_node(part)) return false;
  const bool is_host = parts_.fabric().kind(parts_.node(part)) == model::NodeKind::host;
  return is_host && (pendings_[slot].tally.kinds & silence_) != 0 &&
         is_near(pendings_[slot], onset);
}

// What causes lesser than `kind` would explain of the same cables, each for itself.
double Correlator::score_of_lesser(std::span<const PartId> spoken, CauseKind kind,
                                   std::int64_t onset) const {
  std::vector<SuspectId> lesser;
  for (const PartId part : spoken)
    for (const SuspectId suspect : suspects_.of(part))
      if (suspects_[suspect].kind < kind && score_max(suspect) > 0) lesser.push_back(suspect);
  std::ranges::sort(lesser);
  const auto rest = std::ranges::unique(lesser);
  lesser.erase(rest.begin(), rest.end());
  double sum = 0;
  for (const SuspectId suspect : lesser) sum += std::max(0.0, weigh(suspect, onset).score);
  return sum;
}

// The case of a lesser cause inside `whole` that began in the same blow, and holds the part.
std::uint32_t Correlator::lesser_at_once(PartId part, SuspectId whole, std::int64_t onset) const {
  const PartState& state = states_[part.index()];
  if (state.owner == none || !state.was_down || !is_live_at(part, onset)) return none;
  const OpenCase& c = cases_[state.owner];
  const bool is_at_once = std::abs(c.onset - onset) <= rules_.timing.at_once_ns;
  return is_at_once && c.kind < CauseKind::part && is_lesser(c, part, whole, onset) ? state.owner
                                                                                    : none;
}

double Correlator::score_of_case(std::uint32_t slot) const {
  const OpenCase& c = cases_[slot];
  const auto spoken = std::ranges::count_if(c.owned, [&](PartId part) {
    const PartState& state = states_[part.index()];
    return state.owner == slot && state.was_down;
  });
  return rules_.gain * static_cast<double>(spoken) - rules_.cause(c.kind).price;
}

// Part of a switch or card: many ports in one blow pay for saying which ones, one by one or in
// runs, and must tell more than lesser causes do. What these explain already is no gain.
double Correlator::score_of_part(SuspectId whole, CauseKind kind, double direct,
                                 std::int64_t onset) const {
  if (alarms_[whole.index()] < rules_.counts.part && recents_[whole.index()] == 0) return -1;
  std::vector<PartId> waiting;
  std::vector<std::uint32_t> lesser;
  double ports = 0, runs = 0, spoken = 0;
  bool was_spoken = false;
  for (const PartId part : suspects_.all(whole)) {
    if (is_silenced(part, onset)) direct += rules_.gain;
    if (!parts_.is_cable(part)) continue;
    const bool waits = speaks_at_once(part, onset);
    const std::uint32_t owner = kind == CauseKind::part ? lesser_at_once(part, whole, onset) : none;
    if (waits) waiting.push_back(part);
    if (owner != none && std::ranges::find(lesser, owner) == lesser.end()) lesser.push_back(owner);
    const bool is_spoken = waits || owner != none;
    spoken += is_spoken ? 1 : 0;
    runs += is_spoken && !was_spoken ? 1 : 0;
    was_spoken = is_spoken;
    ++ports;
  }
  if (spoken < rules_.counts.part) return -1;
  double known = 0;
  for (const std::uint32_t slot : lesser) known += score_of_case(slot);
  const double which = price_of_ports(spoken, ports, runs);
  const double score = rules_.gain * spoken + direct - rules_.cause(kind).price - which - known;
  return score > score_of_lesser(waiting, kind, onset) ? score : -1;
}

Correlator::Verdict Correlator::weigh(PartId part, const Pending& pending) const {
  Verdict best;
  const auto offer = [&](CauseKind kind, SuspectId suspect, double score) {
    if (score > std::max(best.score, 0.0)) {
      best.runner_up = std::max(best.score, 0.0);
      best = {kind, suspect, score, best.runner_up};
    } else {
      best.runner_up = std::max(best.runner_up, score);
    }
  };
  const std::int64_t onset = pending.onset();
  for (const SuspectId suspect : suspects_.of(part)) {
    const Suspects::Suspect& row = suspects_[suspect];
    if ((pending.tally.kinds & rules_.cause(row.kind).explains) == 0) continue;
    if (score_max(suspect) <= 0) continue;
    const Weighing sum = weigh(suspect, onset);
    const auto score_of = [&](CauseKind kind) {
      return score_of_part(suspect, kind, sum.direct, onset);
    };
    if (row.kind == CauseKind::card)
      offer(row.kind, suspect, std::max(sum.score, score_of(row.kind)));
    else if (is_device(row.kind) && sum.score <= 0)
      offer(CauseKind::part, suspect, score_of(CauseKind::part));
    else
      offer(row.kind, suspect, sum.score);
  }
  return best;
}

CauseKind Correlator::leaf_kind(PartId cable, const Tally& tally) const {
  if (tally.light >= rules_.counts.soft) return CauseKind::optic;
  if (tally.downs_max() >= rules_.counts.flaps) return CauseKind::flap;
  return parts_.nic_of(parts_.cable(cable)).valid() ? CauseKind::nic : CauseKind::link;
}

std::optional<CauseKind> Correlator::leaf_of_cable(PartId part, const Pending& pending) const {
  const Tally& tally = pending.tally;
  if ((tally.kinds & (down_ | session_)) != 0) return leaf_kind(part, tally);
  if (tally.soft < rules_.counts.soft && tally.losses + tally.soft < rules_.counts.losses)
    return std::nullopt;
  return leaf_kind(part, tally);
}

std::optional<CauseKind> Correlator::leaf_of_node(PartId part, const Pending& pending) const {
  const Tally& tally = pending.tally;
  const model::NodeId node = parts_.node(part);
  switch (parts_.fabric().kind(node)) {
    case model::NodeKind::nic:
      if ((tally.kinds & down_) != 0 || tally.losses >= rules_.counts.losses) return CauseKind::nic;
      return std::nullopt;
    case model::NodeKind::host:
      if (tally.records >= rules_.counts.silences && (tally.kinds & silence_) != 0)
        return CauseKind::host;
      break;
    case model::NodeKind::fabric_switch:
      if ((tally.kinds & bit(EventKind::process_crash)) != 0) return CauseKind::control_plane;
      break;
    default:
      break;
  }
  if (tally.records < rules_.counts.faults) return std::nullopt;
  const KindMask platform = rules_.cause(CauseKind::platform).explains;
  return (tally.kinds & platform) != 0 ? CauseKind::platform : CauseKind::unknown;
}

// What the evidence on the part amounts to when nothing larger explains it.
std::optional<CauseKind> Correlator::leaf(PartId part, const Pending& pending) const {
  if (parts_.is_cable(part)) return leaf_of_cable(part, pending);
  if (parts_.is_node(part)) return leaf_of_node(part, pending);
  if (parts_.is_card(part)) return CauseKind::card;
  if (parts_.is_congestion(part)) {
    if (pending.tally.full >= rules_.counts.congestion) return CauseKind::congestion;
    return std::nullopt;
  }
  const bool is_rack = parts_.fabric().scopes()[parts_.scope(part)].kind == model::ScopeKind::rack;
  return is_rack ? CauseKind::rack : CauseKind::zone;
}

// A link that came back at once waits: is this the first of many times?
bool Correlator::hold_blip(Pending& pending, std::int64_t now) {
  const std::int64_t end = pending.last + rules_.timing.blip_ns;
  if (now < end) schedule(pending, end);
  return now < end;
}

void Correlator::decide(PartId part, std::int64_t now) {
  decide_alone(part, now);
  for (const std::uint32_t slot : std::exchange(to_follow_, {})) follow_unexplained(slot);
}

void Correlator::decide_alone(PartId part, std::int64_t now) {
  Pending& pending = pendings_[states_[part.index()].pending];
  const Tally& tally = pending.tally;
  // Clocks differ: who saw it come back may stamp that before another saw it go.
  const bool is_back = pending.is_up || (tally.ups > 0 && tally.downs_max() <= 1);
  const bool is_blip = is_back && (tally.kinds & down_) != 0 &&
                       tally.downs_max() < rules_.counts.flaps && tally.soft < rules_.counts.soft &&
                       tally.losses < rules_.counts.losses;
  const Verdict verdict = weigh(part, pending);
  // Ports that die in part may be the first of a card or of the whole.
  const std::int64_t whole = pending.onset() + rules_.timing.together_ns;
  if (verdict.kind == CauseKind::part && now < whole) return schedule(pending, whole);
  // A blip counts only as part of something that is beyond doubt.
  if (verdict.is_set() && (!is_blip || verdict.score > 2 * rules_.gain))
    return open_suspect(verdict, pending.onset());
  if (is_blip) {
    if (!hold_blip(pending, now)) dismiss(part);
    return;
  }
  const bool is_session_only = (tally.kinds & session_) != 0 && (tally.kinds & down_) == 0;
  if (is_session_only && parts_.is_cable(part) && open_config(part)) return;
  const auto kind = leaf(part, pending);
  if (!learned_.empty() && follow_lead(part, kind, now)) return;
  if (!kind) return dismiss(part);
  if (!split_by_leaf(part, *kind, now)) open_leaf(*kind, part, now);
}

}  // namespace weft::operate::triage
