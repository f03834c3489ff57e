// What a device's LLDP knows of its neighbours: LLDP-MIB (IEEE 802.1AB-2005). Pure: no network.
#pragma once

#include <string>
#include <vector>

#include "adapt/snmp/tables.hpp"

namespace weft::adapt::snmp {

// The far end of a cable, as its device says of itself.
struct Neighbour {
  std::string port;         // of the device that was asked
  std::string device;       // system name, else chassis id
  std::string device_port;  // "" where it does not say
};

struct Neighbours {
  std::string system_name;  // of the device that was asked
  std::vector<Neighbour> rows;
};

// Columns that are walked for it, in place of groups().
const std::vector<Group>& lldp_groups();

// Answers by group. A port is called by its interface name where its id is one, else by its
// description (hosts send a MAC address and describe the port), else by its id. Ids that are
// addresses are written as 00:11:22:33:44:55. Ascending by port; a port with several neighbours has
// several rows.
Neighbours lldp_neighbours(const std::vector<Answered>& answers);

}  // namespace weft::adapt::snmp
