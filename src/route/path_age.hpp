// Whether a path that was learned earlier is still the way that packets take.
#pragma once

#include <memory>
#include <span>

#include "model/fabric/state.hpp"
#include "route/router.hpp"

namespace weft::route {

// Two states of a fabric: when paths were learned, and now. A switch that hashes over the same next
// hops to a goal takes the same one, whatever its hash is; so a path holds while all its switches
// have the next hops that they had. Nothing is known of hashes, and a path that does not hold may
// by chance still be the way.
class PathAge {
 public:
  // `fabric` must outlive it. Cost: O(links) now, a search of the fabric for each group of goals
  // that paths lead to (racks of a pod are one group), then O(switches of a path).
  PathAge(const Fabric& fabric, const model::State& then, const model::State& now);
  PathAge(PathAge&&) noexcept;
  PathAge& operator=(PathAge&&) noexcept;
  ~PathAge();

  // Links in order, from NIC to NIC; a round trip goes on with the way back. Also where a path ends
  // at a switch: that is its goal.
  bool holds(std::span<const LinkId> path);

 private:
  struct Views;
  std::unique_ptr<Views> views_;
};

}  // namespace weft::route
