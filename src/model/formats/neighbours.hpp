// What devices know of those at the other ends of their cables, and the cables that follow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/ip_prefix.hpp"
#include "model/formats/seen_cables.hpp"

namespace weft::model {

// By which protocol: LLDP names both ports; BGP is where LLDP is off, and needs the interfaces'
// addresses beside it.
enum class NeighbourProtocol : std::uint8_t { lldp, bgp };

struct LldpNeighbour {
  std::string port;         // of the device that was asked
  std::string device;       // system name, else chassis id
  std::string device_port;  // "" where it does not say
};

struct BgpSession {
  IpPrefix peer;  // an address
  bool is_established = false;
};

struct PortAddress {
  std::string port;
  IpPrefix address;  // with the length of its subnet
};

// Of one device.
struct Neighbours {
  std::string device;       // as it was called when asked
  std::string system_name;  // as it calls itself; "" where it does not say
  std::vector<LldpNeighbour> lldp;
  std::vector<BgpSession> sessions;
  std::vector<PortAddress> addresses;
};

struct NeighbourCables {
  std::vector<SeenCable> cables;  // as each_once() has them
  // Established sessions, as each end sees them, of which no cable follows: over no subnet of an
  // interface (between loopbacks), or with an address that none of the devices has, or several.
  std::size_t unplaced = 0;
};

// LLDP: a neighbour that calls itself as one of `devices` does is that one. BGP: an established
// session runs from the port in whose subnet the peer's address lies to the port that has the
// address. Cost: O(n log n) in rows; a session looks at all addresses of its device.
NeighbourCables cables_of(std::span<const Neighbours> devices);

}  // namespace weft::model
