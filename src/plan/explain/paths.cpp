// Paths between two NICs: how long, how many, how many without a common cable.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "model/fabric/max_flow.hpp"
#include "plan/explain/parts.hpp"

namespace weft::plan {

using namespace model;
namespace {

constexpr std::array outward{ScopeKind::rack, ScopeKind::pod, ScopeKind::zone, ScopeKind::building,
                             ScopeKind::region};

// Shortest paths from one NIC to everything, through switches only.
class Reach {
 public:
  Reach(const Survey& survey, NodeId from)
      : hops_(survey.fabric.node_count(), unseen),
        count_(survey.fabric.node_count(), 0),
        latency_(survey.fabric.node_count()) {
    const Fabric& fabric = survey.fabric;
    hops_[from] = 0;
    count_[from] = 1;
    std::vector<NodeId> queue{from};
    for (std::size_t at = 0; at < queue.size(); ++at) {
      const NodeId node = queue[at];
      if (node != from && !fabric.is_switch(node)) continue;
      for (const LinkId link : fabric.out(node)) {
        const NodeId to = fabric.to(link);
        if (survey.rate[link] == Rate{} || (node == from && !fabric.is_switch(to))) continue;
        if (visit(node, to, fabric.latency(link))) queue.push_back(to);
      }
    }
  }
  bool reaches(NodeId node) const { return hops_[node] != unseen; }
  std::uint32_t hops(NodeId node) const { return reaches(node) ? hops_[node] : 0; }
  std::uint64_t count(NodeId node) const { return count_[node]; }
  Duration latency(NodeId node) const { return latency_[node]; }

 private:
  // True when `to` is seen for the first time.
  bool visit(NodeId node, NodeId to, Duration latency) {
    const bool is_new = hops_[to] == unseen;
    if (is_new) {
      hops_[to] = hops_[node] + 1;
      latency_[to] = duration_max;
    }
    if (hops_[to] != hops_[node] + 1) return is_new;
    count_[to] = count_[to] > UINT64_MAX - count_[node] ? UINT64_MAX : count_[to] + count_[node];
    if (latency_[node].ps <= INT64_MAX - latency.ps)
      latency_[to] = std::min(latency_[to], latency_[node] + latency);
    return is_new;
  }

  Column<NodeId, std::uint32_t> hops_;
  Column<NodeId, std::uint64_t> count_;
  Column<NodeId, Duration> latency_;
};

// Cables between switches as edges that one path may use, in either direction.
class CableGraph {
 public:
  explicit CableGraph(const Survey& survey)
      : survey_(survey), fabric_(survey.fabric), vertex_(fabric_.node_count(), unseen) {
    const Fabric& fabric = survey.fabric;
    for (const NodeId node : fabric.nodes())
      if (fabric.is_switch(node)) vertex_[node] = count_++;
    for (const LinkId link : fabric.links()) {
      if (link != forward(cable_of(link)) || !is_live(link)) continue;
      const std::uint32_t a = vertex_[fabric.from(link)], b = vertex_[fabric.to(link)];
      if (a != unseen && b != unseen) cables_.push_back({a, b});
    }
  }

  // Paths from `a` to `b`, which reach each other, without a common cable. With `own_cables`
  // unlimited, the NICs' own cables may be common. Nothing when that takes too long.
  std::optional<std::uint64_t> disjoint(NodeId a, NodeId b, MaxFlow::Amount own_cables) const {
    if (own_cables == 1 && (ports(a) == 1 || ports(b) == 1)) return 1;
    MaxFlow flow(count_ + 2);
    for (const auto& [from, to] : cables_) flow.add_edge(from, to, 1, 1);
    for (const LinkId link : fabric_.out(a))
      if (const auto v = vertex_[fabric_.to(link)]; v != unseen && is_live(link))
        flow.add_edge(count_, v, own_cables, 0);
    for (const LinkId link : fabric_.out(b))
      if (const auto v = vertex_[fabric_.to(link)]; v != unseen && is_live(link))
        flow.add_edge(v, count_ + 1, own_cables, 0);
    const auto paths = flow.run(count_, count_ + 1, flow_work_max);
    if (!paths) return std::nullopt;
    return static_cast<std::uint64_t>(*paths);
  }

 private:
  // A cable is one path in either direction, so both must live.
  bool is_live(LinkId link) const {
    return survey_.rate[link] > Rate{} && survey_.rate[reverse(link)] > Rate{};
  }
  std::ptrdiff_t ports(NodeId nic) const {
    return std::ranges::count_if(
        fabric_.out(nic), [&](LinkId l) { return fabric_.is_switch(fabric_.to(l)) && is_live(l); });
  }

  struct Cable {
    std::uint32_t from, to;
  };
  const Survey& survey_;
  const Fabric& fabric_;
  Column<NodeId, std::uint32_t> vertex_;
  std::uint32_t count_ = 0;
  std::vector<Cable> cables_;
};

bool share_switch(const Fabric& fabric, NodeId a, NodeId b) {
  return std::ranges::any_of(fabric.out(a), [&](LinkId x) {
    return fabric.is_switch(fabric.to(x)) && std::ranges::any_of(fabric.out(b), [&](LinkId y) {
             return fabric.to(x) == fabric.to(y);
           });
  });
}

// The smallest kind of scope from a rack upwards that holds both; the position in `outward`.
std::optional<std::size_t> smallest_common(const Fabric& fabric, NodeId a, NodeId b) {
  for (std::size_t i = 0; i < outward.size(); ++i) {
    const ScopeId scope = fabric.enclosing(a, outward[i]);
    if (scope.valid() && scope == fabric.enclosing(b, outward[i])) return i;
  }
  return {};
}

struct Pair {
  std::string what;
  NodeId to;
};
// Partners of the first NIC: the last one of its rail in the same rack, the same pod outside the
// rack, and so on outwards; then the farthest, where it is farther than these or on another rail.
std::vector<Pair> choose_partners(const Fabric& fabric, NodeId from, const Reach& reach) {
  std::array<NodeId, outward.size()> last{};
  NodeId farthest = from, elsewhere;
  for (const NodeId nic : fabric.nics()) {
    const bool own_host =
        nic == from || (fabric.host_of(nic).valid() && fabric.host_of(nic) == fabric.host_of(from));
    if (own_host) continue;
    if (!reach.reaches(nic)) {
      elsewhere = nic;
      continue;
    }
    if (reach.hops(nic) >= reach.hops(farthest)) farthest = nic;
    if (fabric.rail(nic) != fabric.rail(from)) continue;
    if (const auto kind = smallest_common(fabric, from, nic)) last[*kind] = nic;
  }
  std::vector<Pair> out;
  std::uint32_t hops_max = 0;
  for (std::size_t i = 0; i < outward.size(); ++i) {
    if (!last[i].valid()) continue;
    out.push_back({fmt::format("same {}", to_text(outward[i])), last[i]});
    hops_max = std::max(hops_max, reach.hops(last[i]));
  }
  if (farthest != from && reach.hops(farthest) > hops_max) out.push_back({"farthest", farthest});
  if (elsewhere.valid()) out.push_back({"out of reach", elsewhere});
  return out;
}

}  // namespace

void find_paths(const Survey& survey, FabricFacts& facts) {
  const Fabric& fabric = survey.fabric;
  if (fabric.nics().size() < 2) return;
  const NodeId from = fabric.nics().front();
  const Reach reach(survey, from);
  const CableGraph cables(survey);
  for (const auto& [what, to] : choose_partners(fabric, from, reach)) {
    FabricFacts::PathFacts out{.what = what,
                               .from = fabric.name(from),
                               .to = fabric.name(to),
                               .hops = reach.hops(to),
                               .shortest = reach.count(to),
                               .latency = reach.latency(to)};
    if (reach.reaches(to)) {
      const bool near = share_switch(fabric, from, to);
      const auto disjoint = cables.disjoint(from, to, 1);
      const auto inside = near ? 0 : cables.disjoint(from, to, MaxFlow::unlimited);
      if (!disjoint || !inside)
        facts.notes.push_back(fmt::format(
            "paths, {}: disjoint paths not counted, which would take more than {} steps", what,
            flow_work_max));
      out.disjoint = disjoint.value_or(0);
      out.disjoint_inside = inside.value_or(0);
    }
    facts.paths.push_back(std::move(out));
  }
}

}  // namespace weft::plan
