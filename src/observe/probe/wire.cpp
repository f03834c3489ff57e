#include "observe/probe/wire.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/text.hpp"

namespace weft::observe::probe {
namespace {

constexpr std::size_t code_bytes = 8;
constexpr std::size_t signed_bytes = wire_bytes - code_bytes;
constexpr std::size_t probe_at = 32;

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
  constexpr std::array<std::string_view, 5> names{"none", "truncated", "oversized", "foreign",
                                                  "forged"};
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
  writer.put(std::uint32_t{0});
  writer.put(siphash(key, out.first<signed_bytes>()));
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
  if (kind > static_cast<std::uint8_t>(Kind::reply) || out.dscp > 63 || out.dscp_seen > 63)
    return Fault::foreign;
  out.kind = static_cast<Kind>(kind);
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
  if (taker.take<std::uint32_t>() != 0) return Fault::foreign;
  // One comparison of whole words takes the same time wherever they differ.
  const std::uint64_t difference =
      taker.take<std::uint64_t>() ^ siphash(key, bytes.first(signed_bytes));
  return difference == 0 ? Fault::none : Fault::forged;
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
