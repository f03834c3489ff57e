#include "adapt/gnmi/neighbours.hpp"

#include <optional>
#include <variant>

#include "adapt/gnmi/read_value.hpp"
#include "base/ip_prefix.hpp"

namespace weft::adapt::gnmi {
namespace {

constexpr std::string_view
    lldp_system = "lldp/state/system-name",
    lldp_rows = "lldp/interfaces/interface/neighbors/neighbor/state/",
    bgp_state =
        "network-instances/network-instance/protocols/protocol/bgp/neighbors/neighbor/state/"
        "session-state",
    address_start = "interfaces/interface/subinterfaces/subinterface/",
    address_end = "/addresses/address/state/prefix-length";

// "" where the leaf has no such key.
std::string entry_key(const Leaf& leaf, std::string_view element, std::string_view name) {
  for (const PathKey& key : leaf.keys)
    if (key.element == element && key.name == name) return std::string(key.value);
  return {};
}

// An address that is the same on no other link.
std::optional<IpPrefix> global_address(const std::string& text) {
  const auto out = parse_ip_prefix({text, {}});
  if (!out || out->length != out->bits()) return std::nullopt;
  const bool is_of_one_link =
      out->family == IpFamily::ipv6 && out->bytes[0] == 0xfe && (out->bytes[1] & 0xc0) == 0x80;
  return is_of_one_link ? std::nullopt : std::optional(*out);
}

}  // namespace

std::vector<Subscription> neighbour_subscriptions(model::NeighbourProtocol by) {
  if (by == model::NeighbourProtocol::lldp)
    return {{"/lldp/state/system-name"},
            {"/lldp/interfaces/interface[name=*]/neighbors/neighbor[id=*]/state"}};
  const std::string subinterface =
      "/interfaces/interface[name=*]/subinterfaces/subinterface[index=*]";
  return {{"/network-instances/network-instance[name=*]/protocols/protocol[identifier=BGP][name=*]/"
           "bgp/neighbors/neighbor[neighbor-address=*]/state/session-state"},
          {subinterface + "/ipv4/addresses/address[ip=*]/state"},
          {subinterface + "/ipv6/addresses/address[ip=*]/state"}};
}

template <class Map>
typename Map::mapped_type* NeighbourReader::row_of(Map& map, const typename Map::key_type& key) {
  const auto at = map.find(key);
  if (at != map.end()) return &at->second;
  if (map.size() < rows_max) return &map[key];
  ++left_out_;
  return nullptr;
}

void NeighbourReader::take_lldp(Device& of, const Leaf& leaf, std::string_view name,
                                std::string_view text) {
  const std::string port = entry_key(leaf, "interface", "name");
  if (port.empty()) return;
  Row* const row = row_of(of.lldp, {port, entry_key(leaf, "neighbor", "id")});
  if (row == nullptr) return;
  if (name == "system-name") row->system = text;
  if (name == "chassis-id") row->chassis = text;
  if (name == "port-id") row->port = text;
  if (name == "port-id-type") row->port_kind = to_name(leaf.value).value_or("");
  if (name == "port-description") row->port_description = text;
}

void NeighbourReader::take(std::string_view device, const Leaf& leaf) {
  auto at = devices_.find(device);
  if (at == devices_.end()) at = devices_.emplace(device, Device()).first;
  Device& of = at->second;
  const auto* const text = std::get_if<std::string_view>(&leaf.value);
  if (leaf.path.starts_with(address_start) && leaf.path.ends_with(address_end)) {
    const auto length = to_number(leaf.value);
    const std::string port = entry_key(leaf, "interface", "name");
    if (!length || *length < 0 || *length > 128 || port.empty()) return;
    if (auto* entry = row_of(of.addresses, {port, entry_key(leaf, "address", "ip")}))
      *entry = static_cast<unsigned>(*length);
  } else if (text == nullptr) {
    return;
  } else if (leaf.path == lldp_system) {
    of.system_name = *text;
  } else if (leaf.path.starts_with(lldp_rows)) {
    take_lldp(of, leaf, leaf.path.substr(lldp_rows.size()), *text);
  } else if (leaf.path == bgp_state) {
    if (auto* entry = row_of(of.sessions, entry_key(leaf, "neighbor", "neighbor-address")))
      *entry = to_name(leaf.value) == "ESTABLISHED";
  }
}

std::vector<model::Neighbours> NeighbourReader::finish() const {
  std::vector<model::Neighbours> out;
  for (const auto& [name, device] : devices_) {
    model::Neighbours& made = out.emplace_back();
    made.device = name;
    made.system_name = device.system_name;
    for (const auto& [key, row] : device.lldp) {
      const bool is_described = row.port_kind != "INTERFACE_NAME" && !row.port_description.empty();
      const std::string& far = row.system.empty() ? row.chassis : row.system;
      if (!far.empty())
        made.lldp.push_back(
            {key.first, far, is_described || row.port.empty() ? row.port_description : row.port});
    }
    for (const auto& [peer, is_established] : device.sessions)
      if (const auto address = global_address(peer))
        made.sessions.push_back({*address, is_established});
    for (const auto& [key, length] : device.addresses)
      if (auto address = global_address(key.second); address && length <= address->bits()) {
        address->length = length;
        made.addresses.push_back({key.first, *address});
      }
  }
  return out;
}

}  // namespace weft::adapt::gnmi
