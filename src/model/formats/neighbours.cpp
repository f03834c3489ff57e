#include "model/formats/neighbours.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace weft::model {
namespace {

using AddressOwners = std::map<std::string, std::vector<SeenCable::End>>;

std::string address_of(IpPrefix prefix) {
  prefix.length = prefix.bits();
  return prefix.text();
}

AddressOwners owners_of(std::span<const Neighbours> devices) {
  AddressOwners out;
  for (const Neighbours& one : devices)
    for (const PortAddress& at : one.addresses)
      out[address_of(at.address)].push_back({one.device, at.port});
  return out;
}

// The port in whose subnet the peer is: of several the one of the smallest.
const PortAddress* port_towards(const Neighbours& from, const IpPrefix& peer) {
  const PortAddress* out = nullptr;
  for (const PortAddress& at : from.addresses)
    if (at.address.covers(peer) && address_of(at.address) != peer.text() &&
        (out == nullptr || at.address.length > out->address.length))
      out = &at;
  return out;
}

void add_session(const Neighbours& from, const IpPrefix& peer, const AddressOwners& owners,
                 NeighbourCables& out) {
  const PortAddress* const near = port_towards(from, peer);
  const auto far = owners.find(peer.text());
  if (near == nullptr || far == owners.end() || far->second.size() != 1)
    ++out.unplaced;
  else
    out.cables.push_back({{from.device, near->port}, far->second.front()});
}

}  // namespace

NeighbourCables cables_of(std::span<const Neighbours> devices) {
  NeighbourCables out;
  std::map<std::string, std::string> named;
  for (const Neighbours& one : devices)
    if (!one.system_name.empty()) named.emplace(one.system_name, one.device);
  const AddressOwners owners = owners_of(devices);
  for (const Neighbours& one : devices) {
    for (const LldpNeighbour& row : one.lldp) {
      const auto known = named.find(row.device);
      out.cables.push_back({{one.device, row.port},
                            {known == named.end() ? row.device : known->second, row.device_port}});
    }
    for (const BgpSession& session : one.sessions)
      if (session.is_established) add_session(one, session.peer, owners, out);
  }
  out.cables = each_once(std::move(out.cables));
  return out;
}

}  // namespace weft::model
