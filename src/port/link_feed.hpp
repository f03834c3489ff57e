// What a controller of paths hears of the network's cables.
#pragma once

#include <span>
#include <vector>

#include "model/fabric/fabric.hpp"
#include "model/fabric/state.hpp"

namespace weft::port {

struct LinkNews {
  model::CableId cable;
  bool is_up = false;
};

class LinkFeed {
 public:
  virtual ~LinkFeed() = default;
  // Cables that lost carrier, or have it again, since the last call; at the first one those
  // without. In order. Waits for nothing.
  virtual std::vector<LinkNews> news() = 0;
  // Which of these cables, that have carrier again, packets can use: both switches have all routes
  // beneath that they should have.
  virtual std::vector<model::CableId> routed(std::span<const model::CableId> cables) = 0;
  // What is out of service, as draining.
  virtual model::State drained() = 0;
};

}  // namespace weft::port
