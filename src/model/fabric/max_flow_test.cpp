#include "model/fabric/max_flow.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "base/rng.hpp"

namespace weft::model {
namespace {

struct Edge {
  std::uint32_t a, b;
  std::int64_t forward, backward;
};

// The smallest cut over all ways to part the vertices (max-flow min-cut theorem).
std::int64_t smallest_cut(std::uint32_t vertices, const std::vector<Edge>& edges) {
  std::int64_t best = INT64_MAX;
  for (std::uint32_t side = 0; side < (1u << vertices); ++side) {
    if ((side & 1) == 0 || (side >> (vertices - 1) & 1) != 0) continue;  // 0 in, the last out
    std::int64_t cut = 0;
    for (const Edge& e : edges) {
      const bool a = (side >> e.a & 1) != 0, b = (side >> e.b & 1) != 0;
      if (a && !b) cut += e.forward;
      if (b && !a) cut += e.backward;
    }
    best = std::min(best, cut);
  }
  return best;
}

std::optional<std::int64_t> flow(std::uint32_t vertices, const std::vector<Edge>& edges,
                                 std::uint64_t work = 1'000'000) {
  MaxFlow graph(vertices);
  for (const Edge& e : edges) graph.add_edge(e.a, e.b, e.forward, e.backward);
  const auto first = graph.run(0, vertices - 1, work);
  CHECK(graph.run(0, vertices - 1, work) == first);
  return first;
}

TEST_CASE("the flow is the smallest cut of every small graph") {
  Rng rng(11);
  for (int round = 0; round < 2000; ++round) {
    const auto vertices = static_cast<std::uint32_t>(2 + rng.below(6));
    std::vector<Edge> edges;
    for (std::uint64_t i = rng.below(16); i-- > 0;)
      edges.push_back({static_cast<std::uint32_t>(rng.below(vertices)),
                       static_cast<std::uint32_t>(rng.below(vertices)),
                       static_cast<std::int64_t>(rng.below(5)),
                       static_cast<std::int64_t>(rng.below(3))});
    CHECK(flow(vertices, edges) == smallest_cut(vertices, edges));
  }
}

// 0 === 1 --- 3      Both ways to 3 share nothing.
//  \--- 2 ---/
TEST_CASE("unit edges count disjoint paths") {
  CHECK(flow(4, {{0, 1, 1, 1}, {0, 1, 1, 1}, {1, 3, 1, 1}, {0, 2, 1, 1}, {2, 3, 1, 1}}) == 2);
}

TEST_CASE("hard work is given up, huge capacities do not overflow") {
  CHECK(!flow(3, {{0, 1, 1, 0}, {1, 2, 1, 0}}, 1).has_value());
  CHECK(flow(2, {{0, 1, INT64_MAX, 0}, {0, 1, INT64_MAX, INT64_MAX}, {0, 1, INT64_MAX, 0}}) ==
        MaxFlow::unlimited);
}

}  // namespace
}  // namespace weft::model
