// What a case says of itself.
#pragma once

#include <cstdint>
#include <string>

#include "model/events/case.hpp"
#include "operate/triage/board.hpp"

namespace weft::operate::triage {

using model::Case;
using model::CaseState;
using model::Relation;

// Names and windows that come from elsewhere than the board.
struct Announced {
  const Interpreter& interpreter;
  const Maintenance& maintenance;
  const PlannedChanges& planned;
};

// Cost: O(rows and parts of the case * log).
Case describe(const Board& board, const Announced& announced, const OpenCase& c, CaseState state);
// Changes whenever describe() would say something else. Cost: O(parts of the case).
std::uint64_t fingerprint(const Board& board, const OpenCase& c);

// The earliest member that is listed, or nullptr.
const Observation* first_member(const OpenCase& c);
// From its first record's time and place.
std::string name_of(const Parts& parts, const OpenCase& c);

}  // namespace weft::operate::triage
