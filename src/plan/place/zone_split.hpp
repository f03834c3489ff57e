// Which host of a job goes to which zone, so that the fewest bytes cross.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/rng.hpp"
#include "plan/place/job_graph.hpp"

namespace weft::plan::place {

struct ZoneSplit {
  std::vector<std::uint32_t> zone;  // by host place
  std::int64_t cost = 0;            // bytes of a step that cross zones
  // A lower bound of the cost of any split, 0 where nothing is known.
  std::int64_t bound = 0;
  // Of the axes' permutations, straight and snaking, with zones in the given, falling and rising
  // order of their free hosts: the cheapest.
  std::int64_t plain_cost = 0;
  std::string plain_name;  // "pp-dp", innermost first; "snake", "zones falling"
};

// Splits the job over zones of so many free hosts; what is free beyond the job stays free, where
// that is cheapest.
//   1. all plain orders;
//   2. guillotine trees: the zones are halved again and again, and the hosts with them, each time
//      by a prefix of a permuted and mirrored order or of boxes; the best trees are improved
//      node by node;
//   3. annealing by swaps of two hosts of different zones, from the best of those.
// It stops as soon as the cost is the bound. Same arguments, same split.
// Needs: the free hosts suffice. Cost: about 0.2 CPU s for 512 hosts; see docs/commands/place.md.
ZoneSplit split_zones(const JobShape& shape, const JobGraph& graph,
                      std::span<const std::uint32_t> free_hosts, const Rng& rng);

// What every split of the job over the zones costs at least. Exact case analysis in two dimensions,
// with the shares chosen best where more hosts are free than needed; Loomis and Whitney's
// inequality beyond; expert groups apart from the rest.
//   A ring over L > 1 zones crosses at least L times, a chain L - 1 times. So a zone of n hosts
//   pays for the rows it fills partly and the columns it touches, of which there must be enough for
//   n.
// Cost: O(zones hosts^2) with spare hosts, O(zones hosts) without.
std::int64_t split_bound(const JobShape& shape, std::span<const std::uint32_t> free_hosts);

}  // namespace weft::plan::place
