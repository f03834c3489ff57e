// How many spare hosts a cluster needs, where they stand, and what they do not help against.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plan/spares/outages.hpp"
#include "plan/spares/simulate.hpp"

namespace weft::plan::spares {

// What so many spares, pooled over all zones, are worth.
struct Level {
  double target = 0;  // share of the time in which they suffice
  std::uint32_t spares = 0;
  double shortages_per_year = 0, hours_each = 0;
  std::optional<std::uint32_t> simulated;  // spares, by simulation
};

struct ZonePlan {
  std::string name;
  std::uint32_t hosts = 0;
  std::uint32_t alone = 0;   // spares that it needs for itself
  std::uint32_t spares = 0;  // of the pool, standing here
};

struct EventShare {
  std::string name;
  double per_year = 0;        // of all units together
  std::uint32_t hosts = 0;    // struck at once, by the largest
  double out = 0;             // hosts out by it, in the mean
  double share = 0;           // of the time in which one is under way
  std::uint32_t without = 0;  // spares for the target if it never happened
};

struct SparePlan {
  std::uint32_t hosts = 0;
  double target = 0;
  double out = 0;             // hosts out in the mean
  std::vector<Level> levels;  // the target's among them
  std::vector<ZonePlan> zones;
  std::vector<EventShare> events;
  std::uint32_t spares = 0;  // for the target; by simulation where the closed form does not hold
  double foreign = 0;  // hosts served from another zone in the mean, spares standing as planned
  double foreign_in_one_zone = 0;  // the same if all spares stood in the first zone
  std::optional<Simulated> simulated;
};

// The pool's spares stand where they serve most: one by one in the zone that is most often short,
// which is optimal, as the mean number short in a zone is convex in its spares.
// Cost: the closed form O(hosts x sizes of events) for all and for each zone.
SparePlan plan_spares(const Outages& outages, std::optional<Simulated> simulated);

std::string to_table(const SparePlan& plan);
std::string to_json(const SparePlan& plan);

}  // namespace weft::plan::spares
