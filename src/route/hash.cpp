#include "route/hash.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "base/hash.hpp"

namespace weft::route {
namespace {

constexpr std::array<std::uint32_t, 256> make_crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xEDB88320u : 0u);
    table[byte] = crc;
  }
  return table;
}
constexpr std::array<std::uint32_t, 256> crc_table = make_crc_table();

std::uint64_t digest_mix64(const FlowHeader& header, QpField qp) {
  const std::uint64_t addresses = std::uint64_t{header.src_address} << 32 | header.dst_address;
  std::uint64_t rest =
      std::uint64_t{header.src_port} << 24 | std::uint64_t{header.dst_port} << 8 | udp_protocol;
  if (qp == QpField::hashed) rest |= std::uint64_t{header.dst_qp} << 40;
  return mix64(mix64(addresses) ^ rest);
}

std::uint64_t mix64_at_switch(std::uint64_t digest, std::uint64_t seed) {
  return mix64(digest ^ seed);
}

// The bytes in the order in which they stand in the packet.
std::uint64_t digest_crc32(const FlowHeader& header, QpField qp) {
  std::array<std::uint8_t, 16> bytes{};
  std::size_t count = 0;
  const auto put = [&](std::uint32_t value, int width) {
    for (int shift = 8 * (width - 1); shift >= 0; shift -= 8)
      bytes[count++] = static_cast<std::uint8_t>(value >> shift);
  };
  put(udp_protocol, 1);
  put(header.src_address, 4);
  put(header.dst_address, 4);
  put(header.src_port, 2);
  put(header.dst_port, 2);
  if (qp == QpField::hashed) put(header.dst_qp, 3);
  return crc32(0, bytes.data(), count);
}

// A start value changes the CRC of messages of one length by a constant, so the seed is XORed in;
// by itself that would leave the choices of two switches dependent, which is why switches also
// differ in the bit from which they read.
std::uint64_t crc32_at_switch(std::uint64_t digest, std::uint64_t seed) {
  const auto crc = static_cast<std::uint32_t>(digest ^ seed);
  return std::uint64_t{std::rotl(crc, static_cast<int>(seed >> 59))} << 32;
}

constexpr std::array<HashFunction, 2> hash_functions{{
    {"mix64", digest_mix64, mix64_at_switch},
    {"crc32", digest_crc32, crc32_at_switch},
}};

// Back-end NICs have the fabric's addresses; other ends get one of a block of their own.
std::uint32_t address_of(const model::Fabric& fabric, model::NodeId node) {
  const std::uint32_t index = fabric.role_index(node);
  const bool back_end = index < fabric.nics().size() && fabric.nics()[index] == node;
  return back_end ? fabric.address(node) : 0xC0000000u + node.value;
}

// Ports are 49152 to 65535.
constexpr std::uint32_t last_port = 0x3FFF;
constexpr std::uint16_t port_from(std::uint32_t number) {
  return static_cast<std::uint16_t>(0xC000u | (number & last_port));
}

}  // namespace

std::uint32_t crc32(std::uint32_t crc, const std::uint8_t* bytes, std::size_t count) {
  crc = ~crc;
  for (std::size_t i = 0; i < count; ++i) crc = (crc >> 8) ^ crc_table[(crc ^ bytes[i]) & 0xFF];
  return ~crc;
}

FlowHeader header_of(const model::Fabric& fabric, model::NodeId src, model::NodeId dst,
                     std::uint32_t qp) {
  return header_between(address_of(fabric, src), address_of(fabric, dst), qp);
}

FlowHeader header_between(std::uint32_t src_address, std::uint32_t dst_address, std::uint32_t qp) {
  FlowHeader header{.src_address = src_address, .dst_address = dst_address};
  const std::uint64_t pair = mix64(std::uint64_t{header.src_address} << 32 | header.dst_address);
  header.src_port = port_from(static_cast<std::uint32_t>(pair & last_port));
  header.dst_qp = static_cast<std::uint32_t>((pair >> 32) + qp) & 0xFFFFFFu;
  return header;
}

Column<model::NodeId, std::uint32_t> addresses_of(const model::Fabric& fabric) {
  Column<model::NodeId, std::uint32_t> addresses(fabric.node_count());
  for (const model::NodeId node : fabric.nodes()) addresses[node] = address_of(fabric, node);
  return addresses;
}

std::uint16_t port_of_qp(const model::Fabric& fabric, model::NodeId src, model::NodeId dst,
                         std::uint32_t qp) {
  return port_from(header_of(fabric, src, dst, 0).src_port + qp);
}

std::uint32_t qp_of_port(const model::Fabric& fabric, model::NodeId src, model::NodeId dst,
                         std::uint16_t port) {
  return (std::uint32_t{port} - header_of(fabric, src, dst, 0).src_port) & last_port;
}

FlowHeader header_of(const model::Fabric& fabric, model::NodeId src, model::NodeId dst,
                     const UdpPorts& ports) {
  return {.src_address = address_of(fabric, src),
          .dst_address = address_of(fabric, dst),
          .src_port = ports.src,
          .dst_port = ports.dst};
}

const HashFunction* find_hash(std::string_view name) {
  const auto* row = std::ranges::find(hash_functions, name, &HashFunction::name);
  return row == hash_functions.end() ? nullptr : row;
}

std::vector<std::string> hash_names() {
  std::vector<std::string> names;
  for (const HashFunction& row : hash_functions) names.emplace_back(row.name);
  return names;
}

}  // namespace weft::route
