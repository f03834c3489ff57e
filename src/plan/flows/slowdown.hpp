// How much longer flows took than alone.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/packet/options.hpp"
#include "model/fabric/flow_set.hpp"
#include "route/router.hpp"

namespace weft::plan {

struct FlowSpan;

// What each flow takes alone on the paths of its QPs in the router's present state, in
// microseconds; no number where there is no path (packets need one back, too) or no byte. `wire`
// null: as the fluid engine counts, bytes over the slowest link and latency. Else as a queue pair
// that nothing holds back: packets with headers are stored and forwarded at each hop but the first,
// and the acknowledgement of the last one returns. Exact for a flow alone on one path without
// congestion control; of several paths (QPs, spray) the mean counts. Cost: a path a flow and QP.
std::vector<double> ideal_times_us(const model::FlowSet& set, route::Router& router,
                                   const engine::packet::WireFormat* wire);

// Completion time over ideal time: of finished flows; percentiles by nearest rank.
struct Slowdowns {
  struct Class {
    double bytes_max = 0;  // flows of so many bytes, and of more than the class before
    std::size_t flows = 0;
    double p50 = 0, p99 = 0, max = 0;
  };
  Class all;
  std::vector<Class> by_size;  // decades, 10 kB first; those that have flows
};
Slowdowns slowdowns(const std::vector<FlowSpan>& flows);

}  // namespace weft::plan
