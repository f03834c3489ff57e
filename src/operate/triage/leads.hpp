// Learned relations at work: what no written rule explains joins the case of what usually leads
// to it.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "base/id.hpp"
#include "operate/triage/context.hpp"
#include "operate/triage/open_case.hpp"

namespace weft::operate::triage {

struct Board;

// What learned relations need to know of the past; empty without them. Invariant: the reasons of a
// device are in the order of event time; those too old to lead to anything go when a new one comes.
// The case that a part followed may have closed since.
class LeadHistory {
 public:
  explicit LeadHistory(const Context& context);

  // Evidence of a kind that leads to others. Cost: amortised O(1).
  void note(const Evidence& evidence);
  // Of a device; an invalid id: of scopes.
  const std::deque<Observation>& reasons(model::NodeId device) const {
    return reasons_[device.valid() ? device.index() : reasons_.size() - 1];
  }
  // The number of the case that what was said of the part followed last.
  std::optional<std::uint64_t> followed(PartId part) const { return followed_[part]; }
  void set_followed(PartId part, std::uint64_t number) { followed_[part] = number; }

  // A case has something new that it does not explain.
  void mark(CaseSlot slot) { marked_.push_back(slot); }
  std::vector<CaseSlot> take_marked() { return std::exchange(marked_, {}); }

 private:
  const Parts& parts_;
  const LearnedRelations& learned_;
  std::vector<std::deque<Observation>> reasons_;  // by device
  Column<PartId, std::optional<std::uint64_t>> followed_;
  std::vector<CaseSlot> marked_;
};

// Whether it has become a member of the case that a learned relation leads to.
bool follow(Board& board, const Observation& said);
// Where no written cause explains what waits on the part, it goes where a learned relation leads;
// or it is held once, for the case of its reason to be decided on. False: neither.
bool follow_lead(Board& board, PartId part, std::optional<CauseKind> written, std::int64_t now);
// The same of what the case holds and does not explain.
void follow_unexplained(Board& board, CaseSlot slot);
// What waits on the part is too thin for a case: it follows a learned relation or is dropped. Where
// a case holds the part, that case says what it does not explain.
void dismiss(Board& board, PartId part);

}  // namespace weft::operate::triage
