#include "plan/place/host_grid.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/test_approx.hpp"
#include "plan/place/rank_file.hpp"
#include "workload/collective/traffic.hpp"

namespace weft::plan::place {
namespace {

using model::Axis;
using model::CommWork;
using model::Dimension;
using model::StepCost;

StepCost cost_of(std::uint32_t tp, std::uint32_t cp, std::uint32_t pp, std::uint32_t dp,
                 std::uint32_t ep, bool moe_order) {
  StepCost out;
  out.tp = tp;
  out.cp = cp;
  out.pp = pp;
  out.dp = dp;
  out.ep = ep;
  if (moe_order) out.order = {Axis::tp, Axis::cp, Axis::dp, Axis::pp};
  out.virtual_stages = pp > 1 ? 2 : 1;
  out.microbatches = 3;
  out.activation_bytes = 1000;
  model::ChunkCost chunk;
  using enum model::CollectiveOp;
  const auto work = [](Dimension dimension, model::CollectiveOp op, double bytes,
                       CommWork::Members members = CommWork::Members::axis) {
    return CommWork{
        .dimension = dimension, .op = op, .bytes = bytes, .calls = 2, .members = members};
  };
  chunk.forward.comms = {work(Dimension::tp, all_gather, 8000),
                         work(Dimension::cp, all_gather, 4800),
                         work(Dimension::ep, all_to_all, 6400)};
  chunk.reduce = {work(Dimension::dp, reduce_scatter, 9600, CommWork::Members::expert_data),
                  work(Dimension::dp, all_reduce, 19200, CommWork::Members::replicas)};
  if (cp == 1 && ep == 1) chunk.gather = {work(Dimension::dp, all_gather, 3200)};
  out.chunks.assign(std::size_t{pp} * out.virtual_stages, chunk);
  return out;
}

// Bytes between every two hosts, rank by rank, from the groups themselves.
class ByRank {
 public:
  ByRank(const StepCost& cost, std::uint32_t gpus)
      : cost_(cost), grid_({cost.tp, cost.cp, cost.pp, cost.dp}, cost.order), gpus_(gpus) {
    const model::ChunkCost& chunk = cost.chunks[0];
    for (const CommWork& work : chunk.forward.comms) add(work, cost.microbatches);
    for (const CommWork& work : chunk.gather) add(work, 1);
    for (const CommWork& work : chunk.reduce) add(work, 1);
    for (auto& [pair, bytes] : bytes_) bytes *= cost.virtual_stages;
    add_pipeline();
  }
  std::map<std::pair<std::uint32_t, std::uint32_t>, double> bytes_;

 private:
  void add(std::uint32_t a, std::uint32_t b, double bytes) {
    a /= gpus_;
    b /= gpus_;
    if (a != b) bytes_[std::minmax(a, b)] += bytes;
  }
  void add(const CommWork& work, double times) {
    for (std::uint32_t rank = 0; rank < grid_.rank_count(); ++rank) {
      const std::vector<std::uint32_t> group = group_of(work, rank);
      const auto n = static_cast<std::uint32_t>(group.size());
      if (n < 2) continue;
      const auto at = static_cast<std::uint32_t>(std::ranges::find(group, rank) - group.begin());
      if (work.dimension == Dimension::ep) {
        for (const std::uint32_t other : group)
          if (other != rank) add(rank, other, work.calls * work.bytes / n * times);
      } else {
        add(rank, group[(at + 1) % n],
            work.calls * work.bytes * workload::busbw_factor(work.op, n) * times);
      }
    }
  }
  std::vector<std::uint32_t> group_of(const CommWork& work, std::uint32_t rank) const {
    if (work.members == CommWork::Members::expert_data)
      return grid_.expert_data_group(rank, cost_.ep);
    if (work.members == CommWork::Members::replicas) {
      std::vector<std::uint32_t> out;
      model::GridPoint at = grid_.point(rank);
      for (at[3] = 0; at[3] < cost_.dp; ++at[3])
        for (at[1] = 0; at[1] < cost_.cp; ++at[1]) out.push_back(grid_.rank(at));
      return out;
    }
    if (work.dimension == Dimension::ep) return grid_.expert_group(rank, cost_.ep);
    return grid_.group(rank, work.dimension == Dimension::tp   ? Axis::tp
                             : work.dimension == Dimension::cp ? Axis::cp
                                                               : Axis::dp);
  }
  // Forward and backward, to the next virtual stage.
  void add_pipeline() {
    if (cost_.pp == 1) return;
    for (std::uint32_t rank = 0; rank < grid_.rank_count(); ++rank) {
      model::GridPoint at = grid_.point(rank);
      const bool last = at[2] + 1 == cost_.pp;
      at[2] = last ? 0 : at[2] + 1;
      const double times = cost_.virtual_stages - (last ? 1 : 0);
      add(rank, grid_.rank(at), 2 * cost_.activation_bytes * cost_.microbatches * times);
    }
  }

  const StepCost& cost_;
  model::RankGrid grid_;
  std::uint32_t gpus_;
};

}  // namespace

TEST_CASE("bytes between hosts: those of the ranks, group by group") {
  const std::vector<std::pair<StepCost, std::uint32_t>> cases{
      {cost_of(8, 1, 4, 6, 1, false), 8},  {cost_of(4, 1, 4, 6, 1, false), 8},
      {cost_of(16, 1, 2, 3, 1, false), 8}, {cost_of(8, 4, 2, 3, 1, false), 8},
      {cost_of(2, 1, 3, 16, 1, true), 8},  {cost_of(4, 1, 2, 16, 16, true), 8},
      {cost_of(8, 1, 2, 8, 32, true), 8},  {cost_of(1, 1, 3, 32, 8, true), 8},
      {cost_of(4, 2, 2, 8, 16, true), 8},  {cost_of(1, 1, 4, 8, 1, false), 4}};
  for (const auto& [cost, gpus] : cases) {
    const auto grid = host_grid(cost, gpus);
    REQUIRE(grid.has_value());
    const ByRank expected(cost, gpus);
    const JobGraph graph(grid->shape);
    CAPTURE(cost.tp);
    CAPTURE(cost.cp);
    CAPTURE(cost.dp);
    CAPTURE(cost.ep);
    CHECK(grid->place_of_node.size() * gpus == cost.tp * cost.cp * cost.pp * cost.dp);
    std::size_t edges = 0;
    for (std::uint32_t a = 0; a < grid->place_of_node.size(); ++a) {
      std::map<std::uint32_t, std::int64_t> to;
      for (const auto& edge : graph.edges(grid->place_of_node[a])) to[edge.to] = edge.bytes;
      edges += to.size();
      for (std::uint32_t b = a + 1; b < grid->place_of_node.size(); ++b) {
        const auto found = expected.bytes_.find({a, b});
        const double bytes = found == expected.bytes_.end() ? 0 : found->second;
        CHECK(static_cast<double>(to[grid->place_of_node[b]]) == approx(bytes).epsilon(1e-3));
      }
    }
    CHECK(edges == 2 * expected.bytes_.size());
  }
}

TEST_CASE("ranks that are no block of a host have no grid") {
  CHECK(!host_grid(cost_of(6, 1, 2, 4, 1, false), 8).has_value());
  CHECK(!host_grid(cost_of(2, 1, 1, 2, 1, false), 8).has_value());
}

TEST_CASE("rank files read back to the same hosts") {
  const std::vector<std::string> hosts{"host7", "host0"};
  CHECK(rank_file("slurm", hosts, 2, 4) == "host7\nhost7\nhost0\nhost0\n");
  CHECK(rank_file("openmpi", hosts, 2, 4) ==
        "rank 0=host7 slot=0\nrank 1=host7 slot=1\nrank 2=host0 slot=0\nrank 3=host0 slot=1\n");
  CHECK(rank_file("pytorch", hosts, 2, 4) == "0 host7\n1 host0\n");
  CHECK(rank_file("slurm", hosts, 2, 3) == "host7\nhost7\nhost0\n");
  CHECK(rank_file("openmpi", hosts, 2, 3).ends_with("rank 2=host0 slot=0\n"));
}

}  // namespace weft::plan::place
