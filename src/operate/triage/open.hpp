// How cases come to be: what they take with them, and which lesser ones they swallow.
#pragma once

#include <cstdint>

#include "operate/triage/weigh.hpp"

namespace weft::operate::triage {

// A suspect that failed as a whole or in part: a new case, or the live one that it has.
void open_suspect(Board& board, const Verdict& verdict, std::int64_t onset);
// A single part, with what waits on it.
void open_leaf(Board& board, CauseKind kind, PartId part, std::int64_t now);
// Sessions that end by policy, or just after a change at one end, for no other reason, or with
// others that a change has taken. False: none of these.
bool open_config(Board& board, PartId cable);

// Of a case with a part of its own: 0 to 1.
double confidence(const Rules& rules, const Tally& tally);
// Later evidence may say more about the kind of trouble without moving its place.
void retype(const Board& board, OpenCase& c);

}  // namespace weft::operate::triage
