// What a job does over the front-end network: start, data ingestion, checkpoints.
#pragma once

#include <span>

#include "base/result.hpp"
#include "model/fabric/fabric.hpp"
#include "model/fabric/frontend.hpp"
#include "model/work/outcome.hpp"
#include "plan/run/jobs.hpp"
#include "plan/run/setup.hpp"

namespace weft::plan {

// Seconds until all transfers have ended that start together, on a front end that carries nothing
// else, in the state at the start of the run. Fails: Errc::infeasible where one has no path.
Result<double> storage_seconds(const Setup& setup, std::uint64_t seed,
                               std::span<const model::StorageFlow> flows);

// Fills in bootstrap_s, checkpoint_s and a note on ingestion, as far as the job asks for them and
// the fabric has a front end. Fails: Errc::infeasible where it asks for what the fabric lacks.
Status add_frontend_times(const PlacedGraph& placed, const Setup& setup, std::uint64_t seed,
                          model::TrainingOutcome& out, std::vector<model::Note>& notes);

}  // namespace weft::plan
