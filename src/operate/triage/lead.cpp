// Learned relations at work: what no written rule explains joins the case of what usually leads
// to it.
#include <algorithm>
#include <ranges>
#include <utility>

#include "operate/triage/correlator.hpp"

namespace weft::operate::triage {
namespace {

using model::LinkId;
using model::NodeId;

// So much later than it was said evidence may still be decided on.
constexpr std::int64_t patience_ns = 600 * ns_per_s;

// Every device at the other end of a cable of this one, or of its NICs.
template <class Visit>
void for_each_joined(const model::Fabric& fabric, NodeId device, Visit visit) {
  const auto look = [&](NodeId node) {
    for (const LinkId link : fabric.out(node)) {
      if (!fabric.on_wire(link)) continue;
      const NodeId to = fabric.to(link);
      const NodeId host = fabric.is_switch(to) ? NodeId() : fabric.host_of(to);
      visit(host.valid() ? host : to);
    }
  };
  look(device);
  if (fabric.kind(device) == model::NodeKind::host)
    for (const NodeId nic : fabric.nics_of(device)) look(nic);
}

}  // namespace

std::size_t Correlator::reason_row(NodeId device) const {
  return device.valid() ? device.index() : reasons_.size() - 1;
}

void Correlator::note_reason(const Evidence& evidence) {
  auto& row = reasons_[reason_row(spot_of(parts_, evidence.part, evidence.end).device)];
  while (!row.empty() && row.front().at < evidence.at - learned_.most_ns() - patience_ns)
    row.pop_front();
  row.emplace_back(evidence, false);
}

// The open case that took what was said of the part last by a learned relation.
std::uint32_t Correlator::followed(PartId part) const {
  const std::uint64_t number = followed_[part.index()];
  const auto found = number == 0 ? by_number_.end() : by_number_.find(number - 1);
  return found == by_number_.end() ? none : found->second;
}

// The open case that has it as a member.
std::uint32_t Correlator::holder(const Observation& said) const {
  const std::uint32_t owner = states_[said.part.index()].owner;
  if (owner != none) {
    for (const Observation& member : cases_[owner].members | std::views::reverse)
      if (member.serial == said.serial) return owner;
    const auto omitted = cases_[owner].members_omitted.find(stream_of(said));
    if (omitted != cases_[owner].members_omitted.end() && omitted->second.first <= said.at &&
        said.at <= omitted->second.last)
      return owner;
  }
  const std::uint32_t slot = followed(said.part);
  if (slot == none) return none;
  const auto is_it = [&](const LearnedMember& led) { return led.said.serial == said.serial; };
  return std::ranges::any_of(cases_[slot].led, is_it) ? slot : none;
}

// The surest relation leads, of equals the one with the latest reason.
void Correlator::look_for_lead(const Observation& said, const LearnedRelation& relation,
                               const std::deque<Observation>& reasons, Lead& best) const {
  const Spot here = spot_of(parts_, said.part, said.end);
  for (const Observation& reason : reasons | std::views::reverse) {
    const std::int64_t delay = said.at - reason.at;
    if (delay > relation.most_ns) return;
    if (delay < relation.least_ns || reason.kind != relation.from) continue;
    const Spot there = spot_of(parts_, reason.part, reason.end);
    if (nearness_of_joined(parts_, there, here) != relation.at) continue;
    const std::uint32_t slot = holder(reason);
    if (slot == none) {
      const std::uint32_t waits = states_[reason.part.index()].pending;
      const auto is_it = [&](const Observation& s) { return s.serial == reason.serial; };
      if (waits != none && std::ranges::any_of(pendings_[waits].said, is_it))
        best.wait = std::max(best.wait, pendings_[waits].due);
      continue;
    }
    if (!is_live(cases_[slot], said.at)) continue;
    if (std::pair(relation.confidence, reason.at) > std::pair(best.confidence, best.at))
      best = {slot, reason.at, said.at + relation.most_ns, relation.confidence, best.wait};
  }
}

// What is said again where a learned relation has led before, or ends that.
Correlator::Lead Correlator::continued_lead(const Observation& said) const {
  const std::uint32_t slot = followed(said.part);
  if (slot == none || !is_live(cases_[slot], said.at)) return {};
  for (const LearnedMember& led : cases_[slot].led | std::views::reverse) {
    if (led.said.part != said.part || led.said.at > said.at) continue;
    const bool is_again = led.said.kind == said.kind && said.at <= led.until;
    const bool is_end = rules_.event(said.kind).meaning == Meaning::clear &&
                        model::clears(led.said.kind) == said.kind;
    const std::int64_t length = led.until - led.said.at;
    if (is_again || is_end) return {slot, led.said.at, said.at + length, led.confidence, 0};
  }
  return {};
}

Correlator::Lead Correlator::find_lead(const Observation& said) const {
  Lead best = continued_lead(said);
  if (best.slot != none) return best;
  const NodeId device = spot_of(parts_, said.part, said.end).device;
  for (const LearnedRelation& relation : learned_.leading_to(said.kind)) {
    const auto look = [&](NodeId at) {
      look_for_lead(said, relation, reasons_[reason_row(at)], best);
    };
    // Of a cable, the other end may have said it.
    if (relation.at != Nearness::neighbour) look(device);
    if (relation.at != Nearness::device && device.valid())
      for_each_joined(parts_.fabric(), device, look);
  }
  return best;
}

// Whether it has become a member of the case that a learned relation leads to.
bool Correlator::follow(const Observation& said) {
  if (learned_.empty()) return false;
  const Lead lead = find_lead(said);
  if (lead.slot == none) return false;
  cases_[lead.slot].led.push_back({said, lead.until, lead.confidence});
  thin(cases_[lead.slot]);
  followed_[said.part.index()] = cases_[lead.slot].number + 1;
  ++counts_.learned;
  return true;
}

// Where no written cause explains what waits on the part, it goes where a learned relation leads;
// or it is held once, for the case of its reason to be decided on.
bool Correlator::follow_lead(PartId part, std::optional<CauseKind> written, std::int64_t now) {
  Pending& pending = pendings_[states_[part.index()].pending];
  if (written && *written != CauseKind::unknown &&
      (rules_.cause(*written).explains & pending.tally.kinds) != 0)
    return false;
  const auto first = std::ranges::find_if(
      pending.said, [&](const Observation& s) { return is_trouble(rules_, s.kind); });
  if (first == pending.said.end()) return false;
  const Lead lead = find_lead(*first);
  if (lead.slot != none) {
    dismiss(part);
    return true;
  }
  if (pending.was_held || lead.wait == 0) return false;
  pending.was_held = true;
  schedule(pending, std::max(lead.wait, now) + 1);
  return true;
}

void Correlator::follow_unexplained(std::uint32_t slot) {
  if (!cases_[slot].is_open) return;
  std::vector<Observation> left;
  for (const Observation& said : std::exchange(cases_[slot].unexplained, {}))
    if (!follow(said)) left.push_back(said);
  cases_[slot].unexplained = std::move(left);
}

}  // namespace weft::operate::triage
