// How a prober and a responder reach a network: datagrams in batches, with time stamps.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "port/clock.hpp"

namespace weft::port {

// An IPv4 address (host byte order) and a UDP port.
struct Endpoint {
  std::uint32_t address = 0;
  std::uint16_t port = 0;
  friend constexpr auto operator<=>(const Endpoint&, const Endpoint&) = default;
};

inline constexpr std::size_t batch_max = 64;
// Longer datagrams are cut; `size` still says how long they were.
inline constexpr std::size_t datagram_bytes_max = 1232;

enum class Stamp : std::uint8_t { none, wanted };

struct Outgoing {
  std::uint32_t port = 0;   // index of one of the adapter's own UDP ports
  std::uint32_t local = 0;  // own address to send from; 0: the adapter chooses
  Endpoint to;
  std::uint8_t dscp = 0;
  std::uint8_t ttl = 0;  // 0: the system's default
  Stamp stamp = Stamp::none;
  std::uint64_t token = 0;  // comes back with the send stamp
  std::span<const std::byte> payload;
};

struct Incoming {
  std::uint32_t port = 0;   // index of the own port it came to
  std::uint32_t local = 0;  // own address it came to; 0: not known
  Endpoint from;
  std::uint8_t dscp = 0;
  std::uint32_t size = 0;       // of the datagram; more than `bytes` holds where it was cut
  std::optional<Instant> when;  // arrival, as the system noted it
  std::uint32_t dropped = 0;    // datagrams that the port's full queue has refused so far
  std::array<std::byte, datagram_bytes_max> bytes;

  std::span<const std::byte> payload() const {
    return {bytes.data(), size < bytes.size() ? size : bytes.size()};
  }
};

// A router's or host's complaint (ICMP) about a datagram of ours, from what it quotes of it.
struct Complaint {
  enum class Kind : std::uint8_t { ttl_exceeded, unreachable };
  Kind kind = Kind::ttl_exceeded;
  std::uint32_t from = 0;  // address of who complains
  Endpoint to;             // where the datagram was bound for
  std::uint16_t source_port = 0;
  std::uint16_t udp_length = 0;  // header included; 0: not known
  Instant when;
};

struct SendStamp {
  std::uint64_t token = 0;
  Instant when;
};

// What becomes of a batch: the first `sent` are on their way; `refused` of those after them were
// turned down by the system for good (no route, forbidden) and must not be tried again.
struct SendResult {
  std::size_t sent = 0;
  std::size_t refused = 0;
};

enum class Wake : std::uint8_t { timer, arrival };

// One host's door to the network. All instants are those of the Clock beside it; an adapter turns
// the stamps of a clock that steps into them, and gives none rather than a wrong one.
// No call waits, but `wait`. Datagrams of one port leave in the order of the calls.
class ProbeIo {
 public:
  virtual ~ProbeIo() = default;
  // At most batch_max, all of one port. Fewer are sent when the system has no room just now.
  virtual SendResult send(std::span<const Outgoing> batch) = 0;
  // Fills from the front; returns how many. Fewer than fit: nothing more is there now.
  virtual std::size_t receive(std::span<Incoming> batch) = 0;
  // Of datagrams that wanted one. A datagram's stamp comes before its answer, or not at all.
  virtual std::size_t send_stamps(std::span<SendStamp> batch) = 0;
  // Whether there are send stamps at all.
  virtual Stamp stamping() const = 0;
  virtual std::size_t complaints(std::span<Complaint> batch) = 0;
  // Datagrams that were refused by full queues of our own ports so far.
  virtual std::uint64_t dropped() = 0;
  // Until `until` has come or, with Wake::arrival, something can be received. May return early.
  virtual void wait(Instant until, Wake wake) = 0;
};

}  // namespace weft::port
