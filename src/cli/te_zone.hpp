// weft te on a scenario: central traffic engineering inside a zone.
#pragma once

#include <string>
#include <vector>

#include "cli/cli.hpp"
#include "model/scenario/scenario.hpp"
#include "operate/te/decide.hpp"
#include "plan/run/setup.hpp"

namespace weft::cli {

struct ZoneTeArgs {
  std::string scenario, variant;
  std::string flows;      // CSV; else those of the scenario's jobs
  std::string fail;       // cables and switches
  bool only_hit = false;  // others keep their paths
  bool split = false;     // flows over two QPs, where that helps
  std::string marks;      // CSV to write
  std::string check;      // CSV of marks to judge
};

// Flows of the scenario's jobs that are assigned together, kind by kind, with bytes as weights and
// ports as route::port_of_qp() gives them.
// Prints the warnings. Fails as plan::scenario_flows.
struct TeGroup {
  std::string name;
  std::vector<operate::te::Flow> flows;
};
Result<std::vector<TeGroup>> te_groups_of_jobs(const model::Scenario& scenario,
                                               const plan::Setup& setup);
// All kinds together: a QP that several use is one flow, with the sum of their bytes.
std::vector<operate::te::Flow> te_merged(const std::vector<TeGroup>& groups);

// Where the assigned marks of --check are worse than hashing, or lead over dead links: work_failed.
int run_zone_te(const Common& common, const ZoneTeArgs& args);

}  // namespace weft::cli
