// A two-tier Clos as central traffic engineering has it: racks, and columns to choose from.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "model/fabric/fabric.hpp"
#include "model/fabric/state.hpp"
#include "route/assign.hpp"

namespace weft::route {

using model::Fabric;
using model::LinkId;
using model::NodeId;

// Racks are the switches with back-end NICs. A column is a spine or, where parallel cables lead to
// it, the k-th of these cables of every rack: its flows go up by a rack's k-th cable and down by
// another's k-th.
struct Zone {
  static constexpr std::uint32_t none = UINT32_MAX;
  Column<NodeId, std::uint32_t> rack_of;  // of NICs; `none` for other nodes
  Column<NodeId, LinkId> port_of;         // of NICs: their link to the rack
  std::uint32_t racks = 0, columns = 0;
  std::vector<LinkId> up;  // by rack, then column; invalid where there is no cable

  LinkId uplink(std::uint32_t rack, std::uint32_t column) const {
    return up[std::size_t{rack} * columns + column];
  }
  // Whose cable `link` is, of the NIC's rack; `none` where it is no uplink of it. Cost: O(columns).
  std::uint32_t column_of(NodeId nic, LinkId link) const {
    const std::uint32_t rack = rack_of[nic];
    for (std::uint32_t c = 0; rack != none && link.valid() && c < columns; ++c)
      if (uplink(rack, c) == link) return c;
    return none;
  }
  // Between NICs of two racks that both have that column's cable.
  std::array<LinkId, 4> path(NodeId src, NodeId dst, std::uint32_t column) const {
    return {port_of[src], uplink(rack_of[src], column), reverse(uplink(rack_of[dst], column)),
            reverse(port_of[dst])};
  }
};

// Fails: Errc::unsupported, with the reason, for what is no two-tier Clos of single-port NICs.
// Cost: O(links).
Result<Zone> find_zone(const Fabric& fabric);

// By cell of Zone::up, up then down: shares of the fastest uplink; 0 for what is down, drains or
// is not there.
std::vector<double> zone_capacities(const Zone& zone, const Fabric& fabric,
                                    const model::State& seen);
void set_capacities(Assignment& assignment, const Zone& zone, std::span<const double> capacities);

}  // namespace weft::route
