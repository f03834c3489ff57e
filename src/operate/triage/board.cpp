#include "operate/triage/board.hpp"

#include <algorithm>
#include <limits>

#include "base/check.hpp"

namespace weft::operate::triage {
namespace {

constexpr std::int64_t long_ago = std::numeric_limits<std::int64_t>::min();

std::int64_t after_clear(const Rules::Timing& timing, const OpenCase& c) {
  return c.kind <= CauseKind::host ? timing.relapse_ns : timing.cleared_ns;
}

std::int64_t quiet_after(const Rules::Timing& timing, const OpenCase& c) {
  if (c.kind == CauseKind::congestion) return timing.congested_ns;
  return c.is_clear ? after_clear(timing, c) : timing.silent_ns;
}

}  // namespace

Board::Board(const Context& context, std::size_t rows)
    : parts(context.parts),
      suspects(context.suspects),
      rules(context.rules),
      learned(context.learned),
      kinds(rules),
      rows_max(rows),
      states(parts.size()),
      cases(suspects.size(), rules.timing.silent_ns, rules.timing.unrepaired_ns),
      footprints(suspects, rules),
      leads(context) {}

bool Board::is_live(const OpenCase& c, std::int64_t at) const {
  return at - c.last <= quiet_after(rules.timing, c);
}

bool Board::is_live_at(PartId part, std::int64_t at) const {
  const PartState& state = states[part];
  if (!state.owner.valid()) return false;
  const OpenCase& c = cases[state.owner];
  if (!is_live(c, at)) return false;
  const std::int64_t quiet = after_clear(rules.timing, c);
  if (state.has_spoken) return !state.is_clear || at - state.last <= quiet;
  return !c.is_clear || at - c.cleared_at <= quiet;
}

void Board::put_aside(const Evidence& e, bool is_repeat) {
  PartState& state = states[e.part];
  if (!state.pending.valid()) state.pending = pendings.open(e.part, e.begin);
  Pending& pending = pendings[state.pending];
  WEFT_CHECK(pending.part == e.part);
  pending.said.emplace_back(e, is_repeat);
  if (is_repeat) return;
  if (!pending.is_alarm && (bit(e.kind) & kinds.alarm) != 0) {
    pending.is_alarm = true;
    footprints.add_alarm(e.part);
  }
  if (const auto due = pending.count(e, rules)) pendings.schedule(pending, *due);
}

void Board::close_pending(PartId part) {
  PartState& state = states[part];
  WEFT_CHECK(state.pending.valid() && pendings[state.pending].part == part);
  if (pendings[state.pending].is_alarm) footprints.remove_alarm(part);
  pendings.close(state.pending);
  state.pending = {};
}

CaseSlot Board::open_case(CauseKind kind, PartId root, model::Entity entity, std::int64_t onset) {
  footprints.add_case(root, onset);
  ++counts.cases;
  return cases.open(kind, root, entity, onset);
}

void Board::own(CaseSlot slot, PartId part) {
  PartState& state = states[part];
  if (state.owner == slot) return;
  state = {.owner = slot, .pending = state.pending, .last = long_ago};
  cases[slot].owned.push_back(part);
}

void Board::take(CaseSlot slot, PartId part, Silent silent) {
  OpenCase& c = cases[slot];
  WEFT_CHECK(c.is_open);
  PartState& state = states[part];
  const KindMask explained = rules.cause(c.kind).explains;
  const Pending* pending = waiting(part);
  if (pending == nullptr || !pending->tally.has(explained) ||
      speaks_of_power(c, part, pending->tally.kinds)) {
    if (silent == Silent::own && !is_live_at(part, c.onset)) own(slot, part);
    return;
  }
  own(slot, part);
  for (const Observation& said : pending->said)
    ((explained & bit(said.kind)) != 0 ? c.members : c.unexplained).push_back(said);
  if (!learned.empty() && !c.unexplained.empty()) leads.mark(slot);
  thin(c, rows_max);
  c.tally.add(pending->tally);
  c.last = std::max(c.last, pending->last);
  state.last = pending->last;
  state.has_spoken = true;
  state.was_down = pending->tally.has(explained & kinds.down);
  state.is_clear = pending->is_clear;
  if (pending->is_clear) c.clear_at(pending->last);
  close_pending(part);
}

void Board::absorb(CaseSlot slot, CaseSlot lesser) {
  OpenCase& to = cases[slot];
  const OpenCase& from = cases[lesser];
  WEFT_CHECK(slot != lesser && to.is_open && from.is_open);
  append_rows(to, from);
  thin(to, rows_max);
  for (const LearnedMember& led : from.led) leads.set_followed(led.said.part, to.number);
  to.tally.add(from.tally);
  to.last = std::max(to.last, from.last);
  to.onset = std::min(to.onset, from.onset);
  for (const PartId part : from.owned) {
    PartState& state = states[part];
    if (state.owner != lesser) continue;
    state.owner = slot;
    to.owned.push_back(part);
  }
  cases.close(lesser);
  --counts.cases;
  ++counts.merged;
}

void Board::release(CaseSlot slot) {
  for (const PartId part : cases[slot].owned)
    if (PartState& state = states[part]; state.owner == slot) state = {.pending = state.pending};
  cases.close(slot);
}

}  // namespace weft::operate::triage
