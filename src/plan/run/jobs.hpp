// The `jobs:` of a scenario as work for an engine.
#pragma once

#include <string>
#include <vector>

#include "base/config.hpp"
#include "engine/fluid/job_run.hpp"
#include "model/fabric.hpp"
#include "workload/collective/traffic.hpp"

namespace weft::plan {

// A job as written, placed on its GPUs.
struct PlacedJob {
  engine::fluid::Job job;
  workload::Op op;
  double bytes = 0;  // per rank, as nccl-tests count
  std::string placement;
};

// Reads and places all jobs in file order. `step_overhead` comes from `transport:`.
// Keys of a job: name, collective, gpus, bytes, place, ranks, algorithm, channels, window, repeat,
// start, late: [{rank, by}]. Fails with every error found.
Result<std::vector<PlacedJob>> read_jobs(const model::Fabric& fabric, const Config& jobs,
                                         std::uint64_t seed, Duration step_overhead);

}  // namespace weft::plan
