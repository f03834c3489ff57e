// Why jobs take as long as they do: the scenario once more with one thing changed at a time.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "model/scenario/scenario.hpp"
#include "model/work/outcome.hpp"
#include "plan/run/run.hpp"

namespace weft::plan::why {

// What is changed, as keys of the scenario.
struct Change {
  std::string name;  // "links x 2"
  std::string keys;  // "fabric.link=800 Gbps"
  model::Scenario scenario;
};
// Those that mean something for the scenario: no contention, spraying, four times the QPs, no
// faults, no slow ranks (faults and compute_times), the fitted order of ranks, links twice as fast,
// no latency of cables. Fails where a key cannot be set.
Result<std::vector<Change>> changes(const model::Scenario& scenario);

struct Answer {
  struct Gain {
    std::string name, keys;
    std::vector<double> speed;  // by job: time as it is by time with the change; no_number where
                                // either does not finish
  };
  model::VariantOutcome base;
  std::vector<Gain> gains;            // in order of changes()
  std::vector<std::string> findings;  // a sentence for each job
};

// Runs the scenario and every change. Deterministic. Cost: that of so many runs; fabrics that
// changes leave alone are built once.
Result<Answer> explain(const model::Scenario& scenario, const RunOptions& options);

}  // namespace weft::plan::why
