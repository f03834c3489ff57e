// What becomes of evidence: it joins the case of its part, or is decided on once it has waited.
#pragma once

#include <cstdint>

#include "operate/triage/board.hpp"
#include "operate/triage/weigh.hpp"

namespace weft::operate::triage {

// Whether what is said of a part belongs to the case that owns it.
bool joins(const Board& board, CaseSlot slot, const Evidence& evidence);
// Makes it a member. What speaks for a cause of its own may split the case.
void join(Board& board, CaseSlot slot, const Evidence& evidence, bool is_repeat);

// What waits on the part opens a case, goes to one, is dropped or waits for longer; then what cases
// do not explain follows learned relations.
void decide(Board& board, PartId part, std::int64_t now);
// The same without the learned relations of other cases.
void decide_alone(Board& board, PartId part, std::int64_t now);

// Cases that turn out to be several (split.cpp): the case is thought over from what it holds, with
// the cause that is proven set apart.
// Something was said that the case explains, and that yet speaks for a cause of its own.
void doubt(Board& board, CaseSlot slot, const Evidence& evidence);
// A cable of a case is about to have a case of its own, for what the case does not explain. False:
// there is nothing to split.
bool split_by_leaf(Board& board, PartId part, CauseKind kind, std::int64_t now);

}  // namespace weft::operate::triage
