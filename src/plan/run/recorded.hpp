// Jobs with a recorded workload.
#pragma once

#include <optional>

#include "base/config.hpp"
#include "workload/trace/astra_system.hpp"
#include "workload/trace/trace.hpp"

namespace weft::plan {

struct Recorded : workload::RecordedWorkload {
  std::optional<workload::AstraSystem> system;
};

// Reads the job's `workload` (a file, or a list of files: one per rank), `groups` (side file with
// process groups), `trace_ranks` (scale to so many ranks) `overhead` (GOAL: of a send or
// recv) and `system` (ASTRA-sim's JSON: algorithms, and rates of compute that has no time).
// Paths are relative to the scenario. Errors go to the reader's list; nothing is returned when
// there was one.
std::optional<Recorded> read_recorded_workload(Reader& job);

// What was counted and timed in the files, then the reader's notes: a line each.
std::vector<std::string> summary_of(const Recorded& recorded);

}  // namespace weft::plan
