// Two binary trees over the same nodes, such that a node has children in at most one of them.
#pragma once

#include <cstdint>
#include <vector>

#include "workload/collective/algorithm.hpp"

namespace weft::workload {

inline constexpr std::uint32_t tree_count = 2;

// The parent of each of `nodes` nodes, `no_rank` at the root, in tree 0 or 1. Depth is at most
// log2(nodes), rounded down. Sending half of the data along each tree loads every node's port with
// at most the data once in each direction.
// From: Sanders, Speck, Traeff, "Two-tree algorithms for full bandwidth broadcast, reduction and
// scan", Parallel Computing 35 (2009). The second tree is the first with nodes shifted by one.
std::vector<std::uint32_t> binary_tree(std::uint32_t nodes, std::uint32_t tree);

// Edges from a node up to the root.
std::uint32_t depth_of(const std::vector<std::uint32_t>& parent, std::uint32_t node);
// From the deepest one.
std::uint32_t depth(const std::vector<std::uint32_t>& parent);

// A tree over all ranks for one channel: between hosts the binary tree, joining the ranks beside
// the channel's NIC; inside a host a chain that begins there. `parent` is by rank.
// Of a broadcast rank 0 is the root: the hosts other than its own form the binary tree, whose root
// hangs on rank 0's host.
struct RankTree {
  std::vector<Rank> parent;
  std::uint32_t host_depth = 0;  // edges between hosts from the deepest rank to the root
};
RankTree rank_tree(const Job& job, std::uint32_t channel, std::uint32_t tree);

// How many trees a channel has: over one host both would be the same chain.
std::uint32_t trees_of(const Job& job);

}  // namespace weft::workload
