// Cables as the devices at their ends see them, and how they differ from those of a fabric.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/fabric/fabric.hpp"

namespace weft::model {

struct SeenCable {
  struct End {
    std::string device, port;
    friend auto operator<=>(const End&, const End&) = default;
  };
  End a, b;
  friend auto operator<=>(const SeenCable&, const SeenCable&) = default;
};

// Each cable once, however many of its ends saw it, the lesser end first; ascending.
std::vector<SeenCable> each_once(std::vector<SeenCable> cables);

// As read_cable_list() takes them: a_device,a_port,b_device,b_port.
std::string to_cable_list(std::span<const SeenCable> cables);

struct CableDiff {
  enum class Kind : std::uint8_t {
    elsewhere,  // a port of the fabric leads to another place than in the fabric
    missing,    // in the fabric, and neither of its ends sees it, though both were heard
    extra,      // between devices of the fabric, by a port that the fabric does not have
  };
  struct Row {
    Kind kind = Kind::elsewhere;
    std::string port;  // "rtsw:3/Ethernet1"
    std::string seen;  // what it leads to: "ctsw:1/Ethernet4"; "": nothing
    std::string said;  // and what in the fabric; "": nothing
  };
  std::vector<Row> rows;
  std::size_t confirmed = 0;   // cables of the fabric that were seen as they are there
  std::size_t unverified = 0;  // of those nobody who was heard is at one of the ends
  std::size_t outside = 0;     // seen cables to devices that the fabric does not have
  std::size_t by_device = 0;   // of those confirmed: one end names no port that the fabric has
};
std::string_view to_text(CableDiff::Kind kind);

// `heard`: devices that were asked and answered; those that they see are heard as well. Devices are
// found by their names, else by what is before the first dot (LLDP often sends a whole domain
// name), ports by interface names; of a host, a port is a NIC's. Cables inside of hosts do not
// count. Cost: O((cables + seen) log ports).
CableDiff compare_cables(const Fabric& fabric, std::span<const SeenCable> seen,
                         std::span<const std::string> heard);

}  // namespace weft::model
