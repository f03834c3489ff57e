// The time of a step in closed form: every group at its links' full speed, nobody in the way. The
// engine's answer on a real fabric is never the subject here; see docs/training-model.md.
#pragma once

#include <array>
#include <cstdint>

#include "model/work/step_cost.hpp"

namespace weft::workload {

// What a GPU gets from its links, payload bytes per second and direction.
struct LinkSpeeds {
  double nvlink_bytes_per_s = 383e9;  // NVLink 4 ring
  double network_bytes_per_s = 48e9;  // one NIC of 400 Gbps per GPU, 96 %
  std::uint32_t gpus_per_host = 8;
  double nvlink_latency_s = 6.6e-6, nvlink_hop_s = 0.6e-6;  // of a call, and each hop of its ring
  double network_latency_s = 15e-6;                         // each host of a ring
};

struct StepEstimate {
  double step_s = 0;
  double compute_s = 0;  // of the busiest stage
  double bubble_s = 0;
  std::array<double, model::dimension_count> exposed_s{};  // interference included
  double optimizer_s = 0;
};

// Seconds of one call among the ranks of rank 0's group, ranks filling hosts in order. Rings: what
// crosses hosts is shared by the NICs of all members on a host.
double call_seconds(const model::StepCost& cost, const model::CommWork& work,
                    const LinkSpeeds& links);

// M times the slowest stage, one chunk of every other stage to fill and drain the pipeline
// ((PP - 1) / V of a micro-batch where stages are equal), the exposed part of all communication,
// and the optimizer. Data-parallel communication is exposed for its first (last) layer, and where
// it exceeds the compute of the first (last) micro-batches.
// Cost: O(chunks + ranks of a group).
StepEstimate estimate_step(model::StepCost cost, const LinkSpeeds& links);

}  // namespace weft::workload
