// `weft run`: every variant of a scenario on its engine.
#pragma once

#include <string>

#include "base/progress.hpp"
#include "model/scenario/scenario.hpp"
#include "model/work/outcome.hpp"

namespace weft::plan {

struct RunOptions {
  std::string command;  // shown in the report
  Progress::Show progress = Progress::Show::never;
};

// Runs all variants in file order, one after the other. Fails with every error of the first broken
// variant, before any variant has been run. Deterministic in scenario, seed and build.
// Cost: see engine::fluid; fabrics that variants share are built once.
Result<model::Outcome> run_scenario(const model::ScenarioFile& file, const RunOptions& options);

// Flows or jobs that did not finish, over all variants; the command then exits with status 1.
bool has_unfinished(const model::Outcome& outcome);
// A class that PFC makes lossless dropped packets in some variant; the status is 1 then too.
bool has_lossless_drops(const model::Outcome& outcome);

}  // namespace weft::plan
