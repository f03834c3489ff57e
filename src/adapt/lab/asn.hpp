// Autonomous systems for the switches of a lab.
#pragma once

#include "adapt/lab/plan.hpp"

namespace weft::adapt::lab {

// Fills LabNode::asn as make_plan() says. Cost: O(switches * cables).
void assign_asns(LabPlan& plan, const model::Fabric& fabric);

}  // namespace weft::adapt::lab
