// All shortest paths between two nodes, layer by layer. Internal to the room.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "route/choices.hpp"

namespace weft::route {

// Goes through the links of all shortest paths, with the share of the traffic that crosses each
// when every node divides what reaches it over its next hops. All shortest paths to one goal have
// the same number of links, so the layers of links at one distance are cuts. NextHops needs
// reached(at, goal) and next(at, goal). Cost: O(links of the paths); memory O(nodes of the fabric),
// kept between uses.
template <class NextHops>
class Dag {
 public:
  Dag(const Fabric& fabric, NextHops& next_hops) : fabric_(fabric), next_hops_(next_hops) {}

  void start(NodeId from) { frontier_.assign(1, {from, 1.0}); }
  // True when all traffic is at the goal.
  bool done(const auto& goal) const { return next_hops_.reached(frontier_.front().at, goal); }
  template <class Visit>
  void for_each_node(Visit visit) const {
    for (const Place& place : frontier_) visit(place.at);
  }
  // Where all traffic is, or an invalid id when it is in several places.
  NodeId only_node() const { return frontier_.size() == 1 ? frontier_.front().at : NodeId{}; }

  // Goes through one layer: visit(LinkId, double share). False when there is no path.
  template <class Visit>
  bool step(const auto& goal, Visit visit) {
    ++round_;
    if (slots_.empty()) slots_.resize(fabric_.node_count());
    next_.clear();
    for (const auto& [at, share] : frontier_) {
      const Choices choices = next_hops_.next(at, goal);
      if (choices.links.empty()) return false;
      double below = 0;
      for (std::size_t i = 0; i < choices.links.size(); ++i) {
        double part = share / static_cast<double>(choices.links.size());
        if (!choices.cumulative.empty()) {
          part = share * (choices.cumulative[i] - below) / choices.cumulative.back();
          below = choices.cumulative[i];
        }
        visit(choices.links[i], part);
        add(fabric_.to(choices.links[i]), part);
      }
    }
    frontier_.swap(next_);
    return true;
  }

 private:
  struct Place {
    NodeId at;
    double share;
  };
  struct Slot {
    std::uint64_t round = 0;
    std::uint32_t index = 0;
  };
  void add(NodeId node, double share) {
    Slot& slot = slots_[node];
    if (slot.round != round_) {
      slot = {round_, static_cast<std::uint32_t>(next_.size())};
      next_.push_back({node, 0});
    }
    next_[slot.index].share += share;
  }

  const Fabric& fabric_;
  NextHops& next_hops_;
  std::vector<Place> frontier_, next_;
  Column<NodeId, Slot> slots_;
  std::uint64_t round_ = 0;
};

}  // namespace weft::route
