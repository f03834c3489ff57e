// The capacity between the two halves of a fabric.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "model/explain_parts.hpp"
#include "model/max_flow.hpp"

namespace weft::model {
namespace {

using Role = Fabric::Role;

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
  std::ranges::stable_sort(out.nics, {}, [&](NodeId nic) { return position[fabric.scope(nic)]; });
  const std::size_t middle = out.nics.size() / 2;
  out.first = middle;
  const auto host = [&](std::size_t i) { return fabric.host_of(out.nics[i]); };
  while (out.first > 0 && out.first < out.nics.size() && host(out.first).valid() &&
         host(out.first) == host(out.first - 1))
    ++out.first;
  if (out.first == out.nics.size()) out.first = middle;  // one host: cut through it
  return out;
}

// Numbers switches so that those of one role, scope, rail and plane share a number, unless a cable
// joins two of them.
class Pools {
 public:
  explicit Pools(const Fabric& fabric) : pool_(fabric.node_count(), unseen) {
    using Key = std::tuple<RoleId, ScopeId, std::int16_t, std::int16_t>;
    std::map<Key, std::uint32_t> known;
    for (const Role& role : fabric.roles()) {
      if (role.kind != NodeKind::fabric_switch) continue;
      for (const NodeId node : role.nodes) {
        const Key key{fabric.role_id(node), fabric.scope(node), fabric.rail(node),
                      fabric.plane(node)};
        pool_[node] = known.try_emplace(key, static_cast<std::uint32_t>(known.size())).first->second;
      }
    }
    split(fabric, known.size());
  }
  std::uint32_t operator[](NodeId node) const { return pool_[node]; }
  std::size_t size() const { return size_; }
  bool any_shared() const { return any_shared_; }

 private:
  void split(const Fabric& fabric, std::size_t count) {
    std::vector<std::uint8_t> meshed(count, 0);
    std::vector<std::uint32_t> members(count, 0);
    for (const NodeId node : fabric.nodes()) {
      if (pool_[node] == unseen) continue;
      ++members[pool_[node]];
      for (const LinkId link : fabric.out(node))
        if (pool_[fabric.to(link)] == pool_[node]) meshed[pool_[node]] = 1;
    }
    size_ = count;
    for (std::size_t i = 0; i < count; ++i)
      any_shared_ = any_shared_ || (meshed[i] == 0 && members[i] > 1);
    for (const NodeId node : fabric.nodes())
      if (pool_[node] != unseen && meshed[pool_[node]] != 0)
        pool_[node] = static_cast<std::uint32_t>(size_++);
  }

  Column<NodeId, std::uint32_t> pool_;
  std::size_t size_ = 0;
  bool any_shared_ = false;
};

// Sums the rates between two vertices, so that parallel cables are one edge.
class PooledGraph {
 public:
  void add(std::uint32_t from, std::uint32_t to, Rate rate) {
    const Ends ends{from, to};
    if (last_ == rates_.end() || last_->first != ends) last_ = rates_.try_emplace(ends).first;
    last_->second = plus(last_->second, rate);
  }
  MaxFlow flow(std::size_t vertices) const {
    MaxFlow out(vertices);
    for (const auto& [ends, rate] : rates_) out.add_edge(ends.first, ends.second, rate.bps, 0);
    return out;
  }

 private:
  using Ends = std::pair<std::uint32_t, std::uint32_t>;
  std::map<Ends, Rate> rates_;
  std::map<Ends, Rate>::iterator last_ = rates_.end();  // links come bundled
};

// Edges from the source through the NICs of the first half, and from those of the second half to
// the sink. Returns what the smaller half can send.
Rate join_halves(const Fabric& fabric, const Pools& pools, PooledGraph& graph) {
  const Halves halves = halves_of(fabric);
  const auto source = static_cast<std::uint32_t>(pools.size()), sink = source + 1;
  Rate first, second;
  for (std::size_t i = 0; i < halves.nics.size(); ++i) {
    for (const LinkId link : fabric.out(halves.nics[i])) {
      const std::uint32_t pool = pools[fabric.to(link)];
      if (pool == unseen) continue;
      if (i < halves.first) {
        first = plus(first, fabric.rate(link));
        graph.add(source, pool, fabric.rate(link));
      } else {
        second = plus(second, fabric.rate(link));
        graph.add(pool, sink, fabric.rate(reverse(link)));
      }
    }
  }
  return std::min(first, second);
}

bool joins_switches(const Fabric& fabric, const Fabric::Tier& tier) {
  return fabric.role(tier.from).kind == NodeKind::fabric_switch &&
         fabric.role(tier.to).kind == NodeKind::fabric_switch;
}

}  // namespace

void find_bisection(const Fabric& fabric, FabricFacts& facts) {
  if (fabric.nics().size() < 2) {
    facts.notes.emplace_back("bisection: left out, there are fewer than two NICs");
    return;
  }
  const Pools pools(fabric);
  PooledGraph graph;
  const Rate nics = join_halves(fabric, pools, graph);
  for (const Fabric::Tier& tier : fabric.tiers()) {
    if (!joins_switches(fabric, tier)) continue;
    for (const LinkId link : tier.links)
      graph.add(pools[fabric.from(link)], pools[fabric.to(link)], fabric.rate(link));
  }
  const auto source = static_cast<std::uint32_t>(pools.size());
  const auto flow = graph.flow(pools.size() + 2).run(source, source + 1, flow_work_max);
  if (flow) {
    facts.bisection = {Rate{*flow}, nics, pools.any_shared()};
  } else {
    facts.notes.push_back(fmt::format(
        "bisection: left out, the maximum flow takes more than {} steps", flow_work_max));
  }
}

}  // namespace weft::model
