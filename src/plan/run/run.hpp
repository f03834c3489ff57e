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
  // Variants that run at a time. One only where a variant is of the packet engine, which has
  // threads of its own.
  std::uint32_t threads = 1;
  bool maps = false;        // also VariantOutcome::fabric_map, for a page
  bool link_waits = false;  // also TrainingOutcome::link_waits, of the first variant
};

// Runs all variants. Fails with every error of the first broken variant, before any variant has
// been run. Deterministic in scenario, seed and build, on any number of threads. Memory: that of
// as many variants as run at a time.
// Cost: see engine::fluid; fabrics that variants share are built once.
Result<model::Outcome> run_scenario(const model::ScenarioFile& file, const RunOptions& options);

// Flows or jobs that did not finish, over all variants; the command then exits with status 1.
bool has_unfinished(const model::Outcome& outcome);
// A class that PFC makes lossless dropped packets in some variant; the status is 1 then too.
bool has_lossless_drops(const model::Outcome& outcome);

}  // namespace weft::plan
