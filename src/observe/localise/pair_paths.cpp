#include "observe/localise/pair_paths.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace weft::observe::localise {

using model::LinkId;
using model::NodeId;

namespace {
constexpr std::uint32_t unreached = UINT32_MAX;
}  // namespace

PairPaths::PairPaths(const model::Fabric& fabric, const model::State* believed)
    : fabric_(fabric),
      usable_(fabric.link_count(), true),
      distance_(fabric.node_count()),
      share_(fabric.node_count(), 0) {
  const model::LiveView view(fabric, believed == nullptr ? model::State{} : *believed);
  for (const LinkId link : fabric.links())
    usable_[link.index()] = fabric.on_wire(link) && view.usable(link);
}

std::vector<NodeId> PairPaths::ends_of(NodeId node) const {
  if (fabric_.kind(node) != model::NodeKind::host) return {node};
  const std::span<const NodeId> nics = fabric_.nics_of(node);
  return {nics.begin(), nics.end()};
}

void PairPaths::search(NodeId dst) {
  if (searched_ == dst) return;
  searched_ = dst;
  std::ranges::fill(distance_, unreached);
  std::vector<NodeId> queue = ends_of(dst);
  for (const NodeId end : queue) distance_[end.index()] = 0;
  for (std::size_t i = 0; i < queue.size(); ++i) {
    const NodeId at = queue[i];
    const std::uint32_t next = distance_[at.index()] + 1;
    if (next > 1 && !fabric_.is_switch(at)) continue;  // hosts do not forward
    for (const LinkId out : fabric_.out(at)) {
      const NodeId before = fabric_.to(out);
      if (!usable_[model::reverse(out).index()] || distance_[before.index()] != unreached) continue;
      distance_[before.index()] = next;
      queue.push_back(before);
    }
  }
}

// A link can be found twice, when NICs of a host start at different distances.
void PairPaths::merge() {
  std::ranges::sort(found_, {}, &LinkShare::link);
  std::size_t kept = 0;
  for (const LinkShare& next : found_) {
    if (kept > 0 && found_[kept - 1].link == next.link)
      found_[kept - 1].share += next.share;
    else
      found_[kept++] = next;
  }
  found_.resize(kept);
}

std::span<const LinkShare> PairPaths::find(NodeId src, NodeId dst) {
  search(dst);
  found_.clear();
  std::vector<NodeId> layer = ends_of(src);
  std::erase_if(layer, [&](NodeId node) { return distance_[node.index()] == unreached; });
  for (const NodeId node : layer) share_[node.index()] = 1.0 / static_cast<double>(layer.size());
  while (!layer.empty()) {
    std::vector<NodeId> next;
    for (const NodeId at : layer) {
      const double share = std::exchange(share_[at.index()], 0);
      if (distance_[at.index()] == 0) continue;
      const auto leads = [&](LinkId out) {
        return usable_[out.index()] &&
               distance_[fabric_.to(out).index()] + 1 == distance_[at.index()];
      };
      const auto ways = std::ranges::count_if(fabric_.out(at), leads);
      for (const LinkId out : fabric_.out(at)) {
        if (!leads(out)) continue;
        double& ahead = share_[fabric_.to(out).index()];
        if (ahead == 0) next.push_back(fabric_.to(out));
        ahead += share / static_cast<double>(ways);
        found_.push_back({out, share / static_cast<double>(ways)});
      }
    }
    layer = std::move(next);
  }
  merge();
  return found_;
}

}  // namespace weft::observe::localise
