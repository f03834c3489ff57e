// Flows between racks over one spine each, or in two halves over two, where that helps.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "route/assign.hpp"

namespace weft::route {

struct Placement {
  // By flow: its spine, and that of its second half; Assignment::none: no live path, or not
  // divided.
  std::vector<std::uint32_t> first, second;
  double worst = 0;  // of all links: weight / capacity
  // Counts are of flows: placed, where a path of theirs was dead or they had none; moved, where all
  // were live and one is another now, or they were divided or joined. `bound`: of whole flows.
  Assignment::Outcome outcome;
};

// `links`: the capacities, without flows. `may_divide`: by flow; empty: none. `before`: where flows
// go already, empty lists where they go nowhere.
//
// With Others::stay only flows without a live path are divided. Whole flows are placed first. Then
// flows of the worst links are divided, round by round, until the worst link is within 1 % of what
// no division can be below, or another round makes it less than 1 % better. What is divided already
// begins so, and is joined again when that costs less than 1 %. Never worse than whole flows.
// Deterministic. Cost: that of ten solves, at most.
Placement place(const Assignment& links, std::span<const Assignment::Flow> flows,
                const std::vector<bool>& may_divide, const Placement& before,
                Assignment::Others others = Assignment::Others::may_move);

}  // namespace weft::route
