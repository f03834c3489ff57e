// Orders among the evidence: what they bring about is taken out of what waits, and a part that was
// returned after test traffic came through is well again.
#include <algorithm>
#include <utility>

#include "operate/triage/correlator.hpp"

namespace weft::operate::triage {

void Correlator::add_order(const Evidence& order) {
  ++counts_.planned;
  planned_.forget(order.at);
  for (const PartId part : planned_.add(order, interpreter_.announcement(order.content))) {
    if (states_[part.index()].pending != none) forget_planned(part);
    if (order.kind == model::EventKind::undrain && order.is_verified) clear_by_order(part, order);
  }
  forget_planned_commits();
}

// A carrier that was lost before may go on being lost: where a case or what waits already speaks of
// that, an order explains nothing more of it.
bool Correlator::is_planned(const Evidence& e) const {
  const Meaning meaning = rules_.event(e.kind).meaning;
  if (meaning == Meaning::change) return planned_.explains_commit(e.part, e.at, e.detail);
  if (!planned_.explains(e.part, e.kind, e.at, e.is_policy)) return false;
  if (meaning == Meaning::session) return true;
  const PartState& state = states_[e.part.index()];
  const bool is_known_down = state.owner != none && state.was_down && is_live_at(e.part, e.at);
  const bool was_down =
      state.pending != none && (pendings_[state.pending].tally.kinds & down_) != 0;
  const bool is_session = e.kind == model::EventKind::bgp_up || e.kind == model::EventKind::bfd_up;
  return is_session || (!is_known_down && !was_down);
}

// Clocks differ, and lines of whole seconds come first: what waits may be the effect of an order
// that is known only now.
void Correlator::forget_planned(PartId part) {
  const Pending& pending = pendings_[states_[part.index()].pending];
  std::vector<Observation> kept;
  for (const Observation& said : pending.said)
    if (!planned_.explains(part, said.kind, said.at, said.is_policy)) kept.push_back(said);
  if (kept.size() == pending.said.size()) return;
  counts_.planned += pending.said.size() - kept.size();
  close_pending(part);
  for (const Observation& said : kept) put_aside(said.evidence(), said.is_repeat != 0);
}

void Correlator::forget_planned_commits() {
  counts_.planned += std::erase_if(commits_, [&](const Commit& commit) {
    return !commit.is_taken && planned_.explains_commit(commit.device, commit.at, commit.change);
  });
}

void Correlator::clear_by_order(PartId part, const Evidence& order) {
  PartState& state = states_[part.index()];
  if (state.owner == none || !is_live_at(part, order.at)) return;
  OpenCase& c = cases_[state.owner];
  // Of a case over many parts one that returns says little.
  if (c.root != part && parts_.entity(order.part) != c.entity) return;
  if (!c.is_clear) c.cleared_at = order.at;
  c.is_clear = state.is_clear = true;
  c.last = std::max(c.last, order.at);
  state.last = std::max(state.last, order.at);
}

}  // namespace weft::operate::triage
