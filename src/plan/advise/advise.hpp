// Which jobs pay for being moved: faults and jobs as they are, one move at a time, simulated.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/units.hpp"
#include "model/scenario/scenario.hpp"
#include "model/work/outcome.hpp"
#include "plan/run/run.hpp"

namespace weft::plan::advise {

struct Options {
  Duration horizon;         // how long what is said of the fabric holds
  Duration move;            // what a moved job loses: work since its checkpoint, and the restart
  std::uint32_t moves = 1;  // one after another, each on top of those before
  RunOptions run;
};

struct Candidate {
  std::string job, how;                    // "spare hosts", "fitted"
  std::vector<std::string> leaves, takes;  // hosts
  // Seconds of a step or iteration, of the job and of all: no_number where it never ends.
  double stay_s = 0, moved_s = 0;
  // Of all jobs until the horizon: GPU-hours of work at each job's best pace of the table, more
  // than if all stay.
  double gain_gpu_hours = 0;
  double pays_after_s = 0;         // for the job itself; no_number: never
  std::vector<std::string> ranks;  // GPUs, in rank order
};

struct Round {
  struct JobTime {
    std::string name;
    std::uint64_t gpus;
    double seconds;  // no_number: it never ends
  };
  std::vector<JobTime> stay;
  std::vector<Candidate> candidates;        // best first
  std::optional<model::Estimate> estimate;  // of staying, where times are estimates
  bool moves() const { return !candidates.empty() && candidates.front().gain_gpu_hours > 0; }
};

struct Advice {
  std::vector<std::string> struck;  // hosts that faults touch at the start
  std::vector<Round> rounds;        // the last one may say: stay
};

// For every job two candidates: its struck hosts replaced, one for one, by free hosts as near as
// there are (rack, then zone), and the whole job placed anew by place: fitted on free and own hosts
// that no fault touches. Faults that begin later are simulated, but no host is avoided for them.
// Fails: as run_scenario(); Errc::unsupported where a row of jobs: stands for several jobs.
// Cost: a run for each candidate and round.
Result<Advice> advise(const model::Scenario& scenario, const Options& options);

std::string to_table(const Advice& advice, const Options& options);
std::string to_json(const Advice& advice);

}  // namespace weft::plan::advise
