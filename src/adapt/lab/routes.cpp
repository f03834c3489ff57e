#include "adapt/lab/routes.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace weft::adapt::lab {
namespace {

// `without` as columns, for inner loops.
struct Closed {
  Column<LabNodeId, char> node;
  Column<LabCableId, char> cable;

  Closed(const LabPlan& plan, const Without& without)
      : node(plan.nodes.size(), 0), cable(plan.cables.size(), 0) {
    for (const LabNodeId id : without.nodes) node[id] = 1;
    for (const LabCableId id : without.cables) cable[id] = 1;
  }
};

std::vector<int> distances(const LabPlan& plan, std::span<const LabNodeId> sources,
                           const Closed& closed) {
  std::vector<int> out(plan.switch_count, -1);
  std::vector<LabNodeId> queue;
  for (const LabNodeId source : sources) {
    out[source.index()] = 0;
    queue.push_back(source);
  }
  for (std::size_t i = 0; i < queue.size(); ++i) {
    const LabNodeId at = queue[i];
    // A drained switch still serves what hangs on it; nothing passes through it.
    if (closed.node[at] != 0 && out[at.index()] > 0) continue;
    for (const EndId end : plan.nodes[at].ends) {
      const LabNodeId next = plan.end(end.peer()).node;
      if (closed.cable[end.cable] != 0 || !plan.nodes[next].is_switch()) continue;
      if (out[next.index()] >= 0) continue;
      out[next.index()] = out[at.index()] + 1;
      queue.push_back(next);
    }
  }
  return out;
}

}  // namespace

std::vector<int> switch_distances(const LabPlan& plan, std::span<const LabNodeId> sources,
                                  const Without& without) {
  return distances(plan, sources, Closed(plan, without));
}

std::vector<NicGroup> nic_groups(const LabPlan& plan, const Without& without) {
  const Closed closed(plan, without);
  std::map<model::NodeId, NicGroup> by_nic;
  for (const LabCable& cable : plan.cables) {
    if (!cable.to_host) continue;
    const std::size_t nic = plan.nodes[cable.ends[0].node].is_switch() ? 1 : 0;
    NicGroup& group = by_nic[cable.ends[nic].device];
    group.addresses = {cable.ends[nic].address};
    group.attached.push_back(cable.ends[1 - nic].node);
  }
  std::map<std::vector<LabNodeId>, std::vector<Ipv4>> merged;
  for (auto& [nic, group] : by_nic) {
    std::ranges::sort(group.attached);
    const auto twice = std::ranges::unique(group.attached);
    group.attached.erase(twice.begin(), twice.end());
    const auto open = [&](LabNodeId node) { return closed.node[node] == 0; };
    if (std::ranges::any_of(group.attached, open))
      std::erase_if(group.attached, [&](LabNodeId node) { return !open(node); });
    merged[group.attached].push_back(group.addresses.front());
  }
  std::vector<NicGroup> out;
  for (auto& [attached, addresses] : merged) {
    std::ranges::sort(addresses);
    out.push_back({attached, std::move(addresses)});
  }
  return out;
}

Routes Routes::shortest(const LabPlan& plan, const Without& without) {
  const Closed closed(plan, without);
  Routes out;
  out.switches_ = plan.switch_count;
  out.groups_ = nic_groups(plan, without);
  out.first_.push_back(0);
  for (const NicGroup& group : out.groups_) {
    const std::vector<int> distance = distances(plan, group.attached, closed);
    for (const LabNodeId node : plan.switches()) {
      const int here = distance[node.index()];
      for (const EndId end : plan.nodes[node].ends) {
        const LabNodeId next = plan.end(end.peer()).node;
        if (here <= 0 || closed.cable[end.cable] != 0 || !plan.nodes[next].is_switch()) continue;
        const int there = distance[next.index()];
        if (there == here - 1 && (closed.node[next] == 0 || there == 0)) out.hops_.push_back(end);
      }
      out.first_.push_back(out.hops_.size());
    }
  }
  return out;
}

bool Routes::reaches(LabNodeId node, std::size_t group) const {
  return !next_hops(node, group).empty() ||
         std::ranges::binary_search(groups_[group].attached, node);
}

Routes Routes::met_by_traffic(const LabPlan& plan) const {
  Routes out;
  out.switches_ = switches_;
  out.groups_ = groups_;
  out.first_.push_back(0);
  std::vector<LabNodeId> sources;
  for (const NicGroup& group : groups_)
    sources.insert(sources.end(), group.attached.begin(), group.attached.end());
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    std::vector<char> met(switches_, 0);
    std::vector<LabNodeId> queue = sources;
    for (const LabNodeId node : queue) met[node.index()] = 1;
    for (std::size_t i = 0; i < queue.size(); ++i)
      for (const EndId end : next_hops(queue[i], group)) {
        const LabNodeId next = plan.end(end.peer()).node;
        if (std::exchange(met[next.index()], 1) == 0) queue.push_back(next);
      }
    for (const LabNodeId node : plan.switches()) {
      const auto hops = next_hops(node, group);
      if (met[node.index()] != 0) out.hops_.insert(out.hops_.end(), hops.begin(), hops.end());
      out.first_.push_back(out.hops_.size());
    }
  }
  return out;
}

}  // namespace weft::adapt::lab
