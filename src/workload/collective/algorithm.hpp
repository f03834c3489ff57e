// What an algorithm is: one object of this type in a file of its own, and one line in the registry.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "workload/collective/layout.hpp"
#include "workload/collective/traffic.hpp"

namespace weft::workload {

// A request that has been checked, with what every algorithm asks for first.
struct Job {
  const Fabric& fabric;
  const Request& request;
  Layout layout;
  std::uint32_t channels;  // never 0

  std::uint32_t size() const { return layout.rank_count(); }
  Op op() const { return request.op; }
  double bytes() const { return request.bytes; }
  double share() const { return request.bytes / size(); }  // one rank's n-th part
  NodeId node(Rank rank) const { return request.ranks[rank]; }
};

class OpSet {
 public:
  constexpr OpSet(std::initializer_list<Op> ops) {
    for (const Op op : ops) bits_ |= 1u << static_cast<unsigned>(op);
  }
  constexpr bool has(Op op) const { return (bits_ >> static_cast<unsigned>(op) & 1u) != 0; }

 private:
  unsigned bits_ = 0;
};

struct Algorithm {
  std::string_view name;
  OpSet ops;
  // Fails: Errc::infeasible with the reason, for this layout.
  Result<std::vector<Stage>> (*build)(const Job& job);
};

namespace algo {
extern const Algorithm direct, flat, halving_doubling, hierarchical, nvls, nvls_tree, pairwise, pat,
    recursive_doubling, ring, sharp, tree;
}

// The registry, in order of name.
std::span<const Algorithm* const> algorithms();
// Fails: Errc::unknown with the nearest name; Errc::infeasible when it does not do `op`.
Result<const Algorithm*> find_algorithm(std::string_view name, Op op);
// Checks what needs no algorithm: ranks, bytes, channels, window, matrix.
Result<Job> make_job(const Fabric& fabric, const Request& request);
// The request's algorithm, with "auto" resolved.
Result<const Algorithm*> choose_algorithm(const Job& job);

// Chain::levels of a tree: an edge up from a node at depth d has level root_level - d, the one down
// to it root_level + d.
inline constexpr std::uint32_t root_level = 1u << 30;
inline void append(Chain& chain, const Edge& edge, std::uint32_t level) {
  chain.edges.push_back(edge);
  chain.levels.push_back(level);
}

// One step of latency: of the network when one of the stage's flows or exchanges crosses it.
void set_flow_latency(const Job& job, Stage& stage);

// An Errc::infeasible for "ALGORITHM cannot serve these ranks: WHY".
[[nodiscard]] std::unexpected<Error> cannot(std::string_view algorithm, std::string_view why,
                                            std::string hint);

}  // namespace weft::workload
