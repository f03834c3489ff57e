// Why a job is stalled.
#pragma once

#include "observe/colltrace/cohorts.hpp"
#include "observe/colltrace/verdict.hpp"

namespace weft::observe::colltrace {

// Fills in what waits, and the verdicts of a hang if the job is stalled.
void find_hang(const Job& job, const Cohorts& cohorts, const AnalysisOptions& options,
               Report& report);

}  // namespace weft::observe::colltrace
