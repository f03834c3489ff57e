#include "adapt/lab/asn.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "adapt/lab/routes.hpp"

namespace weft::adapt::lab {
namespace {

constexpr std::uint32_t asn_first = 4'200'000'000;  // for private use: RFC 6996
constexpr std::uint32_t no_group = UINT32_MAX;

bool has_host(const LabPlan& plan, LabNodeId node) {
  return std::ranges::any_of(plan.nodes[node].ends,
                             [&](EndId end) { return plan.cables[end.cable].to_host; });
}

// Switches that might share an ASN: without hosts, of one role, in one pod.
std::vector<std::uint32_t> candidate_groups(const LabPlan& plan, const model::Fabric& fabric) {
  std::map<std::pair<model::RoleId, model::ScopeId>, std::uint32_t> numbers;
  std::vector<std::uint32_t> out(plan.switch_count, no_group);
  for (const LabNodeId node : plan.switches()) {
    if (has_host(plan, node)) continue;
    const model::NodeId id = plan.nodes[node].node;
    const std::pair key(fabric.role_id(id), fabric.enclosing(id, model::ScopeKind::pod));
    out[node.index()] =
        numbers.try_emplace(key, static_cast<std::uint32_t>(numbers.size())).first->second;
  }
  return out;
}

// Groups of which some shortest path from `source` visits two members.
void find_repeats(const LabPlan& plan, const std::vector<std::uint32_t>& group, LabNodeId source,
                  std::vector<char>& repeats) {
  const std::vector<int> distance = switch_distances(plan, std::span(&source, 1));
  std::vector<LabNodeId> order;
  for (const LabNodeId node : plan.switches())
    if (distance[node.index()] >= 0) order.push_back(node);
  std::ranges::stable_sort(order, {}, [&](LabNodeId node) { return distance[node.index()]; });
  // met[n][g]: whether a shortest path to n, n included, visits group g.
  std::vector<std::vector<char>> met(plan.switch_count, std::vector<char>(repeats.size(), 0));
  for (const LabNodeId node : order) {
    std::vector<char>& here = met[node.index()];
    for (const EndId end : plan.nodes[node].ends) {
      const LabNodeId before = plan.end(end.peer()).node;
      if (!plan.nodes[before].is_switch()) continue;
      if (distance[before.index()] != distance[node.index()] - 1) continue;
      for (std::size_t g = 0; g < here.size(); ++g)
        here[g] = static_cast<char>(here[g] | met[before.index()][g]);
    }
    const std::uint32_t own = group[node.index()];
    if (own == no_group) continue;
    if (here[own] != 0) repeats[own] = 1;
    here[own] = 1;
  }
}

}  // namespace

void assign_asns(LabPlan& plan, const model::Fabric& fabric) {
  const std::vector<std::uint32_t> group = candidate_groups(plan, fabric);
  std::uint32_t group_count = 0;
  for (const std::uint32_t g : group)
    if (g != no_group) group_count = std::max(group_count, g + 1);
  std::vector<char> repeats(group_count, 0);
  for (const NicGroup& nics : nic_groups(plan))
    for (const LabNodeId source : nics.attached) find_repeats(plan, group, source, repeats);
  std::map<std::uint32_t, std::uint32_t> asn_of_group;
  std::uint32_t next = asn_first;
  for (const LabNodeId node : plan.switches()) {
    const std::uint32_t g = group[node.index()];
    if (g == no_group || repeats[g] != 0) {
      plan.nodes[node].asn = next++;
      continue;
    }
    const auto [it, fresh] = asn_of_group.try_emplace(g, next);
    if (fresh) ++next;
    plan.nodes[node].asn = it->second;
  }
}

}  // namespace weft::adapt::lab
