// Where the fabric does not carry what it is believed to. Internal to the room.
#pragma once

#include <vector>

#include "observe/localise/evidence_index.hpp"

namespace weft::observe::localise {

// The log of the probability that no flow crosses a link by chance: of `all` flows of a tier `sent`
// leave by the link's sender and `received` arrive at its receiver, each drawn independently of the
// other (Fisher's exact test of a table with an empty cell). At least -700.
double log_chance_of_none(double sent, double received, double all);

// Links between switches that are believed up and that no known path crosses, though from the loads
// of their neighbours flows would be expected to; and links believed down that paths cross.
// The probability of an unused link weighs the chance that all flows missed it against one such
// link in 100 windows, anywhere in the fabric.
// Cost: O(links); where a link between switches is not crossed, another pass over the rows.
std::vector<Verdict> find_disagreements(const Structure& structure, const EvidenceIndex& ledger,
                                        const EvidenceSet& evidence, const model::State* believed);

}  // namespace weft::observe::localise
