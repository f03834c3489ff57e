// Flows over two queue pairs, where that helps.
#pragma once

#include <cstdint>
#include <vector>

#include "operate/te/decide.hpp"

namespace weft::operate::te {

// Divides flows that have a second QP (Flow::second) into two halves, until the worst link is
// within 1 % of what no division can be below, or another round makes it less than 1 % better: each
// round those of the links that carry most. `decision` is of `flows`; both change together, and
// halves go behind the other flows. Returns how many flows were divided. Flows on other links keep
// their paths unless `settings` let them move. Deterministic. Cost: eight times decide() at most.
std::uint32_t split_where_it_helps(const route::Zone& zone, route::Router& hashing,
                                   const model::State& state, std::vector<Flow>& flows,
                                   Decision& decision, const Settings& settings = {});

}  // namespace weft::operate::te
