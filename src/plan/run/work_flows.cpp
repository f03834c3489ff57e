#include "plan/run/work_flows.hpp"

#include "engine/jobs/declare.hpp"
#include "plan/run/graph_outcome.hpp"
#include "plan/run/jobs.hpp"

namespace weft::plan {

Result<ScenarioFlows> scenario_flows(const model::Scenario& scenario, const Setup& setup,
                                     route::Router& router) {
  WEFT_TRY(const Jobs placed, read_jobs(setup, scenario.section("jobs"), scenario.seed));
  std::vector<engine::Job> jobs;
  for (const PlacedJob& job : placed.collectives) jobs.push_back(job.job);
  const std::vector<engine::GraphJob> graphs = graph_jobs(placed, setup);
  engine::FlowKinds found = engine::flow_kinds({jobs, graphs}, router);
  ScenarioFlows out{.kinds = {}, .notes = std::move(found.notes)};
  for (engine::FlowKind& kind : found.kinds)
    if (auto flows = router.nic_demands(kind.flows); !flows.empty())
      out.kinds.push_back({std::move(kind.name), std::move(flows)});
  return out;
}

}  // namespace weft::plan
