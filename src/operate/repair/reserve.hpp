// How much of the fabric's way up is left when some of it is gone.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "model/events/entity.hpp"
#include "model/fabric/fabric.hpp"

namespace weft::operate::repair {

// Whether the node stands in that scope, or in one inside it. Cost: O(depth).
bool is_inside(const model::Fabric& fabric, model::NodeId node, model::ScopeId outer);

// Parts that are not relied on: down, draining, drained or suspected.
class Gone {
 public:
  explicit Gone(const model::Fabric& fabric);
  // A cable by its cable, link or port; a node; a card for all of its switch; a scope for all
  // switches and hosts inside. None: nothing. Cost: O(1), of a scope O(nodes).
  void add(const model::Entity& entity);
  bool node(model::NodeId id) const { return nodes_[id.index()] != 0; }
  bool cable(model::CableId id) const { return cables_[id.index()] != 0; }
  // Itself, or one of its ends.
  bool link(model::LinkId id) const {
    return cables_[model::cable_of(id).index()] != 0 || node(fabric_->from(id)) ||
           node(fabric_->to(id));
  }

 private:
  const model::Fabric* fabric_;
  std::vector<char> nodes_, cables_;
};

// The capacity with which a first switch, a rack, or a rack within one plane sends upwards. An
// uplink counts with its rate times the share of ways that its upper end still has to the top.
struct Uplinks {
  std::string name;                   // "rtsw:3", "rack:3", "rack:3 in plane 1"
  double live_bps = 0;                // weighted by the ways further up
  double whole_bps = 0;               // when all is well
  double nic_bps = 0;                 // what hangs below it
  std::uint32_t live = 0, whole = 0;  // cables
  enum class Of : std::uint8_t { first_switch, rack, plane } of = Of::first_switch;
  model::Entity at = {};  // the rack that it is in; the switch itself where there are no racks
  bool is_gone = false;   // the switch itself
  double share() const { return whole_bps > 0 ? live_bps / whole_bps : 1; }
};

// Ways up are followed by the distance from the NICs; where no switch is further than another (a
// torus, a dragonfly), all cables between switches are ways up, and lead to the top.
// The share is that of CorrOpt (Zhuo et al., SIGCOMM 2017): paths from a first switch to the top,
// over those it was built with; we weight paths with rates.
class Reserve {
 public:
  explicit Reserve(const model::Fabric& fabric);

  // Always the same rows in the same order. Cost: O(links).
  std::vector<Uplinks> uplinks(const Gone& gone) const;
  // NICs without a live cable to a first switch that still has a way up (or leads to another NIC,
  // where there is nothing further up), ascending. Cost: O(links).
  std::vector<model::NodeId> cut_off(const Gone& gone) const;

  // Racks whose uplinks, or first switches, the part is or belongs to.
  std::vector<model::ScopeId> racks_of(const model::Entity& part) const;

 private:
  struct Group {
    Uplinks base;
    std::vector<std::uint32_t> switches;  // in first_
  };
  struct Hop {
    model::CableId cable;
    std::uint32_t up;  // in order_
    double bps;
  };
  struct Switch {
    model::NodeId node;
    std::uint32_t first_hop = 0, hop_end = 0;  // in hops_
    double whole_bps = 0;
  };
  // By switch of order_: the share of its ways to the top that are left.
  std::vector<double> shares(const Gone& gone) const;
  void find_levels();
  void find_groups();
  void add_row(const std::vector<double>& shares, const Gone& gone, Uplinks& row,
               std::uint32_t at) const;

  const model::Fabric& fabric_;
  std::vector<Switch> order_;         // all that can be reached from NICs, upper ones first
  std::vector<std::uint32_t> index_;  // in order_, by node; none_value: not a switch
  std::vector<Hop> hops_;
  std::vector<std::uint32_t> first_;  // in order_: switches with NICs below
  std::vector<Group> groups_;
};

}  // namespace weft::operate::repair
