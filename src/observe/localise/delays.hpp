// Flows whose answers take longer than queues explain. Internal to the room.
#pragma once

#include "model/events/evidence.hpp"
#include "model/fabric/fabric.hpp"

namespace weft::observe::localise {

// The round-trip times of `evidence`, told of as losses are: one row a flow and window, over the
// links of both ways, with 1 sent, and 1 lost where the median answer took `excess_us` longer than
// others over as many links (the links' own latencies apart). Rows without a path or a time, and
// ways back whose way there is not told of, are left out. Empty where no row is slow.
// Cost: a pass over the rows; where one is slow, O(rows log rows).
model::EvidenceSet delays_in(const model::Fabric& fabric, const model::EvidenceSet& evidence,
                             double excess_us);

}  // namespace weft::observe::localise
