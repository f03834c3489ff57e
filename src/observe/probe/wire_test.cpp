#include "observe/probe/wire.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

namespace weft::observe::probe {
namespace {

constexpr Key wire_key{1, 2};

Message sample() {
  return {.kind = Kind::reply,
          .dscp = 26,
          .dscp_seen = 10,
          .session = 0x1122334455667788,
          .flow = 0xAABBCCDD,
          .sequence = 5,
          .probe = 0x0102030405060708,
          .sent = 1'700'000'000'000'000'000,
          .received = -1,
          .responded = INT64_MIN,
          .highest = UINT64_MAX,
          .count = 4,
          .overflows = 9,
          .generation = 3};
}

WireBytes encoded(const Message& message) {
  WireBytes out;
  encode(message, wire_key, out);
  return out;
}

// The authors' vectors: key 00 01 ... 0f, message 00 01 ... of n bytes (SipHash paper, appendix A,
// gives that of 15 bytes).
TEST_CASE("SipHash-2-4 gives the published values") {
  const Key published{0x0706050403020100ull, 0x0f0e0d0c0b0a0908ull};
  std::vector<std::byte> message;
  for (int i = 0; i < 15; ++i) message.push_back(static_cast<std::byte>(i));
  CHECK(siphash(published, message) == 0xa129ca6149be45e5ull);
}

TEST_CASE("a message comes back as it was") {
  const WireBytes bytes = encoded(sample());
  Message out;
  REQUIRE(decode(bytes, wire_key, out) == Fault::none);
  CHECK(out == sample());
  CHECK(peek_probe(bytes) == sample().probe);
  CHECK(bytes[0] == std::byte{'W'});
}

TEST_CASE("any flipped bit is noticed") {
  const WireBytes good = encoded(sample());
  for (std::size_t bit = 0; bit < 8 * wire_bytes; ++bit) {
    WireBytes bad = good;
    bad[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
    Message out;
    const bool in_magic = bit < std::size_t{8} * 5;
    CHECK(decode(bad, wire_key, out) == (in_magic ? Fault::foreign : Fault::damaged));
  }
}

TEST_CASE("every shorter length is truncated, longer ones are padding up to a bound") {
  const WireBytes good = encoded(sample());
  std::vector<std::byte> bytes(good.begin(), good.end());
  Message out;
  for (std::size_t size = 0; size < wire_bytes; ++size)
    CHECK(decode(std::span(good).first(size), wire_key, out) == Fault::truncated);
  bytes.resize(request_bytes_max);
  CHECK(decode(bytes, wire_key, out) == Fault::none);
  bytes.resize(request_bytes_max + 1);
  CHECK(decode(bytes, wire_key, out) == Fault::oversized);
  CHECK_FALSE(peek_probe(std::span(good).first(wire_bytes - 1)).has_value());
}

TEST_CASE("patterns differ from probe to probe, and session to session") {
  const auto pattern = [](std::uint64_t session, std::uint64_t probe) {
    const WireBytes bytes = encoded({.session = session, .probe = probe});
    return std::vector(bytes.begin() + 96, bytes.end() - 8);
  };
  CHECK(pattern(1, 1) == pattern(1, 1));
  CHECK(pattern(1, 1) != pattern(1, 2));
  CHECK(pattern(1, 1) != pattern(2, 1));
  // Every bit is carried both ways, so that one stuck at either is found.
  std::vector<std::byte> ones(152), zeros(152, std::byte{0xff});
  for (std::uint64_t probe = 0; probe < 64; ++probe)
    for (std::size_t i = 0; i < ones.size(); ++i) {
      ones[i] |= pattern(7, probe)[i];
      zeros[i] &= pattern(7, probe)[i];
    }
  CHECK(std::ranges::count(ones, std::byte{0xff}) == 152);
  CHECK(std::ranges::count(zeros, std::byte{0}) == 152);
}

TEST_CASE("another key does not do") {
  Message out;
  CHECK(decode(encoded(sample()), Key{1, 3}, out) == Fault::forged);
}

TEST_CASE("keys are 32 hexadecimal digits") {
  const auto good = parse_key("000102030405060708090a0b0c0d0e0f\n", "key");
  REQUIRE(good.has_value());
  CHECK(good->k0 == 0x0001020304050607ull);
  CHECK(good->k1 == 0x08090a0b0c0d0e0full);
  for (const char* bad :
       {"", "00", "000102030405060708090a0b0c0d0e0g", "-00102030405060708090a0b0c0d0e0f",
        "00000000000000000000000000000000", "000102030405060708090a0b0c0d0e0f00"}) {
    const auto refused = parse_key(bad, "key");
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().text().find("0e0f") == std::string::npos);  // keys are secret
  }
}

}  // namespace
}  // namespace weft::observe::probe
