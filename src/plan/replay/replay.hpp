// Recorded states of a fabric under other schemes: what would they have cost the jobs?
#pragma once

#include <string>
#include <vector>

#include "model/scenario/scenario.hpp"
#include "plan/replay/timeline.hpp"
#include "plan/run/run.hpp"

namespace weft::plan::replay {

// More distinct states than these are refused, for every one is a run of all variants.
inline constexpr std::size_t states_max = 2000;

// A job under a variant.
struct Line {
  std::string variant, job;
  double healthy_s = 0;            // of a step, or of an iteration
  std::vector<double> states_s;    // by state; no_number where the job is stalled
  double mean_s = 0, worst_s = 0;  // over time; of states in which it is not stalled
  double still_s = 0;              // for how long it is stalled
  double lost_s = 0;               // time that the healthy fabric would have needed less
};

struct Replay {
  Timeline timeline;
  std::vector<Line> lines;  // by variant, then job
};

// Runs every variant once on the healthy fabric and once for each distinct state, as if the state
// had held from the start: how jobs pass from one to the next is not simulated. The file's own
// faults are left out. In an interval of length d with steps of t instead of t0 a job loses d (1 -
// t0 / t), and d where it is stalled.
// Fails: as run_scenario(), and Errc::value on more than states_max states.
Result<Replay> replay(const model::ScenarioFile& file, Timeline timeline,
                      const RunOptions& options);

}  // namespace weft::plan::replay
