// The flows of a scenario's jobs, as a central controller is told of them.
#pragma once

#include <string>
#include <vector>

#include "model/scenario/scenario.hpp"
#include "plan/run/setup.hpp"

namespace weft::plan {

// Flows that may be under way together, between NICs and by QP.
struct WorkFlows {
  std::string kind;  // "dp all_reduce"
  std::vector<route::NicDemand> flows;
};
struct ScenarioFlows {
  std::vector<WorkFlows> kinds;  // those that cross the network
  std::vector<model::Note> notes;
};

// Of all jobs; `router`: of the setup's fabric and routing. Fails as read_jobs().
Result<ScenarioFlows> scenario_flows(const model::Scenario& scenario, const Setup& setup,
                                     route::Router& router);

}  // namespace weft::plan
