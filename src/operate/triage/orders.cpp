// Orders among the evidence: what they bring about is taken out of what waits, and a part that was
// returned after test traffic came through is well again.
#include <algorithm>
#include <vector>

#include "base/check.hpp"
#include "operate/triage/correlator.hpp"

namespace weft::operate::triage {

void Correlator::add_order(const Evidence& order) {
  ++board_.counts.planned;
  planned_.forget(order.at);
  for (const PartId part : planned_.add(order, interpreter_.announcement(order.content))) {
    if (board_.waiting(part) != nullptr) forget_planned(part);
    if (order.kind == model::EventKind::undrain && order.is_verified) clear_by_order(part, order);
  }
  board_.counts.planned += board_.commits.drop_planned(planned_);
}

// A carrier that was lost before may go on being lost: where a case or what waits already speaks of
// that, an order explains nothing more of it.
bool Correlator::is_planned(const Evidence& e) const {
  const Meaning meaning = board_.rules.event(e.kind).meaning;
  if (meaning == Meaning::change) return planned_.explains_commit(e.part, e.at, e.detail);
  if (!planned_.explains(e.part, e.kind, e.at, e.is_policy)) return false;
  if (meaning == Meaning::session) return true;
  const bool is_known_down = board_.states[e.part].was_down && board_.is_live_at(e.part, e.at);
  const Pending* pending = board_.waiting(e.part);
  const bool was_down = pending != nullptr && pending->tally.has(board_.kinds.down);
  const bool is_session = e.kind == model::EventKind::bgp_up || e.kind == model::EventKind::bfd_up;
  return is_session || (!is_known_down && !was_down);
}

// Clocks differ, and lines of whole seconds come first: what waits may be the effect of an order
// that is known only now.
void Correlator::forget_planned(PartId part) {
  const Pending* pending = board_.waiting(part);
  WEFT_CHECK(pending != nullptr);
  std::vector<Observation> kept;
  for (const Observation& said : pending->said)
    if (!planned_.explains(part, said.kind, said.at, said.is_policy)) kept.push_back(said);
  if (kept.size() == pending->said.size()) return;
  board_.counts.planned += pending->said.size() - kept.size();
  board_.close_pending(part);
  for (const Observation& said : kept) board_.put_aside(said.evidence(), said.is_repeat != 0);
}

void Correlator::clear_by_order(PartId part, const Evidence& order) {
  if (!board_.is_live_at(part, order.at)) return;
  PartState& state = board_.states[part];
  OpenCase& c = board_.cases[state.owner];
  // Of a case over many parts one that returns says little.
  if (c.root != part && board_.parts.entity(order.part) != c.entity) return;
  c.clear_at(order.at);
  state.is_clear = true;
  c.last = std::max(c.last, order.at);
  state.last = std::max(state.last, order.at);
}

}  // namespace weft::operate::triage
