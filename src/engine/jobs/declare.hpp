// What a controller that assigns paths is told of the work.
#pragma once

#include <string>
#include <vector>

#include "engine/jobs/jobs.hpp"
#include "route/router.hpp"

namespace weft::engine {

// Flows that may be under way together.
struct FlowKind {
  std::string name;  // "dp all_reduce", or "stage 2" of a collective
  std::vector<route::Demand> flows;
};
struct FlowKinds {
  std::vector<FlowKind> kinds;
  std::vector<model::Note> notes;  // what was left out: exchanges of too many pairs
};
// Of all jobs: those of one stage of the collectives together, and of graphs those of one kind
// (dimension and operation; rounds of an exchange apart), each at its largest size.
FlowKinds flow_kinds(const Work& work, const route::Router& router);

// Declares the flows of all jobs to the router, kind by kind. The front-end network is not the
// controller's. Returns the notes. Nothing, and no cost, unless the router listens.
std::vector<model::Note> declare_flows(const Work& work, route::Router& router);

}  // namespace weft::engine
