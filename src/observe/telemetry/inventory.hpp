// Which device, port and session a name or an address in a message means.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "model/fabric/fabric.hpp"
#include "observe/telemetry/name_table.hpp"

namespace weft::observe::telemetry {

// Devices are the switches and hosts of a fabric, which must outlive this. They go by their names,
// in which ':' may also be written '-' (a host name cannot hold a colon), and with any domain
// behind; NICs of hosts by "eth0", "mlx5_0" and so on in the host's order.
class Inventory {
 public:
  explicit Inventory(const model::Fabric& fabric);

  // Adds from CSV text: columns address, device; optional interface (whose address it is: of a
  // session's end, or of a NIC by name) and zone ("+01:00": what the device's clock is set to).
  // An empty address only sets the zone. Fails: Errc::unknown and Errc::parse, with positions; also
  // for a duplicate address with a different meaning.
  Status add_csv(std::string_view text, const std::string& file);

  const model::Fabric& fabric() const { return *fabric_; }
  // A switch or host by name or address; invalid when not known. O(1), no allocation.
  model::NodeId device(std::string_view name) const;
  // The link that leaves `device` by that interface, written in full or as devices shorten it
  // ("Eth1/7", "Hu0/0/0/1"), with a unit, a description or a driver's words around it:
  // "et-0/0/1.0", "Ethernet1/7 (spine)", "tg3 0000:02:00.0 eth2".
  model::LinkId port(model::NodeId device, std::string_view interface_name) const;
  model::NodeId nic(model::NodeId host, std::string_view name) const;
  // The port of `device` towards a neighbour, given by own interface, address or device name; also
  // with more behind it: "10.0.0.1+179", "10.0.0.1(leaf)", "fe80::1%swp1".
  model::LinkId towards(model::NodeId device, std::string_view neighbour) const;
  // What a device's local time is ahead of UTC.
  std::int64_t zone_ns(model::NodeId device) const { return zone_ns_[device]; }

 private:
  model::NodeId find_name(std::string_view name) const;
  std::uint32_t find_port(model::NodeId device, std::string_view name) const;
  model::LinkId find_neighbour(model::NodeId device, std::string_view neighbour) const;
  Status add_address(std::string_view address, model::NodeId device,
                     std::string_view interface_name, const Where& where);

  const model::Fabric* fabric_;
  NameTable devices_;  // owner 0; names and addresses
  NameTable ports_;    // owner: node
  NameTable nics_;     // owner: host
  NameTable ends_;     // owner 0: address -> link that leaves its device
  NameTable links_;    // owner: node; the neighbour's id as bytes -> link
  Column<model::NodeId, std::int64_t> zone_ns_;
};

}  // namespace weft::observe::telemetry
