// Who makes a job slow that runs.
#pragma once

#include "observe/colltrace/cohorts.hpp"
#include "observe/colltrace/verdict.hpp"

namespace weft::observe::colltrace {

// Ranks and hosts that compute longer than those that run the same program, and groups whose
// transfers take longer than those of the same kind. The first needs times that were measured:
// dumps whose starts and ends a watchdog has found say nothing of it, and no verdict is made up
// from them.
void find_slow(const Job& job, const Cohorts& cohorts, const AnalysisOptions& options,
               Report& report);

}  // namespace weft::observe::colltrace
