// Paths as a solver wants them: every link once, in id order.
#pragma once

#include <span>
#include <vector>

#include "route/router.hpp"

namespace weft::engine::fluid {

using route::Hop;
using route::LinkId;

// In id order, each link once, shares above 0.
bool is_merged(std::span<const Hop> hops);

class HopMerger {
 public:
  // Fills `out`: one hop a link, in id order, without those of share 0. Shares add up in the order
  // given. `out` and `hops` are different memory. Cost: O(hops + merged log merged).
  void merge(std::span<const Hop> hops, std::vector<Hop>& out);

 private:
  std::vector<double> share_;  // by link; zero between calls
};

}  // namespace weft::engine::fluid
