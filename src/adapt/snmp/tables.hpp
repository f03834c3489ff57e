// What a device is asked for, and what its answers measure. Pure: no network.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "adapt/snmp/value.hpp"
#include "base/timestamp.hpp"
#include "port/sample.hpp"

namespace weft::adapt::snmp {

// Columns that are walked together, since they have the same rows. Numeric throughout: no MIB files
// are needed.
struct Group {
  std::string_view name;  // "interfaces", "parts", "sensors", "sessions", "processors", "storage"
  std::vector<Oid> columns;
};
const std::vector<Group>& groups();
// Asked for with one GET, first of all.
const std::vector<Oid>& scalars();

// What is remembered of a device from poll to poll.
struct Memory {
  std::map<std::uint32_t, std::string> interfaces;  // by ifIndex
  bool has_system_uptime = false;                   // then the agent's own is not used
};

struct Answered {
  Timestamp t;  // when the last of it came
  Answers values;
};

// Answers by group, the scalars as the last; partial ones say what they can.
//   IF-MIB            admin_up, oper_up, octets, packets, errors, discards by ifName (else
//   ifDescr);
//                     64-bit columns where there are, else those of 32 bits
//   ENTITY-SENSOR     celsius, rpm, truth values, dBm (14, as Cisco writes it) and watts of optics
//                     as dBm (no light: -40), scaled by its scale and precision columns; not what
//                     is unavailable. A sensor is of the interface that entAliasMapping gives the
//                     entity that holds it, or whose name stands in its own
//   ENTITY-STATE      fans, supplies and modules that are disabled
//   BGP4-MIB          sessions that are not stopped, by the neighbour's address
//   HOST-RESOURCES,   mean load of the processors, fixed disks, memory (that caches could give back
//   UCD               counts as free), uptime of the system or else of the agent
std::vector<port::Sample> measure(std::string_view device, const std::vector<Answered>& answers,
                                  Memory& memory);

}  // namespace weft::adapt::snmp
