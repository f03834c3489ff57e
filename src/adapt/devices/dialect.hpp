// What switches are told so that they, or ports of them, go out of service; what they are asked,
// and what their answers mean.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/names.hpp"
#include "base/result.hpp"
#include "port/actuator.hpp"

namespace weft::adapt::devices {

enum class Transport : std::uint8_t {
  ssh,    // a command line of a shell each
  eapi,   // Arista eAPI: JSON-RPC over HTTPS, all commands in one request
  nxapi,  // Cisco NX-API: the same, a call for each command
  gnmi,   // "set PATH true|false" and "get PATH"
};
inline constexpr auto transport_names =
    std::to_array<std::string_view>({"ssh", "eapi", "nxapi", "gnmi"});
constexpr std::span<const std::string_view> names_of(Transport) { return transport_names; }
constexpr std::string_view to_text(Transport transport) { return name_of(transport); }

enum class Level : std::uint8_t { unknown, down, up };

struct PortState {
  Level admin = Level::unknown;  // what it is configured to be
  Level oper = Level::unknown;   // whether it has a signal and carries packets
  friend bool operator==(const PortState&, const PortState&) = default;
};

using Commands = std::vector<std::string>;
using Answers = std::span<const std::string>;  // one for each command

struct Dialect {
  std::string_view name;
  Transport transport;
  // Of the whole switch, in steps: between two of them traffic gets time to go elsewhere. Empty: it
  // has no such commands.
  std::vector<Commands> drain, undrain;
  Commands switch_state;
  port::Service (*read_switch)(Answers);
  // Of one port, where "{}" stands for its name.
  Commands shut, open, port_state;
  PortState (*read_port)(Answers);
};

// sonic, eos, nxos, frr, openconfig. Answers that are cut or not understood read as unknown.
std::span<const Dialect> dialects();
// Fails: Errc::unknown, with the nearest name.
Result<const Dialect*> find_dialect(const Token& name);

// With the name of a port filled in. Fails: Errc::value for a name that might mean something to a
// shell or a parser: letters, digits and "._/:-" are allowed, a letter first, up to 64.
Result<Commands> of_port(const Commands& commands, std::string_view interface_name);

}  // namespace weft::adapt::devices
