#include "operate/triage/weigh.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <span>
#include <vector>

#include "base/check.hpp"

namespace weft::operate::triage {
namespace {

using model::EventKind;

// What a score is made of.
struct Weighing {
  double score = 0;
  std::uint32_t spoken = 0;
  double direct = 0;  // said of the root itself
};

// Nats to say which `k` of `n` parts are meant.
double entropy(double k, double n) {
  if (k <= 0 || k >= n) return 0;
  const double share = k / n;
  return -n * (share * std::log(share) + (1 - share) * std::log(1 - share));
}

bool is_near(const Board& board, const Pending& pending, std::int64_t onset,
             CauseKind kind = CauseKind::unknown) {
  const auto& timing = board.rules.timing;
  const std::int64_t window =
      kind == CauseKind::control_plane ? timing.spread_ns : timing.together_ns;
  return std::abs(pending.onset() - onset) <= window + pending.slack;
}

bool speaks(const Board& board, const Pending& pending, CauseKind kind, std::int64_t onset) {
  if (!pending.tally.has(board.rules.cause(kind).expects)) return false;
  const bool is_down = pending.tally.has(board.kinds.down);
  if (pending.tally.policies > 0 && !is_down) return false;  // that is somebody's will
  // The control plane alone leaves links up, or lets them be what they were.
  if (kind == CauseKind::control_plane && is_down && !pending.is_up) return false;
  return is_near(board, pending, onset, kind);
}

// The price of the lesser case that the part belongs to; each part of it brings its share.
double refund(const Board& board, PartId part, SuspectId suspect, std::int64_t onset) {
  const CaseSlot owner = board.states[part].owner;
  const OpenCase& c = board.cases[owner];
  if (!is_lesser(board, c, part, suspect, onset)) return 0;
  const auto spoken = std::ranges::count_if(c.owned, [&](PartId owned) {
    const PartState& state = board.states[owned];
    return state.owner == owner && state.has_spoken;
  });
  return board.rules.cause(c.kind).price / static_cast<double>(std::max<std::ptrdiff_t>(spoken, 1));
}

// Of a part that should speak.
double weigh_expected(const Board& board, PartId part, SuspectId suspect, std::int64_t onset,
                      Weighing& sum) {
  const CauseKind kind = board.suspects[suspect].kind;
  const double silent = board.rules.cause(kind).silent;
  const Pending* pending = board.waiting(part);
  if (pending != nullptr && speaks(board, *pending, kind, onset)) {
    ++sum.spoken;
    return board.rules.gain;
  }
  // A session that is lost over a link that is up speaks against the cause, but not aloud.
  if (pending != nullptr && pending->tally.has(board.kinds.session) &&
      is_near(board, *pending, onset))
    return -silent / 2;
  // What belongs to another cause can not be expected to speak for this one.
  const PartState& state = board.states[part];
  if (board.is_live_at(part, onset) && !state.is_clear) {
    const double back = refund(board, part, suspect, onset);
    return back > 0 && !state.was_down ? back - silent / 2 : back;
  }
  return -silent;
}

// Of a part that may speak.
double weigh_possible(const Board& board, PartId part, SuspectId suspect, std::int64_t onset,
                      Weighing& sum) {
  const Pending* pending = board.waiting(part);
  if (pending == nullptr)
    return board.is_live_at(part, onset) ? refund(board, part, suspect, onset) : 0;
  const CauseKind kind = board.suspects[suspect].kind;
  const CauseRule& rule = board.rules.cause(kind);
  if (kind == CauseKind::rack_device &&
      part != board.parts.of(model::NodeId(board.suspects[suspect].root.id)) &&
      pending->tally.has(bit(EventKind::oob_unreachable)))
    return 0;  // see Board::speaks_of_power()
  const double direct = direct_worth(rule, pending->tally.kinds);
  sum.direct += direct;
  if (direct > 0) return direct;
  // In a rack without power nobody is left to see a cable within it go down.
  const bool is_dark = kind == CauseKind::rack;
  if (!is_near(board, *pending, onset) || (is_dark && board.parts.is_cable(part))) return 0;
  return pending->tally.has(rule.explains & (board.kinds.down | board.kinds.silence))
             ? board.rules.gain
             : 0;
}

Weighing weigh_suspect(const Board& board, SuspectId suspect, std::int64_t onset) {
  const CauseKind kind = board.suspects[suspect].kind;
  const double price = board.rules.cause(kind).price;
  Weighing sum;
  sum.score = -price;
  // With the best that can still come, all the rest silent: once that is not enough, it is over.
  const double hope = board.footprints.score_max(suspect) + price;
  const bool may_be_part = (is_device(kind) || kind == CauseKind::card) &&
                           board.footprints.alarms(suspect) >= board.rules.counts.part;
  for (const PartId part : board.suspects.expected(suspect)) {
    sum.score += weigh_expected(board, part, suspect, onset, sum);
    if (!may_be_part && sum.score - board.rules.gain * sum.spoken + hope <= 0) return sum;
  }
  for (const PartId part : board.suspects.possible(suspect))
    sum.score += weigh_possible(board, part, suspect, onset, sum);
  return sum;
}

// What causes lesser than `kind` would explain of the same cables, each for itself.
double score_of_lesser(const Board& board, std::span<const PartId> spoken, CauseKind kind,
                       std::int64_t onset) {
  std::vector<SuspectId> lesser;
  for (const PartId part : spoken)
    for (const SuspectId suspect : board.suspects.of(part))
      if (board.suspects[suspect].kind < kind && board.footprints.score_max(suspect) > 0)
        lesser.push_back(suspect);
  std::ranges::sort(lesser);
  const auto rest = std::ranges::unique(lesser);
  lesser.erase(rest.begin(), rest.end());
  double sum = 0;
  for (const SuspectId suspect : lesser)
    sum += std::max(0.0, weigh_suspect(board, suspect, onset).score);
  return sum;
}

double score_of_case(const Board& board, CaseSlot slot) {
  const OpenCase& c = board.cases[slot];
  const auto spoken = std::ranges::count_if(c.owned, [&](PartId part) {
    const PartState& state = board.states[part];
    return state.owner == slot && state.was_down;
  });
  return board.rules.gain * static_cast<double>(spoken) - board.rules.cause(c.kind).price;
}

// Part of a switch or card: many ports in one blow pay for saying which ones, one by one or in
// runs, and must tell more than lesser causes do. What these explain already is no gain.
double score_of_part(const Board& board, SuspectId whole, CauseKind kind, double direct,
                     std::int64_t onset) {
  const Rules& rules = board.rules;
  if (board.footprints.alarms(whole) < rules.counts.part && board.footprints.cases(whole) == 0)
    return -1;
  std::vector<PartId> waiting;
  std::vector<CaseSlot> lesser;
  double ports = 0, runs = 0, spoken = 0;
  bool was_spoken = false;
  for (const PartId part : board.suspects.all(whole)) {
    if (is_silenced(board, part, onset)) direct += rules.gain;
    if (!board.parts.is_cable(part)) continue;
    const bool waits = speaks_at_once(board, part, onset);
    const CaseSlot owner =
        kind == CauseKind::part ? lesser_at_once(board, part, whole, onset) : CaseSlot();
    if (waits) waiting.push_back(part);
    if (owner.valid() && std::ranges::find(lesser, owner) == lesser.end()) lesser.push_back(owner);
    const bool is_spoken = waits || owner.valid();
    spoken += is_spoken ? 1 : 0;
    runs += is_spoken && !was_spoken ? 1 : 0;
    was_spoken = is_spoken;
    ++ports;
  }
  if (spoken < rules.counts.part) return -1;
  double known = 0;
  for (const CaseSlot slot : lesser) known += score_of_case(board, slot);
  const double which = price_of_ports(spoken, ports, runs);
  const double score = rules.gain * spoken + direct - rules.cause(kind).price - which - known;
  return score > score_of_lesser(board, waiting, kind, onset) ? score : -1;
}

std::optional<CauseKind> leaf_of_cable(const Board& board, const Pending& pending) {
  const Tally& tally = pending.tally;
  const auto& counts = board.rules.counts;
  const bool is_down = tally.has(board.kinds.down | board.kinds.session);
  if (!is_down && tally.soft < counts.soft && tally.losses + tally.soft < counts.losses)
    return std::nullopt;
  return leaf_kind(board, pending.part, tally);
}

std::optional<CauseKind> leaf_of_node(const Board& board, const Pending& pending) {
  const Tally& tally = pending.tally;
  const auto& counts = board.rules.counts;
  constexpr KindMask proof = bit(EventKind::corruption) | bit(EventKind::job_hang);  // once
  switch (board.parts.fabric().kind(board.parts.node(pending.part))) {
    case model::NodeKind::nic:
      if (tally.has(board.kinds.down | proof) || tally.losses >= counts.losses)
        return CauseKind::nic;
      return std::nullopt;
    case model::NodeKind::host:
      if (tally.has(proof)) return CauseKind::host;
      if (tally.records >= counts.silences && tally.has(board.kinds.silence))
        return CauseKind::host;
      break;
    case model::NodeKind::fabric_switch:
      if (tally.has(bit(EventKind::process_crash) | bit(EventKind::probe_route)))
        return CauseKind::control_plane;
      if (tally.losses >= counts.losses)  // it loses packets wherever they go
        for (const SuspectId suspect : board.suspects.of(pending.part))
          if (const auto& s = board.suspects[suspect];
              is_device(s.kind) && s.root == board.parts.entity(pending.part))
            return s.kind;
      break;
    default:
      break;
  }
  if (tally.records < counts.faults) return std::nullopt;
  const KindMask platform = board.rules.cause(CauseKind::platform).explains;
  return tally.has(platform) ? CauseKind::platform : CauseKind::unknown;
}

// Sessions closed at a device by nobody knows whom, and nowhere else: so that it can be rebooted.
bool is_unknown_change(const Board& board, const OpenCase& c, SuspectId suspect) {
  const CauseKind kind = board.suspects[suspect].kind;
  if (c.kind != CauseKind::config || c.change != 0) return false;
  if (!is_device(kind) && kind != CauseKind::control_plane) return false;
  return std::ranges::all_of(c.owned, [&](PartId part) {
    return !board.states[part].has_spoken ||
           std::ranges::binary_search(board.suspects.of(part), suspect);
  });
}

}  // namespace

double direct_worth(const CauseRule& rule, KindMask kinds) {
  double direct = 0;
  for (KindMask left = kinds & rule.explains; left != 0; left &= left - 1)
    direct = std::max(direct, rule.direct[static_cast<std::size_t>(std::countr_zero(left))]);
  return direct;
}

double price_of_ports(double spoken, double ports, double runs) {
  WEFT_CHECK(runs <= spoken && spoken <= ports);
  return std::min(entropy(spoken, ports), 2 * runs * std::log(ports));
}

bool is_lesser(const Board& board, const OpenCase& c, PartId part, SuspectId suspect,
               std::int64_t onset) {
  const CauseKind kind = board.suspects[suspect].kind;
  const bool is_slow = c.kind == CauseKind::flap || c.kind == CauseKind::optic;
  if (is_unknown_change(board, c, suspect))
    return std::abs(c.onset - onset) <= board.rules.timing.reboot_ns &&
           board.states[part].has_spoken;
  // What was proven to be apart a rack without power may still have brought about.
  const bool is_apart = c.is_apart && (board.is_splitting || kind < CauseKind::rack);
  if (is_slow || is_apart || c.kind >= kind || !board.states[part].has_spoken) return false;
  // Sessions that end by themselves or by somebody's will may be how the whole device goes.
  const bool may_reboot = c.kind == CauseKind::control_plane && is_device(kind);
  const auto& timing = board.rules.timing;
  if (std::abs(c.onset - onset) > (may_reboot ? timing.reboot_ns : timing.lesser_ns)) return false;
  if (kind == CauseKind::control_plane && c.tally.has(board.kinds.down)) return false;
  return std::ranges::binary_search(board.suspects.of(c.root), suspect);
}

bool speaks_at_once(const Board& board, PartId part, std::int64_t onset) {
  const Pending* pending = board.waiting(part);
  return pending != nullptr && pending->tally.has(board.kinds.down) &&
         std::abs(pending->onset() - onset) <= board.rules.timing.at_once_ns;
}

bool is_silenced(const Board& board, PartId part, std::int64_t onset) {
  const Pending* pending = board.waiting(part);
  if (pending == nullptr || !board.parts.is_node(part)) return false;
  const bool is_host = board.parts.fabric().kind(board.parts.node(part)) == model::NodeKind::host;
  return is_host && pending->tally.has(board.kinds.silence) && is_near(board, *pending, onset);
}

CaseSlot lesser_at_once(const Board& board, PartId part, SuspectId whole, std::int64_t onset) {
  const PartState& state = board.states[part];
  if (!state.was_down || !board.is_live_at(part, onset)) return {};
  const OpenCase& c = board.cases[state.owner];
  const bool is_at_once = std::abs(c.onset - onset) <= board.rules.timing.at_once_ns;
  const bool is_it =
      is_at_once && c.kind < CauseKind::part && is_lesser(board, c, part, whole, onset);
  return is_it ? state.owner : CaseSlot();
}

Verdict weigh(const Board& board, const Pending& pending) {
  WEFT_CHECK(pending.part.valid());
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
  for (const SuspectId suspect : board.suspects.of(pending.part)) {
    const CauseKind kind = board.suspects[suspect].kind;
    if (!pending.tally.has(board.rules.cause(kind).explains)) continue;
    if (board.footprints.score_max(suspect) <= 0) continue;
    const Weighing sum = weigh_suspect(board, suspect, onset);
    const auto score_of = [&](CauseKind part) {
      return score_of_part(board, suspect, part, sum.direct, onset);
    };
    if (kind == CauseKind::card)
      offer(kind, suspect, std::max(sum.score, score_of(kind)));
    else if (is_device(kind) && sum.score <= 0)
      offer(CauseKind::part, suspect, score_of(CauseKind::part));
    else
      offer(kind, suspect, sum.score);
  }
  return best;
}

CauseKind leaf_kind(const Board& board, PartId cable, const Tally& tally) {
  WEFT_CHECK(board.parts.is_cable(cable));
  if (tally.light >= board.rules.counts.soft) return CauseKind::optic;
  if (tally.downs_max() >= board.rules.counts.flaps) return CauseKind::flap;
  return board.parts.nic_of(board.parts.cable(cable)).valid() ? CauseKind::nic : CauseKind::link;
}

std::optional<CauseKind> leaf(const Board& board, const Pending& pending) {
  const Parts& parts = board.parts;
  const PartId part = pending.part;
  if (parts.is_cable(part)) return leaf_of_cable(board, pending);
  if (parts.is_node(part)) return leaf_of_node(board, pending);
  if (parts.is_card(part)) return CauseKind::card;
  if (parts.is_capacity(part)) return CauseKind::capacity;
  if (parts.is_congestion(part))
    return pending.tally.full >= board.rules.counts.congestion
               ? std::optional(CauseKind::congestion)
               : std::nullopt;
  const bool is_rack = parts.fabric().scopes()[parts.scope(part)].kind == model::ScopeKind::rack;
  return is_rack ? CauseKind::rack : CauseKind::zone;
}

}  // namespace weft::operate::triage
