// The part that all schemes share which keep to shortest paths. Internal to the room.
#pragma once

#include "route/dag.hpp"
#include "route/scheme.hpp"

namespace weft::route {

class ShortestPathScheme : public Scheme {
 public:
  explicit ShortestPathScheme(Parts& parts) : parts_(parts), dag_(parts.fabric, parts.next_hops) {}

  void append_usable_leg(NodeId from, NodeId to, std::vector<LinkId>& out) override {
    const Goal goal = parts_.next_hops.goal(to);
    dag_.start(from);
    while (!dag_.done(goal))
      if (!dag_.step(goal, [&](LinkId link, double) { out.push_back(link); })) return;
  }

 protected:
  Parts& parts_;
  Dag<NextHops> dag_;
};

}  // namespace weft::route
