// Which faults a rehearsal has, and when.
//
// Every part has a random stream for each kind of fault and day, so that a fault stays where and
// when it is while rates of other kinds, the days or the rest of the fabric change; and a raised
// rate keeps all faults and adds some.
#pragma once

#include <cstdint>
#include <vector>

#include "adapt/sim/operations.hpp"
#include "app/rehearse/rehearse.hpp"
#include "base/timestamp.hpp"
#include "model/events/entity.hpp"
#include "model/fabric/fabric.hpp"

namespace weft::app {

inline constexpr Timestamp rehearse_start{1'800'000'000 * ns_per_s};
inline constexpr std::int64_t rehearse_day_ns = std::int64_t{24} * 3600 * ns_per_s;

// The parts of a fabric, by what can befall them.
struct RehearseParts {
  RehearseParts(const model::Fabric& fabric, std::uint32_t ports_per_card);
  std::vector<model::Entity> trunks, leaves, rack_switches, others, switches, cards, nics, hosts;
};

struct PlannedFault {
  Timestamp t;
  adapt::sim::Operations::Start start;
};
// The mean of how many there are, lemons apart. Cost: O(parts).
double expected_faults(const model::Fabric& fabric, const RehearseOptions& options);
// By time. Cost: O(parts * days).
std::vector<PlannedFault> plan_faults(const model::Fabric& fabric, const RehearseParts& parts,
                                      const RehearseOptions& options);

}  // namespace weft::app
