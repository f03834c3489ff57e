// Who takes part in a step: actors, and which ranks communicate together.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "model/work/op_graph.hpp"
#include "model/work/step_cost.hpp"
#include "workload/schedule/step_graph.hpp"

namespace weft::workload {

// The kinds of groups in a step. `replicas`: over dp and cp together; `embedding`: the ends of a
// pipeline; `all`: every rank.
enum class GroupKind : std::uint8_t { tp, cp, dp, ep, replicas, expert_data, embedding, all };
inline constexpr std::size_t group_kind_count = 8;

// Ranks in one row of such a group.
std::uint32_t row_size(const model::StepCost& cost, GroupKind kind);

// By pipeline stage: the kinds in which it communicates, by slot.
using StageSlots = std::vector<std::vector<GroupKind>>;

// Adds actors, peers, groups and memberships to `graph`; the program of stage s is s. A group
// gathers all rows that its actors have a part in, so that each actor is in one group of a kind.
// `cost` has been checked. Cost: O(ranks * kinds).
void add_actors(model::OpGraph& graph, const model::StepCost& cost, const StepGraphOptions& options,
                const StageSlots& slots);

}  // namespace weft::workload
