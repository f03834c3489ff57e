// What makes the difference between the same flows on both engines.
#pragma once

#include "engine/packet/options.hpp"
#include "model/fabric/flow_set.hpp"
#include "plan/flows/flow_runs.hpp"
#include "route/router.hpp"

namespace weft::plan {

// What the packet engine adds to the mean completion time beyond the fluid limit, in microseconds,
// so far as it follows from the flows themselves. Of flows that finished in the fluid run.
struct Surplus {
  double headers = 0;     // transfer time x header bytes over payload
  double round_trip = 0;  // last packet and its ACK: store and forward at every hop, and back
  double sent_again = 0;  // transfer time x packets sent again over those of the flows
  double rest = 0;        // queues, pauses, uneven shares: what is left of the difference
};
Surplus surplus_of(const model::FlowSet& set, const FlowsResult& fluid, const FlowsResult& packet,
                   route::Router& router, const engine::packet::WireFormat& wire);

}  // namespace weft::plan
