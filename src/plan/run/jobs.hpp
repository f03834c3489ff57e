// The `jobs:` of a scenario as work for an engine.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/config.hpp"
#include "engine/fluid/job_run.hpp"
#include "model/fabric/fabric.hpp"
#include "plan/run/placement.hpp"
#include "plan/run/setup.hpp"
#include "plan/run/training.hpp"
#include "workload/collective/calls.hpp"
#include "workload/jobstart/bootstrap.hpp"

namespace weft::plan {

using model::NodeId;

// A collective as written, placed on its GPUs.
struct PlacedJob {
  engine::Job job;
  workload::Op op;
  double bytes = 0;  // per rank, as nccl-tests count
  std::string placement;
  std::vector<std::string> notes;
};

// A job with a model or a recorded workload.
struct PlacedGraph {
  std::string name, placement;
  std::vector<NodeId> ranks;
  std::shared_ptr<const model::OpGraph> graph;  // shared by copies of this row; never changed
  std::optional<TrainingSpec> training;         // none: recorded
  std::uint32_t repeat = 0;                     // 0: until steady
  Time start;
  double overlap_slowdown = 1;
  std::vector<double> compute_factor;  // by rank, as engine::GraphJob; empty: all alike
  // Bytes per GPU; 0: not asked for. As engine::FrontEnd has them.
  struct Checkpoint {
    Bytes bytes;
    std::uint32_t every = 0;
    bool asynchronous = false;
    Rate copy_rate;  // of each GPU to its host, asynchronous ones only
  } checkpoint;
  struct Ingest {
    Bytes bytes;
    std::uint32_t prefetch = 1;
  } ingest;
  workload::BootstrapModel bootstrap;
  workload::Algorithms algorithms{};
  workload::Library library;
  Where where;                   // of the job, for messages
  model::TrainingOutcome known;  // what does not depend on the run
  std::vector<std::string> notes;
};

struct Jobs {
  std::vector<PlacedJob> collectives;
  std::vector<PlacedGraph> graphs;
  // In file order: which of the two, and where in it.
  struct Entry {
    enum class Kind : std::uint8_t { collective, graph } kind;
    std::size_t index;
  };
  std::vector<Entry> order;
};

// Reads and places all jobs in file order. Keys of every job: name, place, ranks, gpus, start,
// repeat, rank_file; then one of `collective` (with bytes or matrix, algorithm, channels, window,
// late:
// [{rank, by}]), `model` (with the keys of workload::read_plan, and gpu) and `workload` (a file or
// a list of files), these two with algorithms: {all_reduce: NAME, ...}, checkpoint, ingest,
// bootstrap and compute_times (a file). Fails with every error found.
Result<Jobs> read_jobs(const Setup& setup, const Config& jobs, std::uint64_t seed);
// The same on the GPUs that `placer` has left.
Result<Jobs> read_jobs(const Setup& setup, const Config& jobs, std::uint64_t seed, Placer& placer);

}  // namespace weft::plan
