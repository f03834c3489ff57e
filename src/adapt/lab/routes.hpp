// All shortest paths of a lab, as next hops: what static routes are made of, and what BGP must
// find.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "adapt/lab/plan.hpp"

namespace weft::adapt::lab {

// What traffic must not use: drained switches, and drained cables between switches. What hangs on a
// drained switch alone still does.
struct Without {
  std::vector<LabNodeId> nodes;
  std::vector<LabCableId> cables;
  bool empty() const { return nodes.empty() && cables.empty(); }
};

// NICs that hang on the same switches share their next hops.
struct NicGroup {
  std::vector<LabNodeId> attached;  // switches, ascending
  std::vector<Ipv4> addresses;      // ascending
};

class Routes {
 public:
  // Cost: O(groups * cables). Deterministic.
  static Routes shortest(const LabPlan& plan, const Without& without = {});

  const std::vector<NicGroup>& groups() const { return groups_; }
  // The sending ends at switch `node` towards a group, in cable order: empty at switches on which
  // the group hangs, and where there is no path.
  std::span<const EndId> next_hops(LabNodeId node, std::size_t group) const {
    const std::size_t row = group * switches_ + node.index();
    return {hops_.data() + first_[row], hops_.data() + first_[row + 1]};
  }
  bool reaches(LabNodeId node, std::size_t group) const;
  // Only the next hops that packets between NICs can meet. The others need not exist: BGP has none
  // where an ASN would stand in the path twice.
  Routes met_by_traffic(const LabPlan& plan) const;

 private:
  std::size_t switches_ = 0;
  std::vector<NicGroup> groups_;
  std::vector<std::size_t> first_;  // by group, then switch
  std::vector<EndId> hops_;
};

// Groups of NICs by the switches they hang on, drained ones left out where others remain.
std::vector<NicGroup> nic_groups(const LabPlan& plan, const Without& without = {});

// Hops from the nearest of `sources` to every switch; -1 where there is no way.
std::vector<int> switch_distances(const LabPlan& plan, std::span<const LabNodeId> sources,
                                  const Without& without = {});

}  // namespace weft::adapt::lab
