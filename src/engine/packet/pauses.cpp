#include "engine/packet/pauses.hpp"

#include <algorithm>
#include <functional>
#include <tuple>

#include "base/check.hpp"

namespace weft::engine::packet {

void PauseForest::take(const std::vector<std::unique_ptr<Shard>>& shards) {
  batch_.clear();
  for (const auto& shard : shards) shard->take_pauses(batch_);
  // What one link does at one time is recorded by one shard: partitions change nothing here.
  std::ranges::stable_sort(batch_, {},
                           [](const PauseRecord& r) { return std::tuple(r.t, r.kind, r.link); });
  for (const PauseRecord& record : batch_) add(record);
}

// A link that stands above itself closes a circle: what would be below it again is its own.
std::uint32_t PauseForest::node_below(std::uint32_t parent, std::uint32_t link) {
  for (std::uint32_t above = parent; above != none; above = nodes_[above].parent) {
    if (nodes_[above].link != link) continue;
    nodes_[above].circle = true;
    return above;
  }
  const auto [at, is_new] =
      by_parent_and_link_.try_emplace({parent, link}, static_cast<std::uint32_t>(nodes_.size()));
  if (is_new) nodes_.push_back({.link = link, .parent = parent, .held = {}});
  return at->second;
}

void PauseForest::add(const PauseRecord& record) {
  LinkPauses& link = links_[record.link];
  switch (record.kind) {
    case PauseRecord::Kind::decided:
      return link.decided.push_back({record.other, record.passed_on});
    case PauseRecord::Kind::begun:
      return begin(record.link, record.t);
    case PauseRecord::Kind::held:
      return divide(link, record.t - record.length, record.t,
                    [&](Node& node, Ps length) { node.held[record.other] += length; });
    case PauseRecord::Kind::ended:
      return end(record.link, record.t);
  }
}

void PauseForest::begin(std::uint32_t id, Ps t) {
  LinkPauses& link = links_[id];
  WEFT_CHECK(!link.decided.empty());
  const Decision decision = link.decided.front();
  link.decided.pop_front();
  if (link.paused) return;  // in another class
  link.paused = true;
  link.present = decision;
  link.nodes.clear();
  links_[decision.fault].blocked.push_back(id);
  hang(id, t);
}

// Below its port at fault, wherever that is now, with all that it has paused itself. It ends: round
// a circle, node_below() gives the first link the place that it has.
void PauseForest::hang(std::uint32_t id, Ps t) {
  LinkPauses& link = links_[id];
  const LinkPauses& fault = links_[link.present.fault];
  const bool passed_on = (link.present.passed_on || fault.paused) && !fault.nodes.empty();
  const std::uint32_t above =
      passed_on ? fault.nodes.back().first : node_below(none, link.present.fault);
  const std::uint32_t node = node_below(above, id);
  if (!link.nodes.empty() && link.nodes.back().first == node) return;
  link.nodes.emplace_back(node, t);
  for (const std::uint32_t blocked : link.blocked) hang(blocked, t);
}

void PauseForest::end(std::uint32_t id, Ps t) {
  LinkPauses& link = links_[id];
  WEFT_CHECK(link.paused);
  divide(link, 0, t, [](Node& node, Ps length) { node.paused += length; });
  ++nodes_[link.nodes.back().first].pauses;
  link.nodes.erase(link.nodes.begin(), link.nodes.end() - 1);
  link.paused = false;
  std::erase(links_[link.present.fault].blocked, id);
}

// The part of a pause from `from` to `to` over the nodes below which it passed.
template <class Add>
void PauseForest::divide(const LinkPauses& link, Ps from, Ps to, Add add) {
  for (std::size_t i = 0; i < link.nodes.size(); ++i) {
    const Ps begin = std::max(from, link.nodes[i].second);
    const Ps end = i + 1 < link.nodes.size() ? link.nodes[i + 1].second : to;
    if (begin < end) add(nodes_[link.nodes[i].first], end - begin);
  }
}

std::vector<PauseTree> PauseForest::trees(const World& world) const {
  std::vector<std::vector<std::uint32_t>> children(nodes_.size());
  std::vector<Ps> total(nodes_.size());  // of a node and all below it
  std::vector<std::uint32_t> roots;
  for (std::size_t n = nodes_.size(); n-- > 0;) {
    total[n] += nodes_[n].paused;
    const std::uint32_t parent = nodes_[n].parent;
    (parent == none ? roots : children[parent]).push_back(static_cast<std::uint32_t>(n));
    if (parent != none) total[parent] += total[n];
  }
  const auto longest_first = [&](std::uint32_t n) {
    return std::tuple(never - total[n], nodes_[n].link);
  };
  std::ranges::sort(roots, {}, longest_first);
  for (auto& list : children) std::ranges::sort(list, {}, longest_first);
  std::vector<PauseTree> out;
  const std::function<void(std::uint32_t, std::uint32_t)> list = [&](std::uint32_t n,
                                                                     std::uint32_t depth) {
    const Node& node = nodes_[n];
    out.back().ports.push_back({.link = node.link,
                                .name = world.port_name(node.link),
                                .depth = depth,
                                .circle = node.circle,
                                .pauses = node.pauses,
                                .paused_ps = node.paused,
                                .held = {node.held.begin(), node.held.end()}});
    for (const std::uint32_t child : children[n])
      if (total[child] > 0) list(child, depth + 1);
  };
  for (const std::uint32_t root : roots) {
    if (total[root] == 0) continue;
    out.push_back({.paused_ps = total[root], .ports = {}});
    list(root, 0);
  }
  return out;
}

}  // namespace weft::engine::packet
