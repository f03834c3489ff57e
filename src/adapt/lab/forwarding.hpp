// Where packets between NICs go at this moment, by the routes of the kernels alone.
#pragma once

#include <map>
#include <vector>

#include "adapt/lab/plan.hpp"
#include "adapt/linux_switch/netlink.hpp"
#include "base/result.hpp"

namespace weft::adapt::lab {

// What one namespace does with packets. Ends whose carrier is gone are no part of it.
struct NodeRoutes {
  std::map<Ipv4, std::vector<EndId>> hops;  // by destination; none of a black hole's
  std::vector<EndId> default_hops;          // of hosts: where packets without a closer route go
  std::vector<EndId> down;                  // own ends without a carrier
};

// The same for every namespace of a lab, in the order of LabPlan::nodes.
// Fails: Errc::io. Cost: about half a millisecond a namespace.
Result<std::vector<NodeRoutes>> read_node_routes(const LabPlan& plan);

// What packets from every host to every NIC meet, following all of the equal next hops.
class Forwarding {
 public:
  // `nodes`: as read_node_routes() gives them. Cost: O(NICs * cables).
  static Forwarding follow(const LabPlan& plan, const std::vector<NodeRoutes>& nodes);
  static Result<Forwarding> read(const LabPlan& plan);

  bool crosses(LabCableId cable) const { return cable_[cable] != 0; }
  bool crosses(LabNodeId node) const { return node_[node] != 0; }
  // Pairs of a NIC and a place on the way to it from which there is none.
  std::size_t dead_ends() const { return dead_ends_; }
  // NICs that a switch has no usable route for.
  std::size_t unknown_at(LabNodeId node) const { return unknown_[node]; }
  // Cables without a carrier at either end, ascending.
  const std::vector<LabCableId>& down() const { return down_; }

 private:
  Column<LabNodeId, char> node_;
  Column<LabCableId, char> cable_;
  Column<LabNodeId, std::size_t> unknown_;
  std::vector<LabCableId> down_;
  std::size_t dead_ends_ = 0;
};

}  // namespace weft::adapt::lab
