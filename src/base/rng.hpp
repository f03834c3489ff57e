// The only source of randomness: xoshiro256** with named streams.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "base/hash.hpp"

namespace weft {
inline namespace base {

// From: Blackman, Vigna, "Scrambled linear pseudorandom number generators", ACM TOMS 2021.
// Same seed, same numbers, on every machine and compiler.
class Rng {
 public:
  explicit constexpr Rng(std::uint64_t seed) : seed_(seed) {
    for (std::uint64_t i = 0; i < 4; ++i) state_[i] = mix64(seed + i * 0x9e3779b97f4a7c15ull);
  }

  // An independent generator for one component, so that a draw added in one shifts no other.
  constexpr Rng stream(std::string_view name) const { return Rng(mix64(seed_) ^ hash_text(name)); }
  constexpr Rng stream(std::uint64_t index) const { return Rng(mix64(mix64(seed_) + index)); }

  constexpr std::uint64_t next() {
    const std::uint64_t out = std::rotl(state_[1] * 5, 7) * 9;
    const std::uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = std::rotl(state_[3], 45);
    return out;
  }

  // Uniform in [0, n), n > 0, without bias (Lemire's multiply-and-reject).
  constexpr std::uint64_t below(std::uint64_t n) {
    __extension__ using Wide = unsigned __int128;
    Wide product = Wide{next()} * n;
    if (static_cast<std::uint64_t>(product) < n) {
      const std::uint64_t threshold = (0 - n) % n;
      while (static_cast<std::uint64_t>(product) < threshold) product = Wide{next()} * n;
    }
    return static_cast<std::uint64_t>(product >> 64);
  }

  // Uniform in [0, 1) with 53 bits.
  constexpr double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

  template <class T>
  constexpr void shuffle(std::span<T> items) {
    for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i)]);
  }

 private:
  std::uint64_t seed_;
  std::array<std::uint64_t, 4> state_{};
};

}  // namespace base
}  // namespace weft
