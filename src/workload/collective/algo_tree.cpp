// Double binary tree between hosts, a chain inside each: half of the data goes up and down each of
// the two trees of a channel, pipelined.
#include <algorithm>

#include "workload/collective/double_tree.hpp"

namespace weft::workload {
namespace {

Result<std::vector<Stage>> tree_stages(const Job& job) {
  const bool both_ways = job.op() == Op::all_reduce;
  const std::uint32_t trees = trees_of(job);
  const double bytes = job.bytes() / (job.channels * trees);
  Stage stage{.name = "tree"};
  std::uint32_t host_depth = 0;
  for (std::uint32_t i = 0; i < job.channels * trees; ++i) {
    const RankTree tree = rank_tree(job, i / trees, i % trees);
    Chain& chain = stage.chains.emplace_back();
    chain.edges.reserve(std::size_t{both_ways ? 2U : 1U} * job.size());
    for (Rank r = 0; r < job.size(); ++r) {
      if (tree.parent[r] == no_rank) continue;
      const NodeId node = job.node(r), parent = job.node(tree.parent[r]);
      const std::uint32_t d = depth_of(tree.parent, r);
      if (both_ways) append(chain, {node, parent, bytes}, root_level - d);
      append(chain, {parent, node, bytes}, root_level + d);
    }
    host_depth = std::max(host_depth, tree.host_depth);
  }
  const std::uint32_t ways = both_ways ? 2 : 1;
  stage.latency_steps = ways * host_depth;
  stage.inner_steps = ways * (job.layout.members_max() - 1);
  return std::vector{std::move(stage)};
}

// The chunks of one tree, one after another: up from the leaves, then down from the root.
class TreeExpansion {
 public:
  TreeExpansion(std::vector<Rank> parent, double bytes, MessageWriter& out)
      : parent_(std::move(parent)),
        bytes_(bytes),
        out_(out),
        children_(parent_.size()),
        up_(parent_.size(), no_message),
        down_(parent_.size(), no_message) {
    for (Rank r = 0; r < parent_.size(); ++r)
      if (parent_[r] != no_rank) children_[parent_[r]].push_back(r);
    const auto root = std::ranges::find(parent_, no_rank) - parent_.begin();
    top_down_.push_back(static_cast<Rank>(root));
    for (std::size_t i = 0; i < top_down_.size(); ++i)
      for (const Rank child : children_[top_down_[i]]) top_down_.push_back(child);
  }

  void send_up(std::uint32_t block) {
    for (std::size_t i = top_down_.size() - 1; i > 0; --i) {
      const Rank r = top_down_[i];
      after_.assign(1, up_[r]);
      for (const Rank child : children_[r]) after_.push_back(up_[child]);
      up_[r] =
          out_.add({r, parent_[r], bytes_, Message::Action::reduce}, std::span(&block, 1), after_);
    }
  }
  void send_down(std::uint32_t block) {
    for (std::size_t i = 1; i < top_down_.size(); ++i) {
      const Rank r = top_down_[i], from = parent_[r];
      after_ = {down_[r], down_[from]};
      if (from == top_down_[0])
        for (const Rank child : children_[from]) after_.push_back(up_[child]);
      down_[r] = out_.add({from, r, bytes_, Message::Action::copy}, std::span(&block, 1), after_);
    }
  }

 private:
  std::vector<Rank> parent_;
  double bytes_;
  MessageWriter& out_;
  std::vector<std::vector<Rank>> children_;
  std::vector<MessageIndex> up_, down_;  // by child: its last message to and from the parent
  std::vector<Rank> top_down_;
  std::vector<MessageIndex> after_;
};

void tree_messages(const Job& job, MessageWriter& out) {
  const std::uint32_t trees = trees_of(job);
  const std::uint32_t blocks = job.channels * trees * job.chunks;
  out.set_blocks(blocks);
  for (std::uint32_t i = 0; i < job.channels * trees; ++i) {
    TreeExpansion tree(rank_tree(job, i / trees, i % trees).parent, job.bytes() / blocks, out);
    for (std::uint32_t k = 0; k < job.chunks; ++k) {
      if (job.op() == Op::all_reduce) tree.send_up(i * job.chunks + k);
      tree.send_down(i * job.chunks + k);
    }
  }
}

}  // namespace

constinit const Algorithm algo::tree{
    "tree", {Op::all_reduce, Op::broadcast}, tree_stages, tree_messages};

}  // namespace weft::workload
