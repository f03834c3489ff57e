// What switches hash, and with which function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/fabric/fabric.hpp"
#include "route/router.hpp"

namespace weft::route {

// RoCEv2: UDP to this port (InfiniBand Architecture Specification, annex A17).
inline constexpr std::uint16_t roce_port = 4791;
inline constexpr std::uint8_t udp_protocol = 17;

// The fields of a packet that a hash may read; the protocol is constant.
struct FlowHeader {
  std::uint32_t src_address = 0, dst_address = 0;
  std::uint16_t src_port = 0;
  std::uint32_t dst_qp = 0;  // 24 bits
  std::uint16_t dst_port = roce_port;

  friend bool operator==(const FlowHeader&, const FlowHeader&) = default;
};

// Addresses are those of the fabric; the source port is one per pair of NICs, from the range 49152
// and up, as NICs hardly vary it between QPs; QP numbers of a connection are consecutive and start
// anywhere in the 24 bits, as an allocator would hand them out.
FlowHeader header_of(const model::Fabric& fabric, model::NodeId src, model::NodeId dst,
                     std::uint32_t qp);
// The same from the two addresses, as addresses_of() lists them for all nodes.
FlowHeader header_between(std::uint32_t src_address, std::uint32_t dst_address, std::uint32_t qp);
Column<model::NodeId, std::uint32_t> addresses_of(const model::Fabric& fabric);

// The same two ends, with any other UDP traffic between them.
FlowHeader header_of(const model::Fabric& fabric, model::NodeId src, model::NodeId dst,
                     const UdpPorts& ports);

enum class QpField : std::uint8_t { ignored, hashed };

// QPs that are told apart by their UDP source port, as central traffic engineering does: the first
// has that of its pair of NICs, the others the next ones, from 65535 on to 49152. `qp` below 16384.
std::uint16_t port_of_qp(const model::Fabric& fabric, model::NodeId src, model::NodeId dst,
                         std::uint32_t qp);
std::uint32_t qp_of_port(const model::Fabric& fabric, model::NodeId src, model::NodeId dst,
                         std::uint16_t port);

// A hash function of switches, in two steps so that the header is read once per flow.
struct HashFunction {
  std::string_view name;
  std::uint64_t (*digest)(const FlowHeader& header, QpField qp);
  // 64 bits to choose by, at a switch with this seed; a crc32 fills the upper 32 and leaves 0s.
  std::uint64_t (*at_switch)(std::uint64_t digest, std::uint64_t seed);
};

// nullptr for an unknown name.
const HashFunction* find_hash(std::string_view name);
std::vector<std::string> hash_names();

// CRC-32 as of IEEE 802.3 (reflected polynomial 0xEDB88320), continued from `crc`.
std::uint32_t crc32(std::uint32_t crc, const std::uint8_t* bytes, std::size_t count);

// `bits` scaled to [0, count): the share of each outcome differs from 1 / count by less than 2^-32
// (crc32) or 2^-64 (mix64) of the whole, for any count.
constexpr std::size_t scale(std::uint64_t bits, std::size_t count) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::size_t>((Wide{bits} * count) >> 64);
}

}  // namespace weft::route
