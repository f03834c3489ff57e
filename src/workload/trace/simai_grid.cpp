#include "workload/trace/simai_grid.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace weft::workload {
namespace {

using model::Dimension;
using model::OpGraph;
using model::RankGroup;

constexpr std::uint32_t no_group = UINT32_MAX;

struct Place {
  std::uint32_t tp, ep, dp_ep, pp;
};

class Placer {
 public:
  Placer(const SimaiGrid& grid, SimaiActor actor, OpGraph& graph)
      : grid_(grid), actor_(actor), graph_(graph) {}

  std::uint32_t rank(const Place& at) const {
    const std::uint32_t dp = at.ep + grid_.ep * at.dp_ep;
    if (grid_.innermost == SimaiGrid::Innermost::dp)
      return dp + grid_.dp() * (at.tp + grid_.tp * at.pp);
    return at.tp + grid_.tp * (dp + grid_.dp() * at.pp);
  }

  bool whole_expert_group() const { return actor_ == SimaiActor::expert_group; }
  std::uint32_t actors_per_stage() const { return whole_expert_group() ? grid_.dp_ep : grid_.dp(); }
  std::uint32_t actor_count() const { return actors_per_stage() * grid_.pp; }
  std::uint32_t actor_of(const Place& at) const {
    const std::uint32_t inside = whole_expert_group() ? at.dp_ep : at.ep + grid_.ep * at.dp_ep;
    return inside + actors_per_stage() * at.pp;
  }

  // Every rank once, ordered so that groups come out in order along their dimension and actors
  // one after the other.
  template <class Visit>
  void each(Visit visit) const {
    for (std::uint32_t pp = 0; pp < grid_.pp; ++pp)
      for (std::uint32_t dp_ep = 0; dp_ep < grid_.dp_ep; ++dp_ep)
        for (std::uint32_t ep = 0; ep < grid_.ep; ++ep)
          for (std::uint32_t tp = 0; tp < grid_.tp; ++tp) visit(Place{tp, ep, dp_ep, pp});
  }

  void add_actors(std::span<const std::uint32_t> programs) {
    graph_.rank_count = static_cast<std::uint32_t>(grid_.rank_count());
    graph_.ranks_per_actor = graph_.rank_count / actor_count();
    graph_.actor_ranks.reserve(graph_.rank_count);
    each([&](const Place& at) { graph_.actor_ranks.push_back(rank(at)); });
    const std::uint32_t stride = actors_per_stage();
    const std::uint32_t count = actor_count();
    for (std::uint32_t a = 0; a < count; ++a) {
      graph_.actors.push_back(
          {programs[a / stride], static_cast<std::uint32_t>(graph_.peers.size()), 0});
      if (grid_.pp == 1) continue;
      graph_.peers.push_back((a + stride) % count);
      graph_.peers.push_back((a + count - stride) % count);
    }
  }

  // Adds the groups of one kind; returns the group of each actor.
  std::vector<std::uint32_t> add_groups(SimaiGroup kind) {
    const auto first = static_cast<std::uint32_t>(graph_.groups.size());
    std::vector<std::vector<std::vector<std::uint32_t>>> rows;  // group, row, ranks
    std::vector<std::uint32_t> group_of(actor_count(), no_group);
    each([&](const Place& at) {
      if (kind == SimaiGroup::ends && at.pp != 0 && at.pp + 1 != grid_.pp) return;
      const Key key = key_of(kind, at);
      if (rows.size() <= key.group) rows.resize(key.group + 1);
      if (rows[key.group].size() <= key.row) rows[key.group].resize(key.row + 1);
      rows[key.group][key.row].push_back(rank(at));
      group_of[actor_of(at)] = first + key.group;
    });
    for (const auto& group : rows) {
      RankGroup out{dimension_of(kind), static_cast<std::uint32_t>(group.size()), {}, 0};
      for (const auto& row : group) out.ranks.insert(out.ranks.end(), row.begin(), row.end());
      graph_.groups.push_back(std::move(out));
    }
    for (const std::uint32_t group : group_of)
      if (group != no_group) ++graph_.groups[group].actors;
    return group_of;
  }

 private:
  struct Key {
    std::uint32_t group, row;
  };

  // The group holds whole actors; ranks that differ in the row do not meet.
  Key key_of(SimaiGroup kind, const Place& at) const {
    const bool expert = whole_expert_group();
    switch (kind) {
      case SimaiGroup::tp:
        return {actor_of(at), expert ? at.ep : 0};
      case SimaiGroup::ep:
        return {at.dp_ep + grid_.dp_ep * at.pp, at.tp};
      case SimaiGroup::dp:
        return {at.pp, at.tp};
      case SimaiGroup::dp_ep:
        if (expert) return {at.pp, at.tp + grid_.tp * at.ep};
        return {at.ep + grid_.ep * at.pp, at.tp};
      case SimaiGroup::pp:
      case SimaiGroup::ends:
        if (expert) return {at.dp_ep, at.tp + grid_.tp * at.ep};
        return {at.ep + grid_.ep * at.dp_ep, at.tp};
      case SimaiGroup::all:
        break;
    }
    return {0, 0};
  }

  const SimaiGrid& grid_;
  SimaiActor actor_;
  OpGraph& graph_;
};

}  // namespace

Dimension dimension_of(SimaiGroup group) {
  switch (group) {
    case SimaiGroup::tp:
      return Dimension::tp;
    case SimaiGroup::ep:
      return Dimension::ep;
    case SimaiGroup::dp:
    case SimaiGroup::dp_ep:
      return Dimension::dp;
    case SimaiGroup::pp:
    case SimaiGroup::ends:
      return Dimension::pp;
    case SimaiGroup::all:
      break;
  }
  return Dimension::other;
}

std::uint32_t size_of(const SimaiGrid& grid, SimaiGroup group) {
  switch (group) {
    case SimaiGroup::tp:
      return grid.tp;
    case SimaiGroup::ep:
      return grid.ep;
    case SimaiGroup::dp:
      return grid.dp();
    case SimaiGroup::dp_ep:
      return grid.dp_ep;
    case SimaiGroup::pp:
      return grid.pp;
    case SimaiGroup::ends:
      return std::min(grid.pp, 2u);
    case SimaiGroup::all:
      break;
  }
  return static_cast<std::uint32_t>(grid.rank_count());
}

void place_ranks(const SimaiGrid& grid, SimaiActor actor, std::span<const SimaiGroup> used,
                 std::span<const std::uint32_t> programs, OpGraph& graph) {
  Placer placer(grid, actor, graph);
  placer.add_actors(programs);
  std::array<std::uint32_t, simai_group_count> slots{};  // of those used
  std::vector<SimaiGroup> order(used.begin(), used.end());
  std::ranges::stable_partition(order, [](SimaiGroup g) { return g != SimaiGroup::ends; });
  std::vector<std::vector<std::uint32_t>> group_of;
  for (const SimaiGroup kind : order) {
    slots[static_cast<std::size_t>(kind)] = static_cast<std::uint32_t>(group_of.size());
    group_of.push_back(placer.add_groups(kind));
  }
  for (std::size_t a = 0; a < graph.actors.size(); ++a) {
    graph.actors[a].group_first = static_cast<std::uint32_t>(graph.memberships.size());
    for (const auto& groups : group_of)
      if (groups[a] != no_group) graph.memberships.push_back(groups[a]);
  }
  for (model::Program& program : graph.programs)
    for (model::Operation& op : program.operations)
      if (op.kind == model::Operation::Kind::collective) op.slot = slots[op.slot];
}

}  // namespace weft::workload
