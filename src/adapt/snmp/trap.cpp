#include "adapt/snmp/trap.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "model/events/entity.hpp"

namespace weft::adapt::snmp {

using model::EventKind;

namespace {

// SNMPv2-MIB and IF-MIB (RFC 3418, RFC 2863); BGP4-MIB's old and new places (RFC 1657, RFC 4273).
const Oid cold_start{1, 3, 6, 1, 6, 3, 1, 1, 5, 1};
const Oid link_down{1, 3, 6, 1, 6, 3, 1, 1, 5, 3};
const Oid link_up{1, 3, 6, 1, 6, 3, 1, 1, 5, 4};
const Oid bgp_up_old{1, 3, 6, 1, 2, 1, 15, 7, 1};
const Oid bgp_down_old{1, 3, 6, 1, 2, 1, 15, 7, 2};
const Oid bgp_up{1, 3, 6, 1, 2, 1, 15, 0, 1};
const Oid bgp_down{1, 3, 6, 1, 2, 1, 15, 0, 2};
const Oid if_index{1, 3, 6, 1, 2, 1, 2, 2, 1, 1};
const Oid peer_table{1, 3, 6, 1, 2, 1, 15, 3, 1};
constexpr std::size_t message_bytes_max = 2'048;

// The first value below `column`.
const std::pair<Oid, Value>* find(const VarBinds& values, const Oid& column) {
  for (const auto& value : values)
    if (starts_with(value.first, column)) return &value;
  return nullptr;
}

EventKind kind_of(const Oid& trap) {
  if (trap == link_down) return EventKind::link_down;
  if (trap == link_up) return EventKind::link_up;
  if (trap == cold_start) return EventKind::device_boot;
  if (trap == bgp_down || trap == bgp_down_old) return EventKind::bgp_down;
  if (trap == bgp_up || trap == bgp_up_old) return EventKind::bgp_up;
  return EventKind::info;
}

std::string message_of(const Trap& trap) {
  std::string out;
  for (const auto& [oid, value] : trap.values) {
    if (out.size() > message_bytes_max) break;
    out += fmt::format("{}{}={}", out.empty() ? "" : " ", to_text(oid), shown(value));
  }
  return out.substr(0, message_bytes_max);
}

// Index parts behind "table.column": an IPv4 address.
std::string neighbour_of(const VarBinds& values) {
  const auto* const row = find(values, peer_table);
  if (row == nullptr || row->first.size() != peer_table.size() + 5) return {};
  return to_text(Oid(row->first.end() - 4, row->first.end()));
}

}  // namespace

bool changes_state(const Trap& trap) { return kind_of(trap.kind) != EventKind::info; }

TrapTargets::TrapTargets(const observe::telemetry::Inventory& inventory,
                         std::span<const Target> targets)
    : inventory_(inventory) {
  for (const Target& target : targets) {
    model::NodeId node = inventory.device(target.device);
    if (!node.valid()) node = inventory.device(target.agent.address);
    if (node.valid()) by_node_.emplace(node, target.device);
    by_address_.emplace(target.agent.address, target.device);
  }
}

std::string TrapTargets::of(std::string_view device) const {
  const auto node = by_node_.find(inventory_.device(device));
  if (node != by_node_.end()) return node->second;
  const auto address = by_address_.find(device);
  return address == by_address_.end() ? std::string() : address->second;
}

std::string TrapTargets::of(const Trap& trap) const { return of(trap.from); }

TrapReader::TrapReader(const observe::telemetry::Inventory& inventory, InterfaceName interface_name,
                       std::string id_prefix)
    : inventory_(inventory),
      interface_name_(std::move(interface_name)),
      id_prefix_(std::move(id_prefix)) {}

model::RecordSet TrapReader::take_records() { return std::exchange(set_, {}); }

void TrapReader::place(model::LinkId link, model::NodeId device, const std::string& name,
                       model::Record& row, model::Attributes& attributes) {
  if (link.valid()) {
    row.entity = model::port_of(link);
    return;
  }
  ++counts_.unknown_ports;
  row.entity = {};
  attributes.emplace_back("entity", fmt::format("{}/{}", inventory_.fabric().name(device), name));
}

void TrapReader::take_link(const Trap& trap, model::NodeId device, model::Record& row,
                           model::Attributes& attributes) {
  std::string name;
  const auto* const index = find(trap.values, if_index);
  const auto* const given = find(trap.values, if_name);
  const auto* const descr = find(trap.values, if_descr);
  if (given != nullptr) name = shown(given->second);
  if (name.empty() && descr != nullptr) name = shown(descr->second);
  const std::string number = index == nullptr ? std::string("?") : shown(index->second);
  if (name.empty() && index != nullptr && interface_name_)
    if (const auto at = snmp::number(index->second); at && *at >= 0 && *at < 4e9)
      name = interface_name_(inventory_.fabric().name(device), static_cast<std::uint32_t>(*at));
  if (name.empty()) name = "ifIndex " + number;
  const bool is_host = inventory_.fabric().kind(device) == model::NodeKind::host;
  if (const model::NodeId nic = inventory_.nic(device, name); is_host && nic.valid()) {
    row.entity = model::entity(nic);
    row.kind = row.kind == EventKind::link_down ? EventKind::nic_down : EventKind::nic_up;
  } else {
    place(inventory_.port(device, name), device, name, row, attributes);
  }
  const auto* const admin = find(trap.values, if_admin);
  if (row.kind == EventKind::link_down && admin != nullptr &&
      snmp::number(admin->second) == 2.0)  // down(2)
    attributes.emplace_back("reason", "policy");
}

void TrapReader::take_session(const Trap& trap, model::NodeId device, model::Record& row,
                              model::Attributes& attributes) {
  const std::string neighbour = neighbour_of(trap.values);
  place(inventory_.towards(device, neighbour), device, neighbour, row, attributes);
}

void TrapReader::take(const Trap& trap) {
  ++counts_.traps;
  model::Record row;
  row.t = row.until = row.received = trap.received;
  row.source = model::Source::snmp;
  row.kind = kind_of(trap.kind);
  row.id = set_.add_id(fmt::format("{}{}", id_prefix_, counts_.traps));
  model::Attributes attributes;
  const model::NodeId device = inventory_.device(trap.from);
  if (row.kind == EventKind::info)
    ++counts_.unknown_kinds;
  else
    ++counts_.known;
  if (device.valid()) {
    row.entity = model::entity(device);
    if (row.kind == EventKind::link_down || row.kind == EventKind::link_up)
      take_link(trap, device, row, attributes);
    else if (row.kind == EventKind::bgp_down || row.kind == EventKind::bgp_up)
      take_session(trap, device, row, attributes);
    else if (row.kind == EventKind::device_boot &&
             inventory_.fabric().kind(device) == model::NodeKind::host)
      row.kind = EventKind::host_boot;
  } else {
    ++counts_.unknown_devices;
    attributes.emplace_back("entity", trap.from);
  }
  if (row.kind == EventKind::info || !device.valid()) {
    attributes.emplace_back("trap", to_text(trap.kind));
    attributes.emplace_back("message", message_of(trap));
  }
  row.attrs = set_.add_attributes(std::move(attributes));
  set_.rows.push_back(row);
}

}  // namespace weft::adapt::snmp
