#include "workload/schedule/step_groups.hpp"

#include <algorithm>
#include <numeric>
#include <span>

#include "base/check.hpp"

namespace weft::workload {
namespace {

using model::Axis;
using model::Dimension;
using model::OpGraph;
using model::RankGrid;
using model::StepCost;

constexpr std::uint32_t none = UINT32_MAX;

// The small all-reduce over all ranks belongs to the synchronisation of gradients.
constexpr std::array<Dimension, group_kind_count> dimensions{
    Dimension::tp, Dimension::cp, Dimension::dp, Dimension::ep,
    Dimension::dp, Dimension::dp, Dimension::pp, Dimension::dp};

RankGrid grid_of(const StepCost& cost) {
  return RankGrid({cost.tp, cost.cp, cost.pp, cost.dp}, cost.order);
}

// Ranks of `stage`, tp first, then cp, then dp, as expert groups count them.
std::vector<std::uint32_t> stage_ranks(const RankGrid& grid, std::uint32_t stage) {
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t d = 0; d < grid.size(Axis::dp); ++d)
    for (std::uint32_t c = 0; c < grid.size(Axis::cp); ++c)
      for (std::uint32_t t = 0; t < grid.size(Axis::tp); ++t)
        ranks.push_back(grid.rank({t, c, stage, d}));
  return ranks;
}

// Rows of `size`, one behind the other: places that are `stride` apart.
std::vector<std::uint32_t> strided_rows(std::span<const std::uint32_t> ranks, std::size_t size,
                                        std::size_t stride) {
  WEFT_CHECK(size > 0 && stride > 0 && ranks.size() % (size * stride) == 0);
  std::vector<std::uint32_t> rows;
  rows.reserve(ranks.size());
  for (std::size_t block = 0; block < ranks.size(); block += size * stride)
    for (std::size_t first = block; first < block + stride; ++first)
      for (std::size_t i = 0; i < size; ++i) rows.push_back(ranks[first + i * stride]);
  return rows;
}

// All rows of one kind with ranks in `stage`. Replicas stand in ascending order of ranks, whatever
// order the grid has.
std::vector<std::uint32_t> rows_of(const StepCost& cost, const RankGrid& grid, GroupKind kind,
                                   std::uint32_t stage) {
  const std::vector<std::uint32_t> ranks = stage_ranks(grid, stage);
  const std::size_t size = row_size(cost, kind);
  switch (kind) {
    case GroupKind::tp:
    case GroupKind::ep:
      return ranks;
    case GroupKind::cp:
      return strided_rows(ranks, size, cost.tp);
    case GroupKind::dp:
      return strided_rows(ranks, size, std::size_t{cost.tp} * cost.cp);
    case GroupKind::replicas: {
      std::vector<std::uint32_t> rows = strided_rows(ranks, size, cost.tp);
      for (auto row = rows.begin(); row != rows.end(); row += static_cast<long>(size))
        std::sort(row, row + static_cast<long>(size));
      return rows;
    }
    case GroupKind::expert_data:
      return strided_rows(ranks, size, cost.ep);
    case GroupKind::embedding: {
      std::vector<std::uint32_t> rows = ranks;
      const std::vector<std::uint32_t> ends = stage_ranks(grid, cost.pp - 1);
      rows.insert(rows.end(), ends.begin(), ends.end());
      return strided_rows(rows, 2, ranks.size());
    }
    case GroupKind::all:
      break;
  }
  std::vector<std::uint32_t> rows(grid.rank_count());
  std::iota(rows.begin(), rows.end(), 0u);
  return rows;
}

class Joiner {
 public:
  Joiner(OpGraph& graph, std::vector<std::uint32_t> actor_of_rank)
      : graph_(graph), actor_of_rank_(std::move(actor_of_rank)) {}

  // Makes groups of rows that share actors; returns the group of each actor, by actor. Rows
  // without an actor in the graph are left out.
  std::vector<std::uint32_t> join(std::span<const std::uint32_t> rows, std::size_t size,
                                  Dimension dimension) {
    WEFT_CHECK(size > 0 && rows.size() % size == 0);
    WEFT_CHECK(actor_of_rank_.size() == graph_.rank_count);
    parent_.resize(graph_.actors.size());
    std::iota(parent_.begin(), parent_.end(), 0u);
    std::vector<std::uint32_t> owner;  // by row: any actor of it
    for (std::size_t first = 0; first < rows.size(); first += size) {
      owner.push_back(none);
      for (const std::uint32_t rank : rows.subspan(first, size)) {
        const std::uint32_t actor = actor_of_rank_[rank];
        if (actor == none) continue;
        if (owner.back() == none) owner.back() = actor;
        parent_[root(actor)] = root(owner.back());
      }
    }
    std::vector<std::uint32_t> group_of(graph_.actors.size(), none);
    for (std::size_t r = 0; r < owner.size(); ++r)
      if (owner[r] != none)
        add_row(group_of[root(owner[r])], rows.subspan(r * size, size), dimension);
    for (std::uint32_t a = 0; a < group_of.size(); ++a) {
      group_of[a] = group_of[root(a)];
      if (group_of[a] != none) ++graph_.groups[group_of[a]].actors;
    }
    return group_of;
  }

 private:
  std::uint32_t root(std::uint32_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }

  void add_row(std::uint32_t& group, std::span<const std::uint32_t> row, Dimension dimension) {
    if (group == none) {
      group = static_cast<std::uint32_t>(graph_.groups.size());
      graph_.groups.push_back({.dimension = dimension, .rows = 0, .ranks = {}, .actors = 0});
    }
    model::RankGroup& to = graph_.groups[group];
    ++to.rows;
    to.ranks.insert(to.ranks.end(), row.begin(), row.end());
  }

  OpGraph& graph_;
  std::vector<std::uint32_t> actor_of_rank_;
  std::vector<std::uint32_t> parent_;
};

std::vector<std::uint32_t> rows_of_stages(const StepCost& cost, const RankGrid& grid,
                                          GroupKind kind, const StageSlots& slots) {
  std::vector<std::uint32_t> rows;
  for (std::uint32_t s = 0; s < cost.pp; ++s) {
    if (std::ranges::find(slots[s], kind) == slots[s].end()) continue;
    const std::vector<std::uint32_t> more = rows_of(cost, grid, kind, s);
    rows.insert(rows.end(), more.begin(), more.end());
    if (kind == GroupKind::embedding || kind == GroupKind::all) break;  // spans the stages
  }
  return rows;
}

// Returns the actor of each rank, `none` where it has no part.
std::vector<std::uint32_t> number_actors(OpGraph& graph, const StepCost& cost,
                                         const StepGraphOptions& options, const RankGrid& grid) {
  const bool single = options.actors == StepGraphOptions::Actors::rank;
  const std::uint32_t replicas =
      options.replicas == StepGraphOptions::Replicas::first ? 1 : cost.dp;
  graph.ranks_per_actor = single ? 1 : cost.tp;
  graph.rank_count = grid.rank_count();
  std::vector<std::uint32_t> actor_of_rank(graph.rank_count, none);
  const std::uint32_t width = cost.cp * (single ? cost.tp : 1);  // actors of a stage and replica
  const auto count = std::size_t{replicas} * cost.pp * width;
  for (std::uint32_t a = 0; a < count; ++a) {
    const std::uint32_t stage = a / width % cost.pp, replica = a / width / cost.pp;
    const std::uint32_t place = a % width;
    const auto peers = static_cast<std::uint32_t>(graph.peers.size());
    graph.actors.push_back({stage, peers, 0});
    for (std::uint32_t r = 0; r < graph.ranks_per_actor; ++r) {
      const std::uint32_t inner = place * graph.ranks_per_actor + r;
      const std::uint32_t rank = grid.rank({inner % cost.tp, inner / cost.tp, stage, replica});
      graph.actor_ranks.push_back(rank);
      actor_of_rank[rank] = a;
    }
    if (cost.pp == 1) continue;
    const std::uint32_t base = a - stage * width;
    graph.peers.push_back(base + (stage + 1) % cost.pp * width);
    graph.peers.push_back(base + (stage + cost.pp - 1) % cost.pp * width);
  }
  return actor_of_rank;
}

}  // namespace

std::uint32_t row_size(const StepCost& cost, GroupKind kind) {
  switch (kind) {
    case GroupKind::tp:
      return cost.tp;
    case GroupKind::cp:
      return cost.cp;
    case GroupKind::dp:
      return cost.dp;
    case GroupKind::replicas:
      return cost.cp * cost.dp;
    case GroupKind::ep:
      return cost.ep;
    case GroupKind::expert_data:
      return cost.tp * cost.cp * cost.dp / cost.ep;
    case GroupKind::embedding:
      return cost.pp > 1 ? 2 : 1;
    case GroupKind::all:
      break;
  }
  return cost.tp * cost.cp * cost.pp * cost.dp;
}

void add_actors(OpGraph& graph, const StepCost& cost, const StepGraphOptions& options,
                const StageSlots& slots) {
  const RankGrid grid = grid_of(cost);
  Joiner joiner(graph, number_actors(graph, cost, options, grid));
  std::array<std::vector<std::uint32_t>, group_kind_count> group_of;  // by kind and actor
  for (std::size_t k = 0; k < group_kind_count; ++k) {
    const auto kind = static_cast<GroupKind>(k);
    const std::vector<std::uint32_t> rows = rows_of_stages(cost, grid, kind, slots);
    if (!rows.empty()) group_of[k] = joiner.join(rows, row_size(cost, kind), dimensions[k]);
  }
  for (std::uint32_t a = 0; a < graph.actors.size(); ++a) {
    model::Actor& actor = graph.actors[a];
    actor.group_first = static_cast<std::uint32_t>(graph.memberships.size());
    for (const GroupKind kind : slots[actor.program])
      graph.memberships.push_back(group_of[static_cast<std::size_t>(kind)][a]);
  }
}

}  // namespace weft::workload
