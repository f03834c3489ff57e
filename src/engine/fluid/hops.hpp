// Paths as a solver wants them: every link once, in id order.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/hash.hpp"
#include "engine/fluid/arena.hpp"
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

// Few shares differ: each is stored once, and named by its place. That of 1 is 0.
class Shares {
 public:
  std::uint32_t place_of(double share) {
    std::uint32_t& recent = recent_[mix64(std::bit_cast<std::uint64_t>(share)) % recent_.size()];
    if (shares_[recent] != share) recent = find(share);
    return recent;
  }
  double operator[](std::uint32_t place) const { return shares_[place]; }

 private:
  std::uint32_t find(double share);

  std::vector<double> shares_{1};
  std::unordered_map<double, std::uint32_t> places_{{1, 0}};  // never iterated
  std::array<std::uint32_t, 64> recent_{};                    // by hash, what was asked for last
};

// Merged paths of millions of hops, end to end: 4 bytes a hop, and 4 where the share changes.
class PathStore {
 public:
  // Returns where it begins.
  std::uint32_t add(std::span<const Hop> path);
  void clear() { words_.clear(); }
  // Calls visit(Hop) for the hops of the path of so many that begins there.
  template <class Visit>
  void for_each_hop(std::uint32_t first, std::uint32_t count, Visit visit) const {
    double share = 1;
    for (const std::uint32_t* word = words_.data() + first; count > 0; ++word) {
      if ((*word & share_bit) != 0) {
        share = shares_[*word & ~share_bit];
      } else {
        visit(Hop{LinkId(*word), share});
        --count;
      }
    }
  }

 private:
  static constexpr std::uint32_t share_bit = 1u << 31;
  GrowingArray<std::uint32_t> words_;  // a link, or with share_bit the share of what follows
  Shares shares_;
};

}  // namespace weft::engine::fluid
