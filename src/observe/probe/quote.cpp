#include "observe/probe/quote.hpp"

namespace weft::observe::probe {
namespace {

constexpr std::size_t ip_bytes_min = 20, icmp_bytes = 8, udp_bytes = 8;
constexpr std::uint8_t protocol_icmp = 1, protocol_udp = 17;
constexpr std::uint8_t type_unreachable = 3, type_exceeded = 11;

std::uint32_t number(std::span<const std::byte> bytes, std::size_t at, std::size_t count) {
  std::uint32_t out = 0;
  for (std::size_t i = 0; i < count; ++i)
    out = out << 8 | std::to_integer<std::uint32_t>(bytes[at + i]);
  return out;
}

// What is behind an IPv4 header of that protocol, with its addresses.
struct Inside {
  std::uint32_t src = 0, dst = 0;
  std::span<const std::byte> rest;
};
std::optional<Inside> open_ip(std::span<const std::byte> bytes, std::uint8_t protocol) {
  if (bytes.size() < ip_bytes_min) return std::nullopt;
  const std::size_t length = std::size_t{number(bytes, 0, 1) & 0xF} * 4;
  if (number(bytes, 0, 1) >> 4 != 4 || length < ip_bytes_min || length > bytes.size())
    return std::nullopt;
  if (number(bytes, 9, 1) != protocol || (number(bytes, 6, 2) & 0x1FFF) != 0) return std::nullopt;
  return Inside{number(bytes, 12, 4), number(bytes, 16, 4), bytes.subspan(length)};
}

}  // namespace

std::optional<port::Complaint> read_complaint(std::span<const std::byte> packet) {
  const auto outer = open_ip(packet, protocol_icmp);
  if (!outer || outer->rest.size() < icmp_bytes) return std::nullopt;
  const std::uint32_t type = number(outer->rest, 0, 1);
  if (type != type_unreachable && type != type_exceeded) return std::nullopt;
  const auto quoted = open_ip(outer->rest.subspan(icmp_bytes), protocol_udp);
  if (!quoted || quoted->rest.size() < udp_bytes) return std::nullopt;
  return port::Complaint{
      .kind = type == type_exceeded ? port::Complaint::Kind::ttl_exceeded
                                    : port::Complaint::Kind::unreachable,
      .from = outer->src,
      .to = {quoted->dst, static_cast<std::uint16_t>(number(quoted->rest, 2, 2))},
      .source_port = static_cast<std::uint16_t>(number(quoted->rest, 0, 2)),
      .udp_length = static_cast<std::uint16_t>(number(quoted->rest, 4, 2))};
}

}  // namespace weft::observe::probe
