// Mixing functions, and the digest that every run ends with.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace weft {
inline namespace base {

// The finaliser of SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number
// generators", OOPSLA 2014): a bijection on 64 bits in which every input bit moves every output
// bit.
constexpr std::uint64_t mix64(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

// Hash of a name, the same on every machine (FNV-1a).
constexpr std::uint64_t hash_text(std::string_view text) {
  std::uint64_t h = 0xcbf29ce484222325ull;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  return h;
}

// Order-sensitive digest of a stream of values. Not cryptographic: it detects change, not malice.
class Digest {
 public:
  void add(std::uint64_t word) { state_ = mix64(state_ ^ word) + std::rotl(state_, 23); }
  void add(std::int64_t word) { add(static_cast<std::uint64_t>(word)); }
  void add(std::string_view text) { add(hash_text(text)); }
  std::uint64_t value() const { return mix64(state_); }
  std::string hex() const;  // 16 digits

 private:
  std::uint64_t state_ = 0x77656674ull;
};

}  // namespace base
}  // namespace weft
