// The live view of all links, kept up to date by differences. Internal to the room.
#pragma once

#include <vector>

#include "model/fabric/state.hpp"
#include "route/choices.hpp"

namespace weft::route {

// A link that changed, and what it was.
struct LinkChange {
  LinkId link;
  model::Health old_health;
  double old_bytes_per_s;
};

class LiveLinks {
 public:
  explicit LiveLinks(const Fabric& fabric) : fabric_(fabric), view_(fabric, state_) {}

  bool usable(LinkId link) const { return view_.usable(link); }
  model::Health health(LinkId link) const { return view_.health[link.index()]; }
  bool draining(LinkId link) const { return health(link) == model::Health::draining; }
  double bytes_per_s(LinkId link) const { return view_.bytes_per_s[link.index()]; }
  const model::State& state() const { return state_; }

  // The links that differ, in id order. Cost: O(troubled links before and after), not O(links).
  std::vector<LinkChange> set_state(const model::State& state);

 private:
  const Fabric& fabric_;
  model::State state_;
  model::LiveView view_;
};

}  // namespace weft::route
