// Where and when the faults of a storm strike. Internal to the room.
#pragma once

#include <cstdint>
#include <vector>

#include "adapt/sim/problem_type.hpp"
#include "adapt/sim/storm.hpp"
#include "adapt/sim/storm_context.hpp"
#include "base/result.hpp"
#include "model/fabric/fabric.hpp"

namespace weft::adapt::sim {

// Times are ns from the start of the storm.
struct StormFault {
  ProblemType type = ProblemType::cable;
  std::int64_t start = 0, end = 0;
  // What broke: the first node, cable or scope is the answer to "what is the cause?".
  std::vector<model::NodeId> nodes;    // of devices and hosts: all of them
  std::vector<model::CableId> cables;  // every cable that says something, ascending
  model::ScopeId scope;                // of power and zone
  std::uint32_t card = 0;
  std::uint32_t change = 0;
  double shape = 0;  // in [0, 1): which way of failing, by the type's script
};

// The faults by start. The rules: docs/storm.md, "Placement". Fails: Errc::infeasible.
Result<std::vector<StormFault>> plan_storm(const StormContext& context,
                                           const StormOptions& options);

// What broke is left alone for so long before and after, so that no evidence is of two faults.
inline constexpr std::int64_t storm_guard_ns = 120 * ns_per_s;

}  // namespace weft::adapt::sim
