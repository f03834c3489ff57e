// What a trap says, as a record. Pure: no network.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "adapt/snmp/credentials.hpp"
#include "adapt/snmp/session.hpp"
#include "base/timestamp.hpp"
#include "model/events/record.hpp"
#include "observe/telemetry/inventory.hpp"

namespace weft::adapt::snmp {

struct Trap {
  Timestamp received;
  std::string from;  // address
  Oid kind;          // snmpTrapOID.0
  VarBinds values;   // behind it
};

// Whether a poll would see it: of links, BGP sessions and restarts.
bool changes_state(const Trap& trap);

// Which of the agents that are polled a trap came from: the one of the same device of the fabric,
// else of the same address.
class TrapTargets {
 public:
  // The inventory must outlive this.
  TrapTargets(const observe::telemetry::Inventory& inventory, std::span<const Target> targets);
  // The target's device as its file names it; "" where it is not polled.
  std::string of(const Trap& trap) const;
  std::string of(std::string_view device) const;  // a name or an address

 private:
  const observe::telemetry::Inventory& inventory_;
  std::map<model::NodeId, std::string> by_node_;
  std::map<std::string, std::string, std::less<>> by_address_;
};

struct TrapCounts {
  std::uint64_t traps = 0, known = 0;
  std::uint64_t unknown_kinds = 0, unknown_devices = 0, unknown_ports = 0;
};

// Each trap makes one record: linkDown, linkUp (of the port named by ifName or ifDescr among its
// values, else by `interface_name`), coldStart, bgpBackwardTransition and bgpEstablished of RFC
// 4273 and RFC 1657. A link that its operator set down has reason "policy". Others, also
// entSensorThreshold (which names no kind of sensor), are info with attributes "trap" and
// "message"; of unknown devices and ports entity is none, with attribute "entity".
class TrapReader {
 public:
  // (device as given by the address, ifIndex) to a name, "" where nobody knows.
  using InterfaceName = std::function<std::string(std::string_view device, std::uint32_t if_index)>;
  // The inventory must outlive this.
  TrapReader(const observe::telemetry::Inventory& inventory, InterfaceName interface_name,
             std::string id_prefix = "trap");

  void take(const Trap& trap);
  const TrapCounts& counts() const { return counts_; }
  model::RecordSet take_records();

 private:
  void take_link(const Trap& trap, model::NodeId device, model::Record& row,
                 model::Attributes& attributes);
  void take_session(const Trap& trap, model::NodeId device, model::Record& row,
                    model::Attributes& attributes);
  void place(model::LinkId link, model::NodeId device, const std::string& name, model::Record& row,
             model::Attributes& attributes);

  const observe::telemetry::Inventory& inventory_;
  InterfaceName interface_name_;
  std::string id_prefix_;
  TrapCounts counts_;
  model::RecordSet set_;
};

}  // namespace weft::adapt::snmp
