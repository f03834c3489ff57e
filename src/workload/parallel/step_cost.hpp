// From a model, a plan and a GPU to what one step costs each role.
#pragma once

#include "base/result.hpp"
#include "model/work/step_cost.hpp"
#include "workload/parallel/gpu.hpp"
#include "workload/parallel/model_spec.hpp"
#include "workload/parallel/plan.hpp"

namespace weft::workload {

// Compute seconds and communication of every chunk, as docs/training-model.md lists them. Bytes are
// those of one call, per rank, as nccl-tests count them.
// With PP 1 and VP 1 each layer is a chunk of its own, so that data-parallel communication overlaps
// layer by layer; StepCost::virtual_stages then differs from the plan's. Elsewhere a chunk's gather
// and reduce have overlap (layers - 1) / layers: all but one layer's part runs beside the chunk.
// Fails: what check_plan finds. Cost: O(layers).
Result<model::StepCost> step_cost(const TransformerSpec& spec, const TrainingPlan& plan,
                                  const GpuSpec& gpu);
// Tables spread over all DP ranks (all_to_all both ways), dense layers all-reduced; one chunk.
Result<model::StepCost> step_cost(const RecommendationSpec& spec, const TrainingPlan& plan,
                                  const GpuSpec& gpu);
Result<model::StepCost> step_cost(const ModelSpec& model, const TrainingPlan& plan,
                                  const GpuSpec& gpu);

}  // namespace weft::workload
