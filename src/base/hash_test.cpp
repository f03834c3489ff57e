#include "base/hash.hpp"

#include <doctest/doctest.h>

#include <bit>

using namespace weft;

TEST_CASE("mix64 is SplitMix64") {
  // The first outputs of the generator with seed 0, as published with it.
  CHECK(mix64(0) == 0xe220a8397b1dcdafull);
  CHECK(mix64(0x9e3779b97f4a7c15ull) == 0x6e789e6aa1b965f4ull);
  CHECK(mix64(2 * 0x9e3779b97f4a7c15ull) == 0x06c45d188009454full);
}

TEST_CASE("hash_text is FNV-1a with 64 bits") {
  CHECK(hash_text("") == 0xcbf29ce484222325ull);
  CHECK(hash_text("a") == 0xaf63dc4c8601ec8cull);
  CHECK(hash_text("foobar") == 0x85944171f73967e8ull);
  CHECK(hash_text("\xFF") != hash_text("\x7F"));  // bytes are unsigned
}

TEST_CASE("every input bit moves about half of the output bits") {
  int least = 64;
  int most = 0;
  for (int bit = 0; bit < 64; ++bit) {
    int flipped = 0;
    for (std::uint64_t x = 0; x < 256; ++x)
      flipped += std::popcount(mix64(x) ^ mix64(x ^ (std::uint64_t{1} << bit)));
    least = std::min(least, flipped / 256);
    most = std::max(most, flipped / 256);
  }
  CHECK(least >= 29);
  CHECK(most <= 35);
}

TEST_CASE("the digest depends on values, order and number") {
  const auto of = [](auto... words) {
    Digest digest;
    (digest.add(static_cast<std::uint64_t>(words)), ...);
    return digest.hex();
  };
  CHECK(of(1, 2, 3) == of(1, 2, 3));
  CHECK(of(1, 2, 3) != of(1, 3, 2));
  CHECK(of(1, 2) != of(1, 2, 0));
  CHECK(of() != of(0));
  CHECK(of(1).size() == 16);
  Digest text, number;
  text.add(std::string_view("a"));
  number.add(hash_text("a"));
  CHECK(text.value() == number.value());
}
