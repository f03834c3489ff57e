// In-network reduction: switches sum what comes up a tree and multicast the result down, so that a
// NIC sends and receives the data once. One tree per channel, over the hosts' NICs of that channel;
// inside a host every GPU hands the channel's part to the GPU beside the NIC.
#include <fmt/format.h>

#include <algorithm>

#include "workload/collective/algorithm.hpp"

namespace weft::workload {
namespace {

using model::NodeKind;

// The first switch behind a GPU's NIC; invalid where there is none.
NodeId leaf_switch(const Fabric& fabric, NodeId gpu) {
  const NodeId nic = fabric.nic_of(gpu);
  for (const model::LinkId link : fabric.out(nic.valid() ? nic : gpu))
    if (fabric.is_switch(fabric.to(link))) return fabric.to(link);
  return {};
}

// Shortest paths from one switch to all others, hosts left out. Channels begin at different
// neighbours, so that their trees use different spines where these are equal.
class SwitchSearch {
 public:
  SwitchSearch(const Fabric& fabric, NodeId root, std::uint32_t channel)
      : fabric_(fabric), parent_(fabric.node_count()) {
    parent_[root] = root;
    std::vector<NodeId> queue{root};
    for (std::size_t i = 0; i < queue.size(); ++i) visit(queue[i], channel, queue);
  }
  bool reached(NodeId node) const { return parent_[node].valid(); }
  NodeId parent(NodeId node) const { return parent_[node]; }
  std::uint32_t depth(NodeId node) const {
    std::uint32_t steps = 0;
    for (; parent_[node] != node; node = parent_[node]) ++steps;
    return steps;
  }

 private:
  void visit(NodeId node, std::uint32_t channel, std::vector<NodeId>& queue) {
    next_.clear();
    for (const model::LinkId link : fabric_.out(node))
      if (fabric_.is_switch(fabric_.to(link))) next_.push_back(fabric_.to(link));
    for (std::size_t i = 0; i < next_.size(); ++i) {
      const NodeId to = next_[(i + channel) % next_.size()];
      if (parent_[to].valid()) continue;
      parent_[to] = node;
      queue.push_back(to);
    }
  }

  const Fabric& fabric_;
  Column<NodeId, NodeId> parent_;
  std::vector<NodeId> next_;
};

// Between a node at some depth of the tree and the one above it.
void append_both(Chain& chain, NodeId node, NodeId above, double bytes, std::uint32_t depth) {
  append(chain, {node, above, bytes}, root_level - depth);
  append(chain, {above, node, bytes}, root_level + depth);
}

void append_members(const Job& job, std::uint32_t host, NodeId head, double bytes,
                    std::uint32_t depth, Chain& chain) {
  for (const Rank r : job.layout.members(host))
    if (job.node(r) != head) append_both(chain, job.node(r), head, bytes, depth);
}

// Every host with its head, and the union of the paths from all heads' switches to that of the
// first.
Status append_switch_tree(const Job& job, std::uint32_t channel, double bytes, Chain& chain) {
  const Fabric& fabric = job.fabric;
  const auto head = [&](std::uint32_t h) { return job.node(job.layout.lane(h, channel).in); };
  const NodeId root = leaf_switch(fabric, head(0));
  if (!root.valid())
    return cannot("sharp",
                  fmt::format("the NIC of {} is not attached to a switch", fabric.name(head(0))),
                  "use ring or tree");
  const SwitchSearch search(fabric, root, channel);
  Column<NodeId, char> in_tree(fabric.node_count(), 0);
  in_tree[root] = 1;
  for (std::uint32_t h = 0; h < job.layout.host_count(); ++h) {
    const NodeId leaf = leaf_switch(fabric, head(h));
    if (!leaf.valid() || !search.reached(leaf))
      return cannot("sharp",
                    fmt::format("no tree of switches connects {} and {}", fabric.name(head(0)),
                                fabric.name(head(h))),
                    "use ring or tree, which may cross NVLink between rails");
    std::uint32_t depth = search.depth(leaf);
    append_both(chain, head(h), leaf, bytes, depth + 1);
    append_members(job, h, head(h), bytes, depth + 2, chain);
    for (NodeId at = leaf; in_tree[at] == 0; at = search.parent(at)) {
      in_tree[at] = 1;
      append_both(chain, at, search.parent(at), bytes, depth--);
    }
  }
  return {};
}

Result<std::vector<Stage>> sharp_stages(const Job& job) {
  if (job.layout.host_count() == 1) return cannot("sharp", "they are on one host", "use nvls");
  Stage stage{.name = "sharp"};
  const double bytes = job.bytes() / job.channels;
  for (std::uint32_t c = 0; c < job.channels; ++c) {
    WEFT_TRY_STATUS(append_switch_tree(job, c, bytes, stage.chains.emplace_back()));
  }
  stage.latency_steps = 1;  // up the tree and down again: one crossing of the network
  stage.inner_steps = job.layout.members_max() > 1 ? 2 : 0;
  return std::vector{std::move(stage)};
}

}  // namespace

constinit const Algorithm algo::sharp{"sharp", {Op::all_reduce}, sharp_stages};

}  // namespace weft::workload
