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
  Stage stage{.name = "tree", .divisible = true};
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

}  // namespace

constinit const Algorithm algo::tree{"tree", {Op::all_reduce, Op::broadcast}, tree_stages};

}  // namespace weft::workload
