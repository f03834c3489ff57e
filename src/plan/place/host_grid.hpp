// From the cost of a training step to the grid of hosts that rank order works on.
#pragma once

#include <optional>
#include <vector>

#include "model/work/step_cost.hpp"
#include "plan/place/job_graph.hpp"

namespace weft::plan::place {

struct HostGrid {
  JobShape shape;
  // Host k has the ranks k G to k G + G - 1: its place in the grid.
  std::vector<std::uint32_t> place_of_node;
};

// Hosts of `gpus_per_host` ranks each, which follow one another. Bytes are those that rings, chains
// and exchanges move between neighbouring hosts in one step, means over the pipeline's stages.
// Nothing where the ranks of a host are no box of the grid (TP 6 on hosts of 8), or do not fill it.
std::optional<HostGrid> host_grid(const model::StepCost& cost, std::uint32_t gpus_per_host);

}  // namespace weft::plan::place
