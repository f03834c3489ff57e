#include "operate/triage/decide.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "operate/triage/open.hpp"

namespace weft::operate::triage {
namespace {

// A link that came back at once waits: is this the first of many times?
bool hold_blip(Board& board, Pending& pending, std::int64_t now) {
  const std::int64_t end = pending.last + board.rules.timing.blip_ns;
  if (now < end) board.pendings.schedule(pending, end);
  return now < end;
}

// Down once and back, with nothing else that makes a case.
bool is_single_blip(const Board& board, const Pending& pending) {
  const Tally& tally = pending.tally;
  const auto& counts = board.rules.counts;
  // Clocks differ: who saw it come back may stamp that before another saw it go.
  const bool is_back = pending.is_up || (tally.ups > 0 && tally.downs_max() <= 1);
  return is_back && tally.has(board.kinds.down) && tally.downs_max() < counts.flaps &&
         tally.soft < counts.soft && tally.losses < counts.losses;
}

}  // namespace

bool joins(const Board& board, CaseSlot slot, const Evidence& e) {
  const OpenCase& c = board.cases[slot];
  if (!board.explains(c, e.kind)) return false;
  if (board.speaks_of_power(c, e.part, bit(e.kind))) return false;
  const EventRule& rule = board.rules.event(e.kind);
  const KindMask kind = bit(e.kind);
  const bool is_clear = rule.meaning == Meaning::clear;
  const Pending* pending = board.waiting(e.part);
  // What ends or follows the new trouble on this part is no news of the old one.
  if (pending != nullptr && pending->has_down && (is_clear || (kind & board.kinds.session) != 0) &&
      pending->tally.has(board.kinds.down))
    return false;
  // A part of many that fails again on its own, when all was well again, may do so for itself.
  const PartState& state = board.states[e.part];
  const bool is_relapse = state.is_clear && c.is_clear &&
                          (kind & (board.kinds.down | board.kinds.session)) != 0 &&
                          rule.spread_ns == 0 && e.at - state.last > board.rules.timing.together_ns;
  if (is_relapse && c.suspect.valid() && c.kind > CauseKind::host) return false;
  if (board.is_live_at(e.part, e.at)) return true;
  if (pending == nullptr && is_clear && e.at - c.last < board.rules.timing.unrepaired_ns)
    return true;
  return e.begin < e.at && e.begin < c.last;  // a window that began while the case was open
}

void join(Board& board, CaseSlot slot, const Evidence& e, bool is_repeat) {
  OpenCase& c = board.cases[slot];
  WEFT_CHECK(c.is_open);
  board.add_member(c, Observation(e, is_repeat));
  if (is_repeat) return;
  const EventRule& rule = board.rules.event(e.kind);
  PartState& state = board.states[e.part];
  state.has_spoken = true;
  state.was_down |= rule.meaning == Meaning::down;
  state.last = std::max(state.last, e.at);
  c.last = std::max(c.last, e.at);
  if (rule.meaning == Meaning::clear) {
    state.is_clear = true;
    c.clear_at(e.at);
  } else if (rule.meaning == Meaning::down || rule.meaning == Meaning::session) {
    if (rule.spread_ns == 0) state.is_clear = false;
  } else if (rule.meaning == Meaning::loss && e.begin > c.cleared_at) {
    c.is_clear = false;  // well again, as its carrier says, and probes are lost all the same
  }
  c.tally.add(e, rule.meaning);
  if (c.kind <= CauseKind::nic)
    c.confidence = std::max(c.confidence, confidence(board.rules, c.tally));
  retype(board, c);
  if ((board.rules.cause(c.kind).doubts & bit(e.kind)) != 0) doubt(board, slot, e);
}

void decide(Board& board, PartId part, std::int64_t now) {
  decide_alone(board, part, now);
  for (const CaseSlot slot : board.leads.take_marked()) follow_unexplained(board, slot);
}

void decide_alone(Board& board, PartId part, std::int64_t now) {
  WEFT_CHECK(board.waiting(part) != nullptr);
  Pending& pending = *board.waiting(part);
  const bool is_blip = is_single_blip(board, pending);
  const Verdict verdict = weigh(board, pending);
  // Ports that die in part may be the first of a card or of the whole.
  const std::int64_t whole = pending.onset() + board.rules.timing.together_ns;
  if (verdict.kind == CauseKind::part && now < whole)
    return board.pendings.schedule(pending, whole);
  // A blip counts only as part of something that is beyond doubt.
  if (verdict.is_set() && (!is_blip || verdict.score > 2 * board.rules.gain))
    return open_suspect(board, verdict, pending.onset());
  if (is_blip) {
    if (!hold_blip(board, pending, now)) dismiss(board, part);
    return;
  }
  const bool is_session_only =
      pending.tally.has(board.kinds.session) && !pending.tally.has(board.kinds.down);
  if (is_session_only && board.parts.is_cable(part) && open_config(board, part)) return;
  const auto kind = leaf(board, pending);
  if (!board.learned.empty() && follow_lead(board, part, kind, now)) return;
  if (!kind) return dismiss(board, part);
  if (!split_by_leaf(board, part, *kind, now)) open_leaf(board, *kind, part, now);
}

}  // namespace weft::operate::triage
