// What the parts of explain() share. Internal to the room.
#pragma once

#include <cstdint>

#include "model/fabric/fabric.hpp"
#include "plan/explain/explain.hpp"

namespace weft::plan {

// Capacities of hostile input may exceed 63 bits together; they stay at the top then.
inline Rate plus(Rate a, Rate b) { return {a.bps > INT64_MAX - b.bps ? INT64_MAX : a.bps + b.bps}; }

inline constexpr std::uint32_t unseen = UINT32_MAX;

// Arc visits for one maximum flow: about a second.
inline constexpr std::uint64_t flow_work_max = 60'000'000;

// What several parts need, found once.
struct Survey {
  Survey(const model::Fabric& of, const model::State& state);
  bool is_up(model::LinkId link) const {
    return level[fabric.to(link)] == level[fabric.from(link)] + 1;
  }

  const model::Fabric& fabric;
  const model::State& state;
  Column<model::LinkId, Rate> rate;  // that is left of each link; 0: it carries nothing
  // Of the cables that were built. 0 for what is no switch, 1 for switches with cables to such, and
  // so on by number of cables; `unseen` where no end is in reach.
  Column<model::NodeId, std::uint32_t> level;
  Column<model::NodeId, model::ScopeId>
      group;  // of NICs: their rack, or their scope where there are no racks
};

void find_bisection(const Survey& survey, FabricFacts& facts);
void find_paths(const Survey& survey, FabricFacts& facts);
void find_losses(const Survey& survey, FabricFacts& facts);

}  // namespace weft::plan
