// The operation graph of one training step from a SimAI/AICB workload.
#pragma once

#include <cstdint>

#include "model/work/op_graph.hpp"
#include "workload/trace/simai_file.hpp"
#include "workload/trace/simai_grid.hpp"

namespace weft::workload {

// How the pipeline is modelled. `units`: each stage runs the file's layers, cut into GA * VPP
// units, and every unit waits for the message of the stage before it (backward: behind it), so that
// the bubble comes about. With equal units it is (PP - 1) units forward and backward, that of the
// interleaved schedule. `formula`: the file has no such units; the bubble is one operation of
// (PP - 1) / (VPP * GA) of the compute, and all bytes of a direction are one message.
enum class SimaiPipeline : std::uint8_t { none, units, formula };

struct SimaiStep {
  model::OpGraph graph;
  SimaiPipeline pipeline = SimaiPipeline::none;
  SimaiActor actor = SimaiActor::tensor_group;
  // Seconds of one rank.
  double forward_s = 0, input_gradient_s = 0, weight_gradient_s = 0, update_s = 0;
  double recompute_s = 0, bubble_s = 0;  // bubble_s: `formula` only
  // Of one rank, with the pipeline's messages.
  std::uint64_t compute_operations = 0, collectives = 0, messages = 0;
  // Of the file's collectives: those of size 0, of groups of one rank, in passes that the policy
  // does not run (layers, for the last).
  std::uint64_t empty = 0, alone = 0, skipped = 0;
  double alone_bytes = 0;
};

// `grid` fits `file`. Fails: Errc::infeasible where a checkpoint list leaves a layer without a
// checkpoint, or the graph would exceed 20 M operations; what OpGraph::finish reports.
// Cost: O(PP * layers + ranks).
Result<SimaiStep> build_simai_step(const SimaiFile& file, const SimaiGrid& grid);

}  // namespace weft::workload
