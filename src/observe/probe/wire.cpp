#include "observe/probe/wire.hpp"

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/hash.hpp"
#include "base/text.hpp"

namespace weft::observe::probe {
namespace {

constexpr std::size_t signed_bytes = 88;
constexpr std::size_t checked_bytes = wire_bytes - 8;
constexpr std::size_t pattern_at = signed_bytes + 8,
                      pattern_words = (checked_bytes - pattern_at) / 8;
constexpr std::size_t probe_at = 32;

// XXH3, of 64 bits, rather than a CRC-32: as fast as memory is read, and a burst of flips passes
// one time in 2^64.
std::uint64_t checksum(std::span<const std::byte> message) {
  return XXH3_64bits(message.data(), checked_bytes);
}

class Writer {
 public:
  explicit Writer(std::span<std::byte> out) : out_(out) {}
  template <class T>
  void put(T value) {
    const auto bits = static_cast<std::uint64_t>(value);
    for (std::size_t i = sizeof(T); i > 0; --i)
      out_[at_++] = static_cast<std::byte>(bits >> (8 * (i - 1)));
  }

 private:
  std::span<std::byte> out_;
  std::size_t at_ = 0;
};

class Taker {
 public:
  explicit Taker(std::span<const std::byte> bytes, std::size_t at = 0) : bytes_(bytes), at_(at) {}
  template <class T>
  T take() {
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i)
      bits = bits << 8 | std::to_integer<std::uint64_t>(bytes_[at_++]);
    return static_cast<T>(bits);
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t at_;
};

}  // namespace

std::string_view to_text(Fault fault) {
  constexpr std::array<std::string_view, 6> names{"none",    "truncated", "oversized",
                                                  "foreign", "damaged",   "forged"};
  return names[static_cast<std::size_t>(fault)];
}

void encode(const Message& message, const Key& key, std::span<std::byte, wire_bytes> out) {
  Writer writer(out);
  writer.put(wire_magic);
  writer.put(wire_version);
  writer.put(static_cast<std::uint8_t>(message.kind));
  writer.put(message.dscp);
  writer.put(message.dscp_seen);
  writer.put(message.session);
  writer.put(message.flow);
  writer.put(message.overflows);
  writer.put(message.sequence);
  writer.put(message.probe);
  writer.put(message.sent);
  writer.put(message.received);
  writer.put(message.responded);
  writer.put(message.highest);
  writer.put(message.count);
  writer.put(message.generation);
  writer.put(message.damaged);
  std::uint64_t word = mix64(message.session ^ message.probe);
  for (std::size_t i = 0; i < pattern_words; ++i) {
    // Xorshift: any bits do that differ from probe to probe and word to word.
    word ^= word << 13;
    word ^= word >> 7;
    word ^= word << 17;
    std::memcpy(out.data() + pattern_at + 8 * i, &word, sizeof word);
  }
  seal(key, out);
}

void seal(const Key& key, std::span<std::byte, wire_bytes> message) {
  Writer(message.subspan<signed_bytes>()).put(siphash(key, message.first<signed_bytes>()));
  Writer(message.subspan<checked_bytes>()).put(checksum(message));
}

Fault decode(std::span<const std::byte> bytes, const Key& key, Message& out) {
  if (bytes.size() < wire_bytes) return Fault::truncated;
  if (bytes.size() > request_bytes_max) return Fault::oversized;
  Taker taker(bytes);
  if (taker.take<std::uint32_t>() != wire_magic) return Fault::foreign;
  if (taker.take<std::uint8_t>() != wire_version) return Fault::foreign;
  const auto kind = taker.take<std::uint8_t>();
  out.dscp = taker.take<std::uint8_t>();
  out.dscp_seen = taker.take<std::uint8_t>();
  out.session = taker.take<std::uint64_t>();
  out.flow = taker.take<std::uint32_t>();
  out.overflows = taker.take<std::uint32_t>();
  out.sequence = taker.take<std::uint64_t>();
  out.probe = taker.take<std::uint64_t>();
  out.sent = taker.take<std::int64_t>();
  out.received = taker.take<std::int64_t>();
  out.responded = taker.take<std::int64_t>();
  out.highest = taker.take<std::uint64_t>();
  out.count = taker.take<std::uint64_t>();
  out.generation = taker.take<std::uint32_t>();
  out.damaged = taker.take<std::uint32_t>();
  const auto code = taker.take<std::uint64_t>();
  const bool is_kind = kind <= static_cast<std::uint8_t>(Kind::reply);
  out.kind = is_kind ? static_cast<Kind>(kind) : Kind::probe;
  if (Taker(bytes, checked_bytes).take<std::uint64_t>() != checksum(bytes)) return Fault::damaged;
  if (!is_kind || out.dscp > 63 || out.dscp_seen > 63) return Fault::foreign;
  // One comparison of whole words takes the same time wherever they differ.
  return (code ^ siphash(key, bytes.first(signed_bytes))) == 0 ? Fault::none : Fault::forged;
}

std::optional<std::uint64_t> peek_probe(std::span<const std::byte> bytes) {
  if (bytes.size() < wire_bytes) return std::nullopt;
  return Taker(bytes, probe_at).take<std::uint64_t>();
}

Result<Key> parse_key(std::string_view text, const std::string& file) {
  constexpr std::size_t digit_count = 32;
  const std::string_view digits = trim(text);
  Key key;
  const auto half = [&](std::size_t at, std::uint64_t& out) {
    const char* end = digits.data() + at + digit_count / 2;
    const auto [stop, error] = std::from_chars(digits.data() + at, end, out, 16);
    return error == std::errc{} && stop == end;
  };
  if (digits.size() != digit_count || !half(0, key.k0) || !half(digit_count / 2, key.k1))
    return fail(Errc::parse, {file, 0, 0}, "not a key",
                "write 32 hexadecimal digits, e.g. by: openssl rand -hex 16");
  if (key.k0 == 0 && key.k1 == 0)
    return fail(Errc::value, {file, 0, 0}, "the key is all zeros",
                "make a random one, e.g. by: openssl rand -hex 16");
  return key;
}

}  // namespace weft::observe::probe
