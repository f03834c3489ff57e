// A packet under way: 24 bytes, whatever it is. Internal to the room.
#pragma once

#include <cstdint>

#include "base/hash.hpp"
#include "engine/packet/options.hpp"

namespace weft::engine::packet {

inline constexpr std::uint32_t none = UINT32_MAX;

// `data`, what trimming leaves of it, and `request` go from the sender to the receiver, the others
// back.
enum class PacketType : std::uint32_t { data, trimmed, request, ack, nack, cnp, grant };
constexpr bool goes_forward(PacketType type) { return type <= PacketType::request; }

inline constexpr std::uint32_t psn_bits = 24;  // as on the wire
// Packets of a connection, so that 24 bits tell them apart (InfiniBand's bound on a queue pair).
inline constexpr std::uint32_t in_flight_max = (1u << (psn_bits - 1)) - 1;
inline constexpr std::uint32_t port_bits = 11, port_count_max = 1u << port_bits;
inline constexpr std::uint32_t path_length_max = (1u << 5) - 1;

struct Packet {
  Ps t = 0;  // waiting: since when; on the wire: when it is at the far end
  std::uint32_t connection = 0;
  std::uint32_t psn : psn_bits = 0;
  std::uint32_t type : 3 = 0;
  std::uint32_t traffic_class : 3 = 0;
  std::uint32_t marked : 1 = 0;
  // Data: its sender waits for the answer. ACK: the answer was late, so that it tells no round
  // trip. Trimmed: by the last switch.
  std::uint32_t asks : 1 = 0;
  // Into the path table (its links, then `none`); or, by table, the time of sending and the entropy
  // that next hops are chosen by.
  std::uint32_t path = 0;
  std::uint16_t size = 0;

  // By which port it came into the switch where it waits, and the position in the path of the link
  // it is on (the way back counts down). Set as one, for a half that is changed must be read first.
  std::uint32_t port() const { return place & (port_count_max - 1); }
  std::uint32_t hop() const { return place >> port_bits; }
  void set_place(std::uint32_t port, std::uint32_t hop) {
    place = static_cast<std::uint16_t>((port & (port_count_max - 1)) | hop << port_bits);
  }
  std::uint16_t place = 0;

  PacketType kind() const { return static_cast<PacketType>(type); }
  bool is_data() const { return kind() == PacketType::data; }  // with its payload
};
static_assert(sizeof(Packet) == 24);

// What links count of a packet. Read before the packet is copied: in the copy, what is small can be
// read again only when all of it has reached the cache.
struct PacketFacts {
  explicit PacketFacts(const Packet& packet)
      : size(packet.size),
        kind(packet.kind()),
        traffic_class(packet.traffic_class),
        marked(packet.marked) {}
  std::uint32_t size;
  PacketType kind;
  std::uint32_t traffic_class, marked;
};

// The full number of a PSN that is within 2^23 of `near`.
constexpr std::uint32_t extend_psn(std::uint32_t psn, std::uint32_t near) {
  const std::uint32_t diff = (psn - near) << (32 - psn_bits);
  return near + static_cast<std::uint32_t>(static_cast<std::int32_t>(diff) >> (32 - psn_bits));
}

// Uniform in [0, 1): the same for one packet at one link, whoever asks and when.
inline double coin(std::uint64_t seed, std::uint32_t connection, std::uint32_t psn,
                   std::uint32_t link) {
  const std::uint64_t who =
      (std::uint64_t{connection} << psn_bits) + (psn & ((1u << psn_bits) - 1));
  return static_cast<double>(mix64(mix64(who ^ seed) + link) >> 11) * 0x1p-53;
}

}  // namespace weft::engine::packet
