// Addresses, ports and classes as people write them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "base/text.hpp"
#include "model/fabric/fabric.hpp"
#include "port/probe_io.hpp"

namespace weft::observe::probe {

inline constexpr std::uint16_t default_port = 8620;
inline constexpr std::size_t port_count_max = 1024;

struct PortRange {
  std::uint16_t first = 0, last = 0;
  std::size_t count() const { return std::size_t{last} - first + 1; }
};

// "10.0.0.1" or "10.0.0.1:8620"; IPv4 only. Fails: Errc::parse.
Result<port::Endpoint> parse_endpoint(const Token& token, std::uint16_t port = default_port);
// "49152" or "49152-49215", at most port_count_max ports, none of them 0. Fails: Errc::parse.
Result<PortRange> parse_ports(const Token& token);
// "10.0.0.1", "10.0.0.1:8620" or "10.0.0.1:8620-8623": each port. Fails: Errc::parse.
Result<std::vector<port::Endpoint>> parse_listen(const Token& token);
Result<std::uint32_t> parse_address(const Token& token);
// Rows of a CSV with the columns node and address, in their order; a node may have several. Fails:
// Errc::io, Errc::parse, Errc::unknown for nodes that the fabric does not have, Errc::value.
Result<std::vector<std::pair<model::NodeId, std::uint32_t>>> read_address_rows(
    const model::Fabric& fabric, const std::string& path);

// A traffic class: its name in results and the DSCP of its probes.
struct TrafficClass {
  std::string name;
  std::uint8_t dscp = 0;
};
// "26" or "lossy=26". Fails: Errc::parse.
Result<TrafficClass> parse_class(const Token& token);

std::string to_text(const port::Endpoint& endpoint);

}  // namespace weft::observe::probe
