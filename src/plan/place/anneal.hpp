// Swaps of two hosts of different parts, by simulated annealing.
#pragma once

#include <cstdint>
#include <vector>

#include "base/rng.hpp"
#include "plan/place/job_graph.hpp"

namespace weft::plan::place {

// Which part (a zone, a rack) every host of a graph is in. Places beyond the graph are hosts that
// stay spare.
struct Split {
  std::vector<std::uint32_t> part;
  std::int64_t cost = 0;  // bytes of the edges between parts
};

struct AnnealOptions {
  std::size_t parts = 0;
  std::size_t swaps = 0;     // to try
  double hot = 0, cold = 0;  // temperatures, in bytes
  std::int64_t bound = 0;    // no split is cheaper: stop there
};

// The best split that it comes across; sizes of parts stay as they are. `start` has its cost.
// Cost: O(swaps x edges of a host). Same arguments, same split.
Split anneal(const JobGraph& graph, Split start, const AnnealOptions& options, const Rng& rng);

}  // namespace weft::plan::place
