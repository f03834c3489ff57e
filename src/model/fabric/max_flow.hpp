// Maximum flow between two vertices of a capacitated graph.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace weft::model {

// From: Dinic, "Algorithm for solution of a problem of maximum flow in a network with power
// estimation", Soviet Math. Doklady 11 (1970): level graphs and blocking flows.
class MaxFlow {
 public:
  using Vertex = std::uint32_t;
  using Amount = std::int64_t;
  static constexpr Amount unlimited = INT64_MAX / 4;

  explicit MaxFlow(std::size_t vertices) : vertices_(vertices) {}

  // An edge that carries up to `forward` from `a` to `b` and up to `backward` the other way.
  void add_edge(Vertex a, Vertex b, Amount forward, Amount backward);

  // The flow from `source` to `sink` (at most `unlimited`), or nothing when it takes more than
  // `work_max` arc visits.
  // Starts from the capacities given, however often it is called.
  // Cost: O(edges) per phase where paths are short; O(vertices^2 * edges) at worst.
  std::optional<Amount> run(Vertex source, Vertex sink, std::uint64_t work_max);

 private:
  struct Edge {
    Vertex a, b;
    Amount forward, backward;
  };
  static constexpr std::uint32_t unseen = UINT32_MAX;

  void index_arcs();
  bool find_levels(Vertex source, Vertex sink);
  Amount block(Vertex source, Vertex sink);
  Amount augment();

  std::size_t vertices_;
  std::vector<Edge> edges_;
  // Arc 2e runs along edge e, arc 2e + 1 against it.
  std::vector<Amount> left_;
  std::vector<std::uint32_t> first_;  // by vertex, into arcs_
  std::vector<std::uint32_t> arcs_;
  std::vector<std::uint32_t> level_, next_;
  std::vector<std::uint32_t> path_;  // arcs from the source
  std::vector<Vertex> queue_;
  std::uint64_t work_left_ = 0;
};

}  // namespace weft::model
