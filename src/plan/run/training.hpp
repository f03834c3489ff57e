// Jobs with a model: from `model:` and `parallel:` to an operation graph on placed GPUs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/config.hpp"
#include "engine/fluid/graph_run.hpp"
#include "model/fabric/fabric.hpp"
#include "model/work/op_graph.hpp"
#include "model/work/outcome.hpp"
#include "model/work/step_cost.hpp"
#include "plan/run/setup.hpp"
#include "workload/parallel/plan.hpp"

namespace weft::plan {

// What a training job is, before it has GPUs.
struct TrainingSpec {
  workload::ModelSpec model;
  workload::TrainingPlan plan;
  workload::GpuSpec gpu;
};

// Reads `model`, `gpu` and the keys of the plan (workload::read_plan). `gpus` is the job's count
// where it is written. Errors go to the reader's list; nothing is returned when there was one.
std::optional<TrainingSpec> read_training(Reader& job, const model::Fabric& fabric,
                                          std::optional<std::uint64_t> gpus);

// Times every collective whose group lies inside one host for all ranks, and moves it from the
// unit's comms into its `inner` seconds: it shares no link with another group, so that a closed
// form is exact where the NVLinks carry nothing else at the time (the ring of a data-parallel group
// takes at most the share of a NIC of them). What runs beside compute slows it by the GPU's
// `cost.interference` seconds per second. Returns the dimensions that were folded.
// In:   `ranks`, the GPU of each rank.
std::vector<model::Dimension> fold_inside_hosts(model::StepCost& cost, const model::Fabric& fabric,
                                                std::span<const model::NodeId> ranks);

// What ranks send in one step within each dimension, by distance; bytes of folded communication
// only, since engines count the rest.
void add_folded_bytes(const model::StepCost& before, std::span<const model::Dimension> folded,
                      model::TrainingOutcome& out);

// The graph of one step. Without contention, where all replicas are alike (the same hosts apart
// and together), one of them stands for all.
Result<model::OpGraph> training_graph(const model::StepCost& cost, const model::Fabric& fabric,
                                      std::span<const model::NodeId> ranks,
                                      engine::fluid::NetworkOptions::Contention contention);

// Fills in what follows from the step time: tokens, FLOP/s, MFU, memory, names.
void add_rates(const TrainingSpec& spec, model::TrainingOutcome& out);

}  // namespace weft::plan
