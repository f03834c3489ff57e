#include "route/disjoint_paths.hpp"

#include <algorithm>
#include <unordered_map>

#include "base/check.hpp"
#include "base/hash.hpp"
#include "route/hash.hpp"

namespace weft::route {
namespace {

// The links of all shortest paths between two ends, and how many of the paths found cross each.
class PathFlow {
 public:
  PathFlow(const Fabric& fabric, NextHops& next_hops, NodeId src, NodeId dst, std::uint64_t seed);

  // Finds one path more where links of NICs carry `shared` at most, other links one.
  bool augment(std::uint32_t shared);
  // Takes one of the paths found.
  Path take_path();

 private:
  static constexpr std::uint32_t none = UINT32_MAX, source = 0;
  struct Node {
    NodeId id;
    std::vector<std::uint32_t> out = {}, in = {};  // arcs
  };
  struct Arc {
    std::uint32_t from, to;
    LinkId link;
    bool of_nic;
    std::uint32_t flow = 0;
  };

  std::uint32_t index_of(NodeId node) {
    const auto [it, fresh] = known_.try_emplace(node, static_cast<std::uint32_t>(nodes_.size()));
    if (fresh) nodes_.push_back({node});
    return it->second;
  }
  void add_arcs(std::uint32_t from, std::span<const LinkId> links);

  const Fabric& fabric_;
  std::vector<Node> nodes_;  // by distance from the source
  std::vector<Arc> arcs_;
  std::unordered_map<NodeId, std::uint32_t> known_;  // never iterated
  std::uint32_t target_ = none;
};

PathFlow::PathFlow(const Fabric& fabric, NextHops& next_hops, NodeId src, NodeId dst,
                   std::uint64_t seed)
    : fabric_(fabric) {
  const Goal goal = next_hops.goal(dst);
  index_of(src);
  for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].id == dst) continue;
    add_arcs(i, next_hops.next(nodes_[i].id, goal).links);
    // Each node begins elsewhere, so that pairs do not all take the first links.
    std::vector<std::uint32_t>& out = nodes_[i].out;
    if (!out.empty())
      std::ranges::rotate(out, out.begin() + static_cast<std::ptrdiff_t>(scale(
                                                 mix64(seed ^ nodes_[i].id.value), out.size())));
  }
  if (const auto found = known_.find(dst); found != known_.end()) target_ = found->second;
}

void PathFlow::add_arcs(std::uint32_t from, std::span<const LinkId> links) {
  for (const LinkId link : links) {
    const std::uint32_t to = index_of(fabric_.to(link));
    const auto arc = static_cast<std::uint32_t>(arcs_.size());
    const bool of_nic =
        !fabric_.is_switch(fabric_.from(link)) || !fabric_.is_switch(fabric_.to(link));
    arcs_.push_back({from, to, link, of_nic});
    nodes_[from].out.push_back(arc);
    nodes_[to].in.push_back(arc);
  }
}

// Breadth first over arcs with room, and back over arcs in use.
bool PathFlow::augment(std::uint32_t shared) {
  if (target_ == none) return false;
  std::vector<std::uint32_t> arc_to(nodes_.size(), none), queue{source};
  const auto reach = [&](std::uint32_t node, std::uint32_t arc) {
    if (node == source || arc_to[node] != none) return;
    arc_to[node] = arc;
    queue.push_back(node);
  };
  for (std::size_t i = 0; i < queue.size() && arc_to[target_] == none; ++i) {
    const Node& at = nodes_[queue[i]];
    for (const std::uint32_t arc : at.out)
      if (arcs_[arc].flow < (arcs_[arc].of_nic ? shared : 1)) reach(arcs_[arc].to, arc);
    for (const std::uint32_t arc : at.in)
      if (arcs_[arc].flow > 0) reach(arcs_[arc].from, arc);
  }
  if (arc_to[target_] == none) return false;
  for (std::uint32_t at = target_; at != source;) {
    Arc& arc = arcs_[arc_to[at]];
    const bool along = arc.to == at;
    WEFT_CHECK(along || arc.flow > 0);
    arc.flow += along ? 1 : -1u;
    at = along ? arc.from : arc.to;
  }
  return true;
}

Path PathFlow::take_path() {
  Path path;
  for (std::uint32_t at = source; at != target_;) {
    const std::vector<std::uint32_t>& out = nodes_[at].out;
    const auto used = std::ranges::find_if(out, [&](std::uint32_t a) { return arcs_[a].flow > 0; });
    WEFT_CHECK(used != out.end());  // what flows into a node flows out again
    Arc& arc = arcs_[*used];
    --arc.flow;
    path.push_back(arc.link);
    at = arc.to;
  }
  return path;
}

}  // namespace

std::vector<Path> find_disjoint_paths(const Fabric& fabric, NextHops& next_hops, NodeId src,
                                      NodeId dst, std::uint32_t count, std::uint64_t seed) {
  PathFlow flow(fabric, next_hops, src, dst, seed);
  std::uint32_t found = 0;
  for (std::uint32_t shared = 1; shared <= count && found < count; ++shared)
    while (found < count && flow.augment(shared)) ++found;
  std::vector<Path> paths;
  for (; found > 0; --found) {
    Path path = flow.take_path();
    // Over one switch the same path is found again and again.
    if (std::ranges::find(paths, path) == paths.end()) paths.push_back(std::move(path));
  }
  return paths;
}

}  // namespace weft::route
