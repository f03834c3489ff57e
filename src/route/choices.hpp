// What a node may choose from when it forwards. Internal to the room.
#pragma once

#include <cstdint>
#include <span>

#include "base/id.hpp"
#include "model/fabric/fabric.hpp"

namespace weft::route {

using model::Fabric;
using model::LinkId;
using model::NodeId;

// Next hops in link order (grouped by neighbour in front of the goal). `cumulative` is empty unless
// weights are used; then it holds running sums of them. Valid until the next call.
struct Choices {
  std::span<const LinkId> links;
  std::span<const double> cumulative = {};
};

}  // namespace weft::route
