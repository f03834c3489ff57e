#include "operate/triage/leads.hpp"

#include <algorithm>
#include <ranges>

#include "base/check.hpp"
#include "operate/triage/board.hpp"

namespace weft::operate::triage {
namespace {

using model::LinkId;
using model::NodeId;

// So much later than it was said evidence may still be decided on.
constexpr std::int64_t patience_ns = 600 * ns_per_s;

struct Lead {
  CaseSlot slot;
  std::int64_t at = 0;  // of the reason
  std::int64_t until = 0;
  double confidence = 0;
  std::int64_t wait = 0;  // where there is no such case: one may be decided by then
};

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

// The open case that took what was said of the part last by a learned relation.
CaseSlot followed(const Board& board, PartId part) {
  const auto number = board.leads.followed(part);
  return number ? board.cases.numbered(*number) : CaseSlot();
}

// The open case that has it as a member.
CaseSlot holder(const Board& board, const Observation& said) {
  if (const CaseSlot owner = board.states[said.part].owner; owner.valid()) {
    const OpenCase& c = board.cases[owner];
    for (const Observation& member : c.members | std::views::reverse)
      if (member.serial == said.serial) return owner;
    const auto omitted = c.members_omitted.find(stream_of(said));
    if (omitted != c.members_omitted.end() && omitted->second.first <= said.at &&
        said.at <= omitted->second.last)
      return owner;
  }
  const CaseSlot slot = followed(board, said.part);
  if (!slot.valid()) return {};
  const auto is_it = [&](const LearnedMember& led) { return led.said.serial == said.serial; };
  return std::ranges::any_of(board.cases[slot].led, is_it) ? slot : CaseSlot();
}

// The surest relation leads, of equals the one with the latest reason.
void look_for_lead(const Board& board, const Observation& said, const LearnedRelation& relation,
                   NodeId device, Lead& best) {
  const Spot here = spot_of(board.parts, said.part, said.end);
  for (const Observation& reason : board.leads.reasons(device) | std::views::reverse) {
    const std::int64_t delay = said.at - reason.at;
    if (delay > relation.most_ns) return;
    if (delay < relation.least_ns || reason.kind != relation.from) continue;
    const Spot there = spot_of(board.parts, reason.part, reason.end);
    if (nearness_of_joined(board.parts, there, here) != relation.at) continue;
    const CaseSlot slot = holder(board, reason);
    if (!slot.valid()) {
      const Pending* waits = board.waiting(reason.part);
      const auto is_it = [&](const Observation& s) { return s.serial == reason.serial; };
      if (waits != nullptr && std::ranges::any_of(waits->said, is_it))
        best.wait = std::max(best.wait, waits->due);
      continue;
    }
    if (!board.is_live(board.cases[slot], said.at)) continue;
    if (std::pair(relation.confidence, reason.at) > std::pair(best.confidence, best.at))
      best = {slot, reason.at, said.at + relation.most_ns, relation.confidence, best.wait};
  }
}

// What is said again where a learned relation has led before, or ends that.
Lead continued_lead(const Board& board, const Observation& said) {
  const CaseSlot slot = followed(board, said.part);
  if (!slot.valid() || !board.is_live(board.cases[slot], said.at)) return {};
  for (const LearnedMember& led : board.cases[slot].led | std::views::reverse) {
    if (led.said.part != said.part || led.said.at > said.at) continue;
    const bool is_again = led.said.kind == said.kind && said.at <= led.until;
    const bool is_end = board.rules.event(said.kind).meaning == Meaning::clear &&
                        model::clears(led.said.kind) == said.kind;
    const std::int64_t length = led.until - led.said.at;
    if (is_again || is_end) return {slot, led.said.at, said.at + length, led.confidence, 0};
  }
  return {};
}

Lead find_lead(const Board& board, const Observation& said) {
  Lead best = continued_lead(board, said);
  if (best.slot.valid()) return best;
  const NodeId device = spot_of(board.parts, said.part, said.end).device;
  for (const LearnedRelation& relation : board.learned.leading_to(said.kind)) {
    const auto look = [&](NodeId at) { look_for_lead(board, said, relation, at, best); };
    // Of a cable, the other end may have said it.
    if (relation.at != Nearness::neighbour) look(device);
    if (relation.at != Nearness::device && device.valid())
      for_each_joined(board.parts.fabric(), device, look);
  }
  return best;
}

}  // namespace

LeadHistory::LeadHistory(const Context& context)
    : parts_(context.parts),
      learned_(context.learned),
      reasons_(learned_.empty() ? 0 : parts_.fabric().node_count() + 1),
      followed_(learned_.empty() ? 0 : parts_.size()) {}

void LeadHistory::note(const Evidence& evidence) {
  const NodeId device = spot_of(parts_, evidence.part, evidence.end).device;
  auto& row = reasons_[device.valid() ? device.index() : reasons_.size() - 1];
  while (!row.empty() && row.front().at < evidence.at - learned_.most_ns() - patience_ns)
    row.pop_front();
  WEFT_CHECK(row.empty() || row.back().at <= evidence.at);
  row.emplace_back(evidence, false);
}

bool follow(Board& board, const Observation& said) {
  if (board.learned.empty()) return false;
  const Lead lead = find_lead(board, said);
  if (!lead.slot.valid()) return false;
  OpenCase& c = board.cases[lead.slot];
  WEFT_CHECK(c.is_open);
  c.led.push_back({said, lead.until, lead.confidence});
  thin(c, board.rows_max);
  board.leads.set_followed(said.part, c.number);
  ++board.counts.learned;
  return true;
}

bool follow_lead(Board& board, PartId part, std::optional<CauseKind> written, std::int64_t now) {
  Pending* pending = board.waiting(part);
  WEFT_CHECK(pending != nullptr);
  if (written && *written != CauseKind::unknown &&
      pending->tally.has(board.rules.cause(*written).explains))
    return false;
  const auto first = std::ranges::find_if(
      pending->said, [&](const Observation& s) { return is_trouble(board.rules, s.kind); });
  if (first == pending->said.end()) return false;
  const Lead lead = find_lead(board, *first);
  if (lead.slot.valid()) {
    dismiss(board, part);
    return true;
  }
  if (pending->was_held || lead.wait == 0) return false;
  pending->was_held = true;
  board.pendings.schedule(*pending, std::max(lead.wait, now) + 1);
  return true;
}

void follow_unexplained(Board& board, CaseSlot slot) {
  OpenCase& c = board.cases[slot];
  if (!c.is_open) return;
  std::vector<Observation> left;
  for (const Observation& said : std::exchange(c.unexplained, {}))
    if (!follow(board, said)) left.push_back(said);
  c.unexplained = std::move(left);
}

void dismiss(Board& board, PartId part) {
  const CaseSlot owner = board.states[part].owner;
  const Pending* pending = board.waiting(part);
  WEFT_CHECK(pending != nullptr);
  const bool is_held = board.is_live_at(part, pending->last);
  for (const Observation& said : pending->said) {
    if (follow(board, said)) continue;
    ++board.counts.dismissed;
    if (is_held) board.cases[owner].unexplained.push_back(said);
  }
  if (is_held) thin(board.cases[owner], board.rows_max);
  board.close_pending(part);
}

}  // namespace weft::operate::triage
