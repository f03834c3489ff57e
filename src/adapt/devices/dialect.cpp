#include "adapt/devices/dialect.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.hpp"

namespace weft::adapt::devices {
namespace {

using nlohmann::json;
using port::Service;

constexpr std::size_t interface_bytes_max = 64;

Level level_of(std::string_view word) {
  if (word == "up") return Level::up;
  return word == "down" ? Level::down : Level::unknown;
}

// What several parts of one switch come to.
Service joined(Service a, Service b) {
  if (a == b) return a;
  return a == Service::unknown || b == Service::unknown ? Service::unknown : Service::draining;
}

// A member that is an object; an empty one where there is none.
const json& object_in(const json& from, std::string_view key) {
  static const json none = json::object();
  const auto found = from.find(key);
  return found != from.end() && found->is_object() ? *found : none;
}
std::string text_in(const json& from, std::string_view key) {
  const auto found = from.find(key);
  return found != from.end() && found->is_string() ? found->get<std::string>() : std::string();
}
json parsed(const std::string& text) {
  json out = json::parse(text, nullptr, false);
  return out.is_object() ? out : json::object();
}

// "System Mode: Normal" of SONiC's TSC and of NX-OS; with several ASICs a line for each, and the
// name of the ASIC before it.
Service read_system_mode(Answers answers) {
  constexpr std::string_view mark = "System Mode:";
  std::optional<Service> out;
  for (const std::string_view line : split(answers[0], '\n')) {
    const std::size_t at = line.find(mark);
    if (at == std::string_view::npos) continue;
    const std::string_view mode = trim(line.substr(at + mark.size()));
    const Service one = mode == "Normal"           ? Service::in_service
                        : mode == "Maintenance"    ? Service::drained
                        : mode == "Not consistent" ? Service::draining
                                                   : Service::unknown;
    out = joined(out.value_or(one), one);
  }
  return out.value_or(Service::unknown);
}

PortState read_two_words(Answers answers) {
  return {level_of(trim(answers[0])), level_of(trim(answers[1]))};
}

// The built-in unit that holds the whole switch; it is not listed before it was first used.
Service read_eos_maintenance(Answers answers) {
  const json root = parsed(answers[0]);
  if (!root.contains("units") || !root["units"].is_object()) return Service::unknown;
  if (!root["units"].contains("System")) return Service::in_service;
  const std::string state = text_in(object_in(root["units"], "System"), "state");
  if (state == "active") return Service::in_service;
  if (state == "underMaintenance") return Service::drained;
  return state == "maintenanceModeEnter" || state == "maintenanceModeExit" ? Service::draining
                                                                           : Service::unknown;
}

// The one port that was asked for, by whatever name the switch has for it.
PortState read_eos_port(Answers answers) {
  const json root = parsed(answers[0]);
  const json& ports = object_in(root, "interfaceStatuses");
  if (ports.size() != 1 || !ports.begin()->is_object()) return {};
  const std::string status = text_in(*ports.begin(), "linkStatus");
  if (status == "connected") return {Level::up, Level::up};
  if (status == "disabled") return {Level::down, Level::down};
  return status == "notconnect" || status == "errdisabled" ? PortState{Level::up, Level::down}
                                                           : PortState{};
}

PortState read_nxos_port(Answers answers) {
  const json root = parsed(answers[0]);
  const json& row = object_in(object_in(root, "TABLE_interface"), "ROW_interface");
  return {level_of(text_in(row, "admin_state")), level_of(text_in(row, "state"))};
}

// Drained when every session of the default VRF is shut by configuration; before that, and after,
// neighbours may still be asked to go elsewhere (RFC 8326), which only the configuration tells.
Service read_frr_switch(Answers answers) {
  std::size_t peers = 0, shut = 0;
  const json root = parsed(answers[0]);
  for (const auto& family : root)
    if (family.is_object())
      for (const auto& peer : object_in(family, "peers")) {
        if (!peer.is_object() || text_in(peer, "state").empty()) return Service::unknown;
        ++peers;
        if (text_in(peer, "state") == "Idle (Admin)") ++shut;
      }
  // A configuration that is cut might hold anything.
  const std::vector<std::string_view> lines = split(trim(answers[1]), '\n');
  if (peers == 0 || lines.back() != "end") return Service::unknown;
  if (shut == peers) return Service::drained;
  const bool is_asked = std::ranges::any_of(
      lines, [](std::string_view line) { return trim(line) == "bgp graceful-shutdown"; });
  return shut > 0 || is_asked ? Service::draining : Service::in_service;
}

PortState read_frr_port(Answers answers) {
  const json root = parsed(answers[0]);
  if (root.size() != 1 || !root.begin()->is_object()) return {};
  PortState out{level_of(text_in(*root.begin(), "administrativeStatus")),
                level_of(text_in(*root.begin(), "operationalStatus"))};
  if (out.admin == Level::down) out.oper = Level::down;  // it does not say so then
  return out;
}

Service no_switch_state(Answers) { return Service::unknown; }

// Commands and outputs as these documents have them; what was tried on what: docs/actuators.md.
//   SONiC: Command Line Interface Guide (sonic-utilities); Schema data (sonic-swss); TSA, TSB and
//     TSC of docker-fpm-frr (sonic-buildimage).
//   EOS: User Manual, Maintenance Mode; Arista eAPI guide.
//   NX-OS: Nexus 9000 System Management Configuration Guide, Graceful Insertion and Removal;
//     Programmability Guide, NX-API CLI.
//   FRR: User Guide, BGP and Zebra; RFC 8326.
//   OpenConfig: openconfig-interfaces.yang.
std::vector<Dialect> table() {
  const std::string bgp = "vtysh -c 'configure terminal' -c 'router bgp' -c ";
  const std::string port = "vtysh -c 'configure terminal' -c 'interface {}' -c ";
  const std::string tree = "/interfaces/interface[name={}]/";
  return {
      {.name = "sonic",
       .transport = Transport::ssh,
       .drain = {{"sudo -n TSA"}},
       .undrain = {{"sudo -n TSB"}},
       .switch_state = {"sudo -n TSC"},
       .read_switch = read_system_mode,
       .shut = {"sudo -n config interface shutdown {}"},
       .open = {"sudo -n config interface startup {}"},
       .port_state = {"sonic-db-cli APPL_DB HGET PORT_TABLE:{} admin_status",
                      "sonic-db-cli APPL_DB HGET PORT_TABLE:{} oper_status"},
       .read_port = read_two_words},
      {.name = "eos",
       .transport = Transport::eapi,
       .drain = {{"enable", "configure", "maintenance", "unit System", "quiesce"}},
       .undrain = {{"enable", "configure", "maintenance", "unit System", "no quiesce"}},
       .switch_state = {"show maintenance"},
       .read_switch = read_eos_maintenance,
       .shut = {"enable", "configure", "interface {}", "shutdown"},
       .open = {"enable", "configure", "interface {}", "no shutdown"},
       .port_state = {"show interfaces {} status"},
       .read_port = read_eos_port},
      {.name = "nxos",
       .transport = Transport::nxapi,
       .drain = {{"terminal dont-ask", "configure terminal", "system mode maintenance"}},
       .undrain = {{"terminal dont-ask", "configure terminal", "no system mode maintenance"}},
       .switch_state = {"show system mode"},
       .read_switch = read_system_mode,
       .shut = {"configure terminal", "interface {}", "shutdown"},
       .open = {"configure terminal", "interface {}", "no shutdown"},
       .port_state = {"show interface {} | json"},
       .read_port = read_nxos_port},
      {.name = "frr",
       .transport = Transport::ssh,
       .drain = {{bgp + "'bgp graceful-shutdown'"}, {bgp + "'bgp shutdown'"}},
       .undrain = {{bgp + "'no bgp shutdown'"}, {bgp + "'no bgp graceful-shutdown'"}},
       .switch_state = {"vtysh -c 'show bgp summary json'", "vtysh -c 'show running-config bgpd'"},
       .read_switch = read_frr_switch,
       .shut = {port + "'shutdown'"},
       .open = {port + "'no shutdown'"},
       .port_state = {"vtysh -c 'show interface {} json'"},
       .read_port = read_frr_port},
      {.name = "openconfig",
       .transport = Transport::gnmi,
       .drain = {},
       .undrain = {},
       .switch_state = {},
       .read_switch = no_switch_state,
       .shut = {"set " + tree + "config/enabled false"},
       .open = {"set " + tree + "config/enabled true"},
       .port_state = {"get " + tree + "state/admin-status", "get " + tree + "state/oper-status"},
       .read_port = read_two_words},
  };
}

}  // namespace

std::span<const Dialect> dialects() {
  static const std::vector<Dialect> all = table();
  return all;
}

Result<const Dialect*> find_dialect(const Token& name) {
  std::vector<std::string_view> names;
  for (const Dialect& one : dialects()) names.push_back(one.name);
  WEFT_TRY(const std::size_t at, find_name(name, names));
  return &dialects()[at];
}

Result<Commands> of_port(const Commands& commands, std::string_view interface_name) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto is_allowed = [&](char c) {
    return is_letter(c) || (c >= '0' && c <= '9') ||
           std::string_view("._/:-").find(c) != std::string_view::npos;
  };
  if (interface_name.empty() || interface_name.size() > interface_bytes_max ||
      !is_letter(interface_name.front()) || !std::ranges::all_of(interface_name, is_allowed))
    return fail(Errc::value, {},
                "the interface name " + quote(interface_name) + " is not sent to a switch",
                "use letters, digits and ._/:- in the fabric's interface names, a letter first");
  Commands out = commands;
  for (std::string& command : out)
    for (std::size_t at = 0; (at = command.find("{}", at)) != std::string::npos;
         at += interface_name.size())
      command.replace(at, 2, interface_name);
  return out;
}

}  // namespace weft::adapt::devices
