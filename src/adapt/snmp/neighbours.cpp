#include "adapt/snmp/neighbours.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "base/text.hpp"

namespace weft::adapt::snmp {

namespace {

const Oid local_name{1, 0, 8802, 1, 1, 2, 1, 3, 3};
const Oid local_ports{1, 0, 8802, 1, 1, 2, 1, 3, 7, 1};  // lldpLocPortEntry, by port number
const Oid remotes{1, 0, 8802, 1, 1, 2, 1, 4, 1, 1};  // lldpRemEntry, by time mark, port and index
enum LocalColumn : std::uint32_t { local_kind = 2, local_id = 3, local_description = 4 };
enum RemoteColumn : std::uint32_t {
  chassis_kind = 4,
  chassis_id = 5,
  port_kind = 6,
  port_id = 7,
  port_description = 8,
  system_name = 9
};
// LldpPortIdSubtype and LldpChassisIdSubtype.
constexpr std::int64_t port_is_mac = 3, port_is_name = 5, chassis_is_mac = 4;
constexpr std::size_t mac_bytes = 6;

const Oid bgp_peer_state{1, 3, 6, 1, 2, 1, 15, 3, 1, 2};  // by the peer's address
constexpr std::int64_t bgp_established = 6;
const Oid address_interface{1, 3, 6, 1, 2, 1, 4, 20, 1, 2};  // ipAdEntIfIndex, by address
const Oid address_mask{1, 3, 6, 1, 2, 1, 4, 20, 1, 3};       // ipAdEntNetMask

std::vector<Oid> columns(const Oid& entry, std::uint32_t first, std::uint32_t last) {
  std::vector<Oid> out;
  for (std::uint32_t column = first; column <= last; ++column) {
    out.push_back(entry);
    out.back().push_back(column);
  }
  return out;
}

using Row = std::map<std::uint32_t, Value>;  // by column

std::map<Oid, Row> rows_of(const Oid& entry, const Answers& answers) {
  std::map<Oid, Row> out;
  for (const auto& [oid, value] : answers)
    if (starts_with(oid, entry) && oid.size() > entry.size() + 1) {
      const auto column = oid.begin() + static_cast<std::ptrdiff_t>(entry.size());
      out[Oid(column + 1, oid.end())][*column] = value;
    }
  return out;
}

std::string text_at(const Row& row, std::uint32_t column) {
  const auto at = row.find(column);
  return at == row.end() ? std::string() : std::string(trim(shown(at->second)));
}

std::string id_at(const Row& row, std::uint32_t column, bool is_mac) {
  const auto at = row.find(column);
  if (at == row.end()) return {};
  const std::string& bytes = at->second.text;
  if (!is_mac || bytes.size() != mac_bytes) return text_at(row, column);
  std::string out;
  for (const char byte : bytes)
    out += fmt::format("{}{:02x}", out.empty() ? "" : ":", static_cast<unsigned char>(byte));
  return out;
}

std::string port_name(const Row& row, std::uint32_t kind, std::uint32_t id,
                      std::uint32_t description) {
  const auto at = row.find(kind);
  const std::int64_t subtype = at == row.end() ? 0 : at->second.integer;
  std::string described = text_at(row, description);
  if (subtype != port_is_name && !described.empty()) return described;
  std::string named = id_at(row, id, subtype == port_is_mac);
  return named.empty() ? described : named;
}

// The address that follows `column`.
std::optional<IpPrefix> address_after(const Oid& column, const Oid& oid) {
  constexpr std::size_t parts = 4;
  if (!starts_with(oid, column) || oid.size() != column.size() + parts) return std::nullopt;
  IpPrefix out{.length = 32};
  for (std::size_t i = 0; i < parts; ++i) {
    const std::uint32_t part = oid[column.size() + i];
    if (part > 255) return std::nullopt;
    out.bytes[i] = static_cast<std::uint8_t>(part);
  }
  return out;
}

// Of a mask's four bytes; all bits where it is none.
unsigned length_of_mask(const std::string& mask) {
  unsigned out = 0;
  for (const char byte : mask.substr(0, 4))
    out += static_cast<unsigned>(std::popcount(static_cast<unsigned char>(byte)));
  return mask.size() == 4 && out > 0 ? out : 32;
}

std::map<std::uint32_t, std::string> interface_names(const Answers& answers) {
  std::map<std::uint32_t, std::string> out;
  for (const Oid& column : {if_descr, if_name})
    for (const auto& [oid, value] : answers)
      if (starts_with(oid, column) && oid.size() == column.size() + 1)
        if (const std::string name(trim(shown(value))); !name.empty()) out[oid.back()] = name;
  return out;
}

}  // namespace

const std::vector<Group>& neighbour_groups(model::NeighbourProtocol by) {
  static const std::vector<Group> lldp{
      {"system", {local_name}},
      {"local ports", columns(local_ports, local_kind, local_description)},
      {"neighbours", columns(remotes, chassis_kind, system_name)}};
  static const std::vector<Group> bgp{{"sessions", {bgp_peer_state}},
                                      {"addresses", {address_interface, address_mask}},
                                      {"interfaces", {if_descr, if_name}}};
  return by == model::NeighbourProtocol::lldp ? lldp : bgp;
}

model::Neighbours lldp_neighbours(const std::vector<Answered>& answers) {
  model::Neighbours out;
  std::map<std::uint32_t, std::string> ports;
  for (const Answered& group : answers) {
    for (const auto& [oid, value] : group.values)
      if (starts_with(oid, local_name)) out.system_name = trim(shown(value));
    for (const auto& [index, row] : rows_of(local_ports, group.values))
      ports[index.back()] = port_name(row, local_kind, local_id, local_description);
  }
  for (const Answered& group : answers)
    for (const auto& [index, row] : rows_of(remotes, group.values)) {
      if (index.size() != 3) continue;
      const auto port = ports.find(index[1]);
      const auto kind = row.find(chassis_kind);
      const bool is_mac = kind != row.end() && kind->second.integer == chassis_is_mac;
      std::string device = text_at(row, system_name);
      if (device.empty()) device = id_at(row, chassis_id, is_mac);
      if (device.empty()) continue;
      out.lldp.push_back({port == ports.end() ? std::to_string(index[1]) : port->second,
                          std::move(device), port_name(row, port_kind, port_id, port_description)});
    }
  std::ranges::sort(out.lldp, {}, [](const model::LldpNeighbour& row) {
    return std::tie(row.port, row.device, row.device_port);
  });
  return out;
}

model::Neighbours bgp_neighbours(const std::vector<Answered>& answers) {
  model::Neighbours out;
  Answers all;
  for (const Answered& group : answers) all.insert(group.values.begin(), group.values.end());
  const std::map<std::uint32_t, std::string> names = interface_names(all);
  for (const auto& [oid, value] : all) {
    if (const auto peer = address_after(bgp_peer_state, oid))
      out.sessions.push_back({*peer, value.integer == bgp_established});
    auto address = address_after(address_interface, oid);
    const auto name = address ? names.find(static_cast<std::uint32_t>(value.integer)) : names.end();
    if (name == names.end()) continue;
    Oid mask_of = address_mask;
    mask_of.insert(mask_of.end(), oid.end() - 4, oid.end());
    const auto mask = all.find(mask_of);
    if (mask != all.end()) address->length = length_of_mask(mask->second.text);
    out.addresses.push_back({name->second, *address});
  }
  return out;
}

}  // namespace weft::adapt::snmp
