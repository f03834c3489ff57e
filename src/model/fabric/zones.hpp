// What counts as a zone of a fabric, for placement and for spare hosts.
#pragma once

#include <optional>

#include "model/fabric/fabric.hpp"

namespace weft::model {

// The first of zone, pod, building and region of which there are several that hold hosts; none
// where a single one of each holds all. Cost: O(hosts).
std::optional<ScopeKind> zone_kind(const Fabric& fabric);

}  // namespace weft::model
