// How the ranks of a group lie on hosts, and which GPUs stand next to which NIC.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/fabric/fabric.hpp"

namespace weft::workload {

using Rank = std::uint32_t;
inline constexpr Rank no_rank = UINT32_MAX;

// One NIC of a host as a group sees it: the first rank that sends through it, and the second where
// there is one (the first again where not). A ring comes in at one and goes out at the other.
struct Lane {
  Rank in, out;
};

// "Host" is an NVLink domain here: a rack of NVL72 counts as one.
// Hosts in order of their first rank, so rank 0 is on host 0. The members of a host are in order of
// their GPU, whatever their rank: the same place on two hosts is the same rail. GPUs that belong to
// no host count as a host of their own.
// Cost: O(ranks log(GPUs per host) + hosts of the fabric), and O(links) of GPUs in a mesh.
class Layout {
 public:
  Layout(const model::Fabric& fabric, std::span<const model::NodeId> ranks);

  std::uint32_t rank_count() const { return static_cast<std::uint32_t>(members_.size()); }
  std::uint32_t host_count() const { return static_cast<std::uint32_t>(first_.size() - 1); }
  std::span<const Rank> members(std::uint32_t host) const {
    return std::span(members_).subspan(first_[host], first_[host + 1] - first_[host]);
  }
  // The lane that a channel takes: the host's lanes in turn.
  Lane lane(std::uint32_t host, std::uint32_t channel) const {
    const std::uint32_t count = lane_first_[host + 1] - lane_first_[host];
    return lanes_[lane_first_[host] + channel % count];
  }
  std::uint32_t lane_count_max() const { return lane_count_max_; }
  std::uint32_t members_max() const { return members_max_; }
  // Whether the host's ranks are cabled one to each other, three at least: rings have to take turns
  // to use all of these cables.
  bool is_mesh(std::uint32_t host) const { return is_mesh_[host] != 0; }
  // Every host holds the same number of ranks.
  bool even() const { return members_max_ * host_count() == rank_count(); }

 private:
  void group_by_host(const model::Fabric& fabric, std::span<const model::NodeId> ranks);
  void find_lanes(const model::Fabric& fabric, std::span<const model::NodeId> ranks);
  void find_meshes(const model::Fabric& fabric, std::span<const model::NodeId> ranks);

  std::vector<Rank> members_;
  std::vector<std::uint32_t> first_;
  std::vector<Lane> lanes_;
  std::vector<std::uint32_t> lane_first_;
  std::vector<std::uint8_t> is_mesh_;  // by host
  std::uint32_t lane_count_max_ = 0, members_max_ = 0;
};

}  // namespace weft::workload
