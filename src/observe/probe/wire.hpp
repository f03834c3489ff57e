// What probes and replies look like on the wire. docs/probe.md shows the layout.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "observe/probe/siphash.hpp"

namespace weft::observe::probe {

inline constexpr std::uint32_t wire_magic = 0x57465450;  // "WFTP"
inline constexpr std::uint8_t wire_version = 2;
// 88 bytes of fields and the code over them, a pattern, and a checksum over all before it. The
// network may change any of them: the checksum, which needs no key, tells damage from forgery.
inline constexpr std::size_t wire_bytes = 256;
// A request may be longer, by bytes that mean nothing; a reply never is.
inline constexpr std::size_t request_bytes_max = 1232;

enum class Kind : std::uint8_t {
  probe = 0,    // to be answered
  one_way = 1,  // to be counted, not answered
  ask = 2,      // not counted; the answer tells what was
  reply = 3,
};

// Of the bits behind a frame's Ethernet header (20 bytes of IPv4, 8 of UDP, a request), those whose
// flip is seen as damage. A flip of the others is seen as a loss: the IP header and a UDP length or
// checksum are refused by kernels, ports lead elsewhere, and a changed magic, version, session or
// flow number leaves nobody to whom the damage could be put down.
// Of an answer's bits a few less do, as it is recognised by the two numbers of its probe.
inline constexpr double flip_shows = (8.0 * (wire_bytes - 5 - 12) - 1) / (8.0 * (wire_bytes + 28));

using WireBytes = std::array<std::byte, wire_bytes>;

// One message. A reply repeats the request's fields up to `sent` and fills in the others, which
// are 0 in a request.
struct Message {
  Kind kind = Kind::probe;
  std::uint8_t dscp = 0;         // that the prober asked its network for, 0..63
  std::uint8_t dscp_seen = 0;    // of a reply: that the request arrived with
  std::uint64_t session = 0;     // one run of one prober; random
  std::uint32_t flow = 0;        // the prober's number of target, source port and class
  std::uint64_t sequence = 0;    // within the flow, from 1
  std::uint64_t probe = 0;       // within the session
  std::int64_t sent = 0;         // the prober's time of day, ns since 1970
  std::int64_t received = 0;     // the responder's time of day at arrival ...
  std::int64_t responded = 0;    // ... and at departure
  std::uint64_t highest = 0;     // highest sequence number that came, of this flow
  std::uint64_t count = 0;       // how many different ones came
  std::uint32_t overflows = 0;   // datagrams that the responder's own full queue refused so far
  std::uint32_t generation = 0;  // differs when the responder has forgotten the flow in between
  std::uint32_t damaged = 0;     // probes of this flow that came with a wrong checksum so far

  friend bool operator==(const Message&, const Message&) = default;
};

// Why a datagram is not a message for us.
enum class Fault : std::uint8_t {
  none,
  truncated,  // shorter than a message
  oversized,  // longer than any request
  foreign,    // wrong magic, version or kind
  damaged,    // begins as a message does, but the checksum is wrong
  forged      // the authentication code is wrong
};
std::string_view to_text(Fault fault);

// Big-endian, always wire_bytes long. The pattern is drawn from session and probe number, so that
// no two probes carry the same bits.
void encode(const Message& message, const Key& key, std::span<std::byte, wire_bytes> out);
// Writes code and checksum of what stands before each.
void seal(const Key& key, std::span<std::byte, wire_bytes> message);
// Nothing of `out` is to be believed unless the result is Fault::none; with Fault::damaged it is as
// it came, most of it right. What cannot be ours is told from the first bytes; the code is compared
// in constant time. Cost: about 80 ns.
Fault decode(std::span<const std::byte> bytes, const Key& key, Message& out);
// The `probe` of bytes that we encoded, unchecked; nothing where they are too few.
std::optional<std::uint64_t> peek_probe(std::span<const std::byte> bytes);

// 32 hexadecimal digits, blanks around them allowed. Fails: Errc::parse, without showing the text.
Result<Key> parse_key(std::string_view text, const std::string& file);

}  // namespace weft::observe::probe
