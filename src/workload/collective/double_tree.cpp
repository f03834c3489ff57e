#include "workload/collective/double_tree.hpp"

#include <algorithm>
#include <bit>

#include "workload/collective/mesh.hpp"

namespace weft::workload {
namespace {

// Parent of a label from 1 to n in the in-order numbered binary tree: label l stands at height
// ctz(l), so odd labels are leaves. Parents beyond n are passed over, upwards; they come down to n
// at last because the largest power of two up to n is everybody's ancestor.
std::uint32_t parent_label(std::uint32_t label, std::uint32_t n) {
  if (label == std::bit_floor(n)) return 0;
  std::uint32_t at = label;
  do {
    const std::uint32_t height = at & (~at + 1);
    at = (at ^ height) | (height << 1);
  } while (at > n);
  return at;
}

// The ranks of a host in the order of the channel's chain.
std::vector<Rank> host_chain(const Job& job, std::uint32_t host, std::uint32_t channel) {
  std::vector<Rank> chain = order_in_host(job.layout, host, channel);
  std::ranges::rotate(chain, std::ranges::find(chain, job.layout.lane(host, channel).in));
  // A broadcast begins at its root, and goes to the rank beside the NIC next.
  if (job.op() == Op::broadcast && host == 0) {
    const auto root = std::ranges::find(chain, Rank{0});
    std::rotate(chain.begin(), root, root + 1);
  }
  return chain;
}

}  // namespace

std::vector<std::uint32_t> binary_tree(std::uint32_t nodes, std::uint32_t tree) {
  std::vector<std::uint32_t> parent(nodes);
  for (std::uint32_t i = 0; i < nodes; ++i) {
    const std::uint32_t up = parent_label((i + tree) % nodes + 1, nodes);
    parent[i] = up == 0 ? no_rank : (up - 1 + nodes - tree % nodes) % nodes;
  }
  return parent;
}

std::uint32_t depth_of(const std::vector<std::uint32_t>& parent, std::uint32_t node) {
  std::uint32_t steps = 0;
  for (std::uint32_t at = node; parent[at] != no_rank; at = parent[at]) ++steps;
  return steps;
}

std::uint32_t depth(const std::vector<std::uint32_t>& parent) {
  std::uint32_t deepest = 0;
  for (std::uint32_t i = 0; i < parent.size(); ++i)
    deepest = std::max(deepest, depth_of(parent, i));
  return deepest;
}

RankTree rank_tree(const Job& job, std::uint32_t channel, std::uint32_t tree) {
  const std::uint32_t hosts = job.layout.host_count();
  RankTree out{.parent = std::vector<Rank>(job.size(), no_rank)};
  for (std::uint32_t h = 0; h < hosts; ++h) {
    const std::vector<Rank> chain = host_chain(job, h, channel);
    for (std::size_t i = 1; i < chain.size(); ++i) out.parent[chain[i]] = chain[i - 1];
  }
  const std::uint32_t apart = job.op() == Op::broadcast ? 1 : 0;  // host 0 stands above the tree
  if (hosts == apart) return out;
  const std::vector<std::uint32_t> between = binary_tree(hosts - apart, tree);
  for (std::uint32_t i = 0; i < between.size(); ++i) {
    const std::uint32_t up = between[i] == no_rank ? 0 : between[i] + apart;
    if (between[i] != no_rank || apart == 1)
      out.parent[job.layout.lane(i + apart, channel).in] = job.layout.lane(up, channel).in;
  }
  out.host_depth = depth(between) + apart;
  return out;
}

std::uint32_t trees_of(const Job& job) { return job.layout.host_count() == 1 ? 1 : tree_count; }

}  // namespace weft::workload
