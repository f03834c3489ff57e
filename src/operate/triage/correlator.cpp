// How evidence flows: it joins the case that explains it, or waits on its part for a decision.
#include "operate/triage/correlator.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"
#include "operate/triage/decide.hpp"

namespace weft::operate::triage {
namespace {

// Calls `visit` with every observation that waits or is a commit.
template <class Visit>
void for_each_waiting(const Board& board, Visit visit) {
  for (const Pending& pending : board.pendings.rows())
    if (pending.part.valid()) std::ranges::for_each(pending.said, visit);
  for (const Commit& commit : board.commits.rows()) visit(commit.said);
}

// The same of every one that an open case lists.
template <class Visit>
void for_each_listed(const Board& board, Visit visit) {
  for (const auto& [number, slot] : board.cases.by_number()) {
    const OpenCase& c = board.cases[slot];
    std::ranges::for_each(c.members, visit);
    std::ranges::for_each(c.unexplained, visit);
    for (const LearnedMember& led : c.led) visit(led.said);
  }
}

}  // namespace

Correlator::Correlator(const Context& context, const Interpreter& interpreter, Sink sink,
                       Bounds bounds)
    : interpreter_(interpreter),
      maintenance_(context.maintenance),
      sink_(std::move(sink)),
      planned_(context.parts, context.suspects, context.rules),
      pauses_(context.parts, context.rules),
      board_(context, bounds.rows) {
  WEFT_CHECK(sink_ != nullptr);
}

void Correlator::add(const std::vector<Evidence>& second) {
  const Evidence* last = nullptr;
  for (const Evidence& evidence : second) {
    WEFT_CHECK(last == nullptr || last->at <= evidence.at);
    run_timers(evidence.at);
    const bool repeat = last != nullptr && is_repeat(*last, evidence);
    board_.counts.repeats += repeat ? 1 : 0;
    add_one(evidence, repeat);
    last = &evidence;
  }
}

void Correlator::finish() {
  run_timers(forever);
  while (!board_.cases.by_number().empty()) retire(board_.cases.by_number().begin()->second);
}

void Correlator::add_one(const Evidence& evidence, bool is_repeat) {
  const Meaning meaning = board_.rules.event(evidence.kind).meaning;
  if (meaning == Meaning::planned) return add_order(evidence);
  if (is_planned(evidence)) {
    ++board_.counts.planned;
    return;
  }
  if (meaning == Meaning::change) return add_change(evidence, is_repeat);
  const Evidence placed = meaning == Meaning::congestion ? pauses_.resolve(evidence) : evidence;
  if (board_.learned.is_reason(placed.kind)) board_.leads.note(placed);
  const PartState& state = board_.states[placed.part];
  if (state.owner.valid() && joins(board_, state.owner, placed))
    return join(board_, state.owner, placed, is_repeat);
  if (meaning == Meaning::clear && !state.pending.valid()) {
    if (!follow(board_, Observation(placed, is_repeat))) ++board_.counts.dismissed;
    return;
  }
  board_.put_aside(placed, is_repeat);
}

void Correlator::add_change(const Evidence& evidence, bool is_repeat) {
  board_.commits.forget_before(evidence.at - 4 * board_.rules.timing.change_ns);
  for (const auto& [number, slot] : board_.cases.by_number()) {
    OpenCase& c = board_.cases[slot];
    if (c.kind != CauseKind::config || c.change == 0 || c.change != evidence.detail ||
        !board_.is_live(c, evidence.at))
      continue;
    c.last = std::max(c.last, evidence.at);
    return board_.add_member(c, Observation(evidence, is_repeat));
  }
  if (!is_repeat || evidence.detail != 0) board_.commits.add(evidence, is_repeat);
}

void Correlator::run_timers(std::int64_t now) {
  while (const auto timer = board_.pendings.pop_due(now)) {
    const auto [due, part] = *timer;
    board_.footprints.forget_cases(due);
    const Pending* pending = board_.waiting(part);
    if (pending != nullptr && pending->due == due) decide(board_, part, due);
  }
  while (const auto slot = board_.cases.pop_silent(now)) retire(*slot);
}

std::optional<std::int64_t> Correlator::next_timer() const {
  const auto decision = board_.pendings.next_timer(), close = board_.cases.next_timer();
  return decision && close ? std::min(decision, close) : decision ? decision : close;
}

void Correlator::retire(CaseSlot slot) {
  sink_(describe(board_.cases[slot], CaseState::settled));
  board_.release(slot);
}

Case Correlator::describe(const OpenCase& c, CaseState state) const {
  return triage::describe(board_, {interpreter_, maintenance_, planned_}, c, state);
}

std::vector<Case> Correlator::open_cases(CaseState state) const {
  std::vector<Case> out;
  for (const auto& [number, slot] : board_.cases.by_number())
    out.push_back(describe(board_.cases[slot], state));
  return out;
}

// To describe all of them costs as much as they have members, and most looks find nothing new.
Correlator::News Correlator::changes_since(Cursor& known, CaseState state) const {
  News out;
  auto at = known.begin();
  for (const auto& [number, slot] : board_.cases.by_number()) {
    for (; at != known.end() && at->first < number; at = known.erase(at))
      out.gone.push_back(at->first);
    const OpenCase& c = board_.cases[slot];
    const std::uint64_t now = fingerprint(board_, c);
    const bool is_known = at != known.end() && at->first == number;
    if (!is_known) at = known.emplace_hint(at, number, ~now);
    if (at->second != now) out.changed.push_back({number, describe(c, state)});
    (at++)->second = now;
  }
  for (; at != known.end(); at = known.erase(at)) out.gone.push_back(at->first);
  return out;
}

std::uint64_t Correlator::oldest_waiting() const {
  std::uint64_t oldest = UINT64_MAX;
  for_each_waiting(board_, [&](const Observation& s) { oldest = std::min(oldest, s.serial); });
  return oldest;
}

std::uint64_t Correlator::oldest_serial() const {
  std::uint64_t oldest = std::min(oldest_waiting(), planned_.oldest_serial());
  for_each_listed(board_, [&](const Observation& s) { oldest = std::min(oldest, s.serial); });
  return oldest;
}

void Correlator::append_serials(std::vector<std::uint64_t>& out) const {
  const auto append = [&](const Observation& s) { out.push_back(s.serial); };
  for_each_waiting(board_, append);
  for_each_listed(board_, append);
}

}  // namespace weft::operate::triage
