// How a model is spread over GPUs where nobody said it.
#pragma once

#include <cstdint>

#include "workload/parallel/plan.hpp"

namespace weft::plan::init {

// The plan with the fewest GPUs a replica that check_plan() accepts: tensor parallelism inside the
// NVLink domain of `domain` GPUs, then pipeline stages; experts as far apart as they divide. Four
// micro-batches of one sequence for each stage. Among equals the one with fewer stages.
// Fails: Errc::infeasible where none fits, with the reason of the largest replica tried.
Result<workload::TrainingPlan> split_model(const workload::ModelSpec& model,
                                           const workload::GpuSpec& gpu, std::uint64_t gpus,
                                           std::uint64_t domain);

}  // namespace weft::plan::init
