// Where the fabric does not carry what it is believed to. Internal to the room.
#pragma once

#include <vector>

#include "observe/localise/ledger.hpp"

namespace weft::observe::localise {

// Links between switches that are believed up and that no known path crosses, though from the loads
// of their neighbours many would be expected to; and links believed down that paths cross.
// Cost: O(links).
std::vector<Verdict> find_disagreements(const Structure& structure, const Ledger& ledger,
                                        const model::State* believed);

}  // namespace weft::observe::localise
