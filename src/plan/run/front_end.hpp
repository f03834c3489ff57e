// What the jobs of a scenario do over the front-end network.
#pragma once

#include <span>
#include <vector>

#include "base/result.hpp"
#include "engine/jobs/jobs.hpp"
#include "model/work/outcome.hpp"
#include "plan/run/jobs.hpp"
#include "route/router.hpp"

namespace weft::plan {

// Adds GraphJob::front_end to the graphs of `jobs`: communicators where the job's hosts have
// front-end NICs, and what the job asks for. Fails: Errc::infeasible where it asks for what the
// fabric lacks.
Status add_front_ends(const Jobs& jobs, route::Router& router, std::span<engine::GraphJob> graphs);

// Times of a job that ran, with a warning where it waited for its input.
void add_front_end_times(const std::string& job, const engine::FrontEndResult& result,
                         model::TrainingOutcome& out, std::vector<model::Note>& notes);

}  // namespace weft::plan
