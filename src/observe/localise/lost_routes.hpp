// Routes that a switch does not forward: what it should send to one host is lost, while the same
// links carry what goes to others. Internal to the room.
#pragma once

#include <cstdint>
#include <vector>

#include "model/events/evidence.hpp"
#include "model/fabric/fabric.hpp"
#include "model/fabric/state.hpp"

namespace weft::observe::localise {

struct LostRoute {
  model::NodeId device, to;            // switch; NIC or host that its packets do not reach
  std::uint64_t probes = 0, lost = 0;  // of the rows that tell of it
  double score = 0;                    // log odds against chance
};

// By score, then by ids. A route is lost where for some time every row over the switch to that end
// has lost probes, at least four flows of them; and of the rows of the same time over the links
// into and out of the switch to other ends, over the switch, and to that end by other switches so
// few have lost any that as many in a row would not be chance. It may have ended since: then all
// rows over it, also those of windows in which it began or ended, are as little to a link's blame.
// The last switch before an end has no such rows beside it: there it is the cable or the end that
// is judged. Rows over these routes are taken out of `evidence`: they speak of no link.
// Cost: a pass over the rows that lost something; where four flows to an end over one switch did, a
// pass over all, and one more for each route that nothing came over for some time.
// `believed` as Localiser::run has it: rows over what is out are left as they are.
std::vector<LostRoute> take_lost_routes(const model::Fabric& fabric, model::EvidenceSet& evidence,
                                        const model::State* believed);
// Whether there may be any, as the first of those passes says.
bool may_have_lost_routes(const model::Fabric& fabric, const model::EvidenceSet& evidence,
                          const model::State* believed);

}  // namespace weft::observe::localise
