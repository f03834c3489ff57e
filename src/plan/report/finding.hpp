// What a run says about its jobs in a sentence each.
#pragma once

#include <string>
#include <vector>

#include "model/work/outcome.hpp"

namespace weft::plan::report {

// "llama3: compute-bound: of 12.75 s a step, 83 % compute, ...". What takes the largest part beyond
// compute, from a tenth of the step on, is what the job is bound by; waits for checkpoints count as
// a share of the run, since they are in no step.
std::string finding(const model::JobOutcome& job);
// "busiest links: rtsw->ctsw, 90 % at most, 17 % in the mean", of all jobs; "" without load.
std::string busiest_links(const model::VariantOutcome& variant);

// One for each job of the first variant, with the variant in which it is fastest, if that is
// another one and by at least 1 %; then its busiest links.
std::vector<std::string> findings(const model::Outcome& outcome);

}  // namespace weft::plan::report
