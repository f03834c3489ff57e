// What a device knows of its neighbours: LLDP-MIB (IEEE 802.1AB-2005), or BGP4-MIB (RFC 4273) with
// the addresses of IP-MIB. Pure: no network.
#pragma once

#include <vector>

#include "adapt/snmp/tables.hpp"
#include "model/formats/neighbours.hpp"

namespace weft::adapt::snmp {

// Columns that are walked for it, in place of groups().
const std::vector<Group>& neighbour_groups(model::NeighbourProtocol by);

// Answers by group. A port is called by its interface name where its id is one, else by its
// description (hosts send a MAC address and describe the port), else by its id. Ids that are
// addresses are written as 00:11:22:33:44:55. Ascending by port; a port with several neighbours has
// several rows. The caller sets the device.
model::Neighbours lldp_neighbours(const std::vector<Answered>& answers);

// Sessions in any state, and addresses of interfaces with their masks: IPv4, as BGP4-MIB has
// nothing else. Interfaces by ifName, else ifDescr. Rows that are no addresses are left out.
model::Neighbours bgp_neighbours(const std::vector<Answered>& answers);

}  // namespace weft::adapt::snmp
