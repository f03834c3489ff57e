// The capacity between the two halves of a fabric.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "model/fabric/max_flow.hpp"
#include "plan/explain/parts.hpp"

namespace weft::plan {

using namespace model;
namespace {

// Position of each scope when every scope comes before what is inside it, children in id order.
Column<ScopeId, std::uint32_t> scope_order(const Fabric& fabric) {
  const auto& scopes = fabric.scopes();
  Column<ScopeId, std::uint32_t> size(scopes.size(), 1), position(scopes.size(), 0);
  for (std::size_t i = scopes.size(); i-- > 0;)
    if (const ScopeId parent = scopes[ScopeId(i)].parent; parent.valid())
      size[parent] += size[ScopeId(i)];
  Column<ScopeId, std::uint32_t> free(scopes.size(), 0);  // next position among the children
  std::uint32_t free_root = 0;
  for (const ScopeId scope : ids<ScopeId>(scopes.size())) {
    const ScopeId parent = scopes[scope].parent;
    std::uint32_t& next = parent.valid() ? free[parent] : free_root;
    position[scope] = next;
    next += size[scope];
    free[scope] = position[scope] + 1;
  }
  return position;
}

// NICs in scope order; the first half is as long as whole hosts allow.
struct Halves {
  std::vector<NodeId> nics;
  std::size_t first = 0;  // in the first half
};
Halves halves_of(const Fabric& fabric) {
  Halves out{{fabric.nics().begin(), fabric.nics().end()}, 0};
  const auto position = scope_order(fabric);
  std::ranges::sort(out.nics, {},
                    [&](NodeId nic) { return std::pair(position[fabric.scope(nic)], nic); });
  const std::size_t middle = out.nics.size() / 2;
  out.first = middle;
  const auto host = [&](std::size_t i) { return fabric.host_of(out.nics[i]); };
  while (out.first > 0 && out.first < out.nics.size() && host(out.first).valid() &&
         host(out.first) == host(out.first - 1))
    ++out.first;
  if (out.first == out.nics.size()) out.first = middle;  // one host: cut through it
  return out;
}

constexpr std::uint32_t first_half = unseen - 1, second_half = unseen - 2;

// Capacity of a switch to each neighbour, sorted: switches by node, the NICs of a half as one.
using Neighbours = std::vector<std::pair<std::uint32_t, std::int64_t>>;

Neighbours neighbours_of(const Survey& survey, NodeId node,
                         const Column<NodeId, std::uint32_t>& half) {
  const Fabric& fabric = survey.fabric;
  Neighbours all;
  for (const LinkId link : fabric.out(node)) {
    const NodeId to = fabric.to(link);
    const std::uint32_t vertex = fabric.is_switch(to) ? to.value : half[to];
    if (vertex != unseen && survey.rate[link] > Rate{})
      all.emplace_back(vertex, survey.rate[link].bps);
  }
  std::ranges::sort(all);
  Neighbours merged;
  for (const auto& [vertex, bps] : all) {
    if (merged.empty() || merged.back().first != vertex) {
      merged.emplace_back(vertex, bps);
    } else {
      merged.back().second = plus({merged.back().second}, {bps}).bps;
    }
  }
  return merged;
}

// The switches with twins merged: switches with equal capacities to the same neighbours. Some
// maximum flow treats twins alike, so their sum carries just as much; and neighbours are never
// twins, as no switch is its own neighbour. In a Clos this leaves a few vertices a pod.
class MergedGraph {
 public:
  MergedGraph(const Survey& survey, const Column<NodeId, std::uint32_t>& half)
      : vertex_(survey.fabric.node_count(), unseen) {
    const Fabric& fabric = survey.fabric;
    std::map<Neighbours, std::uint32_t> known;
    for (const NodeId node : fabric.nodes()) {
      if (!fabric.is_switch(node)) continue;
      const auto [it, is_new] = known.try_emplace(neighbours_of(survey, node, half),
                                                  static_cast<std::uint32_t>(known.size()));
      vertex_[node] = it->second;
      if (is_new) members_.push_back(0);
      ++members_[it->second];
    }
    for (const auto& [neighbours, vertex] : known) add_edges(neighbours, vertex);
  }

  std::optional<MaxFlow::Amount> flow() const {
    const auto source = static_cast<std::uint32_t>(members_.size());
    MaxFlow graph(members_.size() + 2);
    for (const auto& [ends, rate] : rates_) graph.add_edge(ends.first, ends.second, rate.bps, 0);
    return graph.run(source, source + 1, flow_work_max);
  }

 private:
  void add_edges(const Neighbours& neighbours, std::uint32_t vertex) {
    const auto source = static_cast<std::uint32_t>(members_.size());
    for (const auto& [neighbour, bps] : neighbours) {
      // A half only sends, the other one only receives.
      const std::uint32_t to = neighbour == first_half || neighbour == second_half
                                   ? source + (neighbour == second_half ? 1 : 0)
                                   : vertex_[NodeId(neighbour)];
      const std::pair ends = to == source ? std::pair(to, vertex) : std::pair(vertex, to);
      Rate& sum = rates_[ends];
      for (std::uint32_t i = 0; i < members_[vertex]; ++i) sum = plus(sum, {bps});
    }
  }

  Column<NodeId, std::uint32_t> vertex_;
  std::vector<std::uint32_t> members_;  // twins behind each vertex
  std::map<std::pair<std::uint32_t, std::uint32_t>, Rate> rates_;
};

}  // namespace

void find_bisection(const Survey& survey, FabricFacts& facts) {
  const Fabric& fabric = survey.fabric;
  if (fabric.nics().size() < 2) {
    facts.notes.emplace_back("bisection: skipped, there are fewer than two NICs");
    return;
  }
  const Halves halves = halves_of(fabric);
  Column<NodeId, std::uint32_t> half(fabric.node_count(), unseen);
  Rate first, second;
  for (std::size_t i = 0; i < halves.nics.size(); ++i) {
    half[halves.nics[i]] = i < halves.first ? first_half : second_half;
    Rate& side = i < halves.first ? first : second;
    for (const LinkId link : fabric.out(halves.nics[i]))
      if (fabric.is_switch(fabric.to(link))) side = plus(side, survey.rate[link]);
  }
  if (const auto flow = MergedGraph(survey, half).flow()) {
    const std::size_t all = halves.nics.size();
    facts.bisection = {.capacity = Rate{*flow},
                       .nics = std::min(first, second),
                       .sending = first <= second ? halves.first : all - halves.first,
                       .all = all};
  } else {
    facts.notes.push_back(fmt::format(
        "bisection: skipped, the maximum flow takes more than {} steps", flow_work_max));
  }
}

}  // namespace weft::plan
