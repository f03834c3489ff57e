// The cheapest tree that leads from one site to all others.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace weft::plan::backbone {

struct Arc {
  std::uint32_t from = 0, to = 0;
  double cost = 0;
  std::uint32_t name = 0;  // what the answer calls it
};

// Names of the arcs, one into every site but the root; none where a site cannot be reached.
// Edmonds, J. Res. NBS 71B, 1967, by contraction of cycles. Cost: O(sites x arcs).
std::optional<std::vector<std::uint32_t>> cheapest_arborescence(std::uint32_t sites,
                                                                std::uint32_t root,
                                                                std::vector<Arc> arcs);

}  // namespace weft::plan::backbone
