#include "workload/collective/layout.hpp"

#include <algorithm>

#include "workload/collective/mesh.hpp"

namespace weft::workload {

using model::Fabric;
using model::NodeId;

Layout::Layout(const Fabric& fabric, std::span<const NodeId> ranks) {
  group_by_host(fabric, ranks);
  find_lanes(fabric, ranks);
  find_meshes(fabric, ranks);
}

void Layout::group_by_host(const Fabric& fabric, std::span<const NodeId> ranks) {
  constexpr std::uint32_t unseen = UINT32_MAX;
  std::vector<std::uint32_t> number_of(fabric.hosts().size(), unseen);
  std::vector<std::uint32_t> host_of_rank, size;
  host_of_rank.reserve(ranks.size());
  for (const NodeId gpu : ranks) {
    const NodeId domain = fabric.domain_of(gpu);
    std::uint32_t number = domain.valid() ? number_of[fabric.role_index(domain)] : unseen;
    if (number == unseen) {
      number = static_cast<std::uint32_t>(size.size());
      size.push_back(0);
      if (domain.valid()) number_of[fabric.role_index(domain)] = number;
    }
    host_of_rank.push_back(number);
    ++size[number];
  }
  first_.assign(1, 0);
  for (const std::uint32_t count : size) first_.push_back(first_.back() + count);
  members_max_ = *std::ranges::max_element(size);

  members_.resize(ranks.size());
  std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
  for (Rank r = 0; r < host_of_rank.size(); ++r) members_[next[host_of_rank[r]]++] = r;
  for (std::uint32_t h = 0; h < host_count(); ++h)
    std::sort(members_.begin() + first_[h], members_.begin() + first_[h + 1],
              [&](Rank a, Rank b) { return ranks[a] < ranks[b]; });
}

void Layout::find_lanes(const Fabric& fabric, std::span<const NodeId> ranks) {
  std::vector<NodeId> nics;  // of the lanes of one host
  lane_first_.assign(1, 0);
  for (std::uint32_t h = 0; h < host_count(); ++h) {
    nics.clear();
    for (const Rank r : members(h)) {
      const NodeId own = fabric.nic_of(ranks[r]);
      // Without a NIC the GPU is itself what stands on the network.
      const NodeId nic = own.valid() ? own : ranks[r];
      const auto at = std::ranges::find(nics, nic) - nics.begin();
      if (static_cast<std::size_t>(at) == nics.size()) {
        nics.push_back(nic);
        lanes_.push_back({r, r});
      } else if (Lane& lane = lanes_[lane_first_[h] + static_cast<std::size_t>(at)];
                 lane.out == lane.in) {
        lane.out = r;
      }
    }
    lane_first_.push_back(static_cast<std::uint32_t>(lanes_.size()));
    lane_count_max_ = std::max(lane_count_max_, static_cast<std::uint32_t>(nics.size()));
  }
}

void Layout::find_meshes(const Fabric& fabric, std::span<const NodeId> ranks) {
  std::vector<NodeId> gpus;
  for (std::uint32_t h = 0; h < host_count(); ++h) {
    gpus.clear();
    for (const Rank r : members(h)) gpus.push_back(ranks[r]);
    is_mesh_.push_back(gpus.size() > 2 && workload::is_mesh(fabric, gpus) ? 1 : 0);
  }
}

}  // namespace weft::workload
