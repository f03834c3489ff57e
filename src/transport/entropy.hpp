// Which of many paths the next packet takes, as far as its sender can choose: by the entropy (a
// header field that switches hash), by flowlet, or by what is outstanding.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/hash.hpp"
#include "transport/red.hpp"
#include "transport/time.hpp"

namespace weft::transport {

using Entropy = std::uint16_t;
inline constexpr std::uint32_t entropy_count_max = 1u << 16;

// What a fresh entropy is drawn from: the same draw gives the same entropy.
struct EntropyDraw {
  std::uint64_t seed = 0;                   // of the connection
  std::uint64_t counter = 0;                // of its packets
  std::uint32_t count = entropy_count_max;  // entropies in use, [1, entropy_count_max]
};

constexpr Entropy fresh_entropy(const EntropyDraw& draw) {
  const std::uint64_t hash = mix64(draw.seed ^ mix64(draw.counter)) >> 32;
  return static_cast<Entropy>(hash * draw.count >> 32);
}

// Entropies whose packets came through unmarked are used again, each once per acknowledgement; a
// marked one is forgotten. So packets leave congested paths, and failed ones, which acknowledge
// nothing. From: Bonato et al., "REPS: Recycled Entropy Packet Spraying for Adaptive Load Balancing
// and Failure Mitigation", 2024. We differ: no freezing mode after a failure.
class EntropyCache {
 public:
  static constexpr std::size_t capacity = 16;

  // A good one of a full cache takes the place of the oldest.
  void on_ack(Entropy entropy, Mark mark) {
    if (mark == Mark::congested) return;
    ring_[(first_ + count_) % capacity] = entropy;
    if (count_ < capacity) {
      ++count_;
    } else {
      first_ = static_cast<std::uint8_t>((first_ + 1) % capacity);
    }
  }

  // The oldest cached entropy, which is then no longer cached; a fresh one where there is none.
  Entropy next(const EntropyDraw& draw) {
    if (count_ == 0) return fresh_entropy(draw);
    const Entropy out = ring_[first_];
    first_ = static_cast<std::uint8_t>((first_ + 1) % capacity);
    --count_;
    return out;
  }

  std::size_t size() const { return count_; }

 private:
  std::array<Entropy, capacity> ring_{};
  std::uint8_t first_ = 0, count_ = 0;
};

// One flow at the switch that splits it: packets that follow within the gap keep the port, as they
// could overtake others on another one. From: Vanini et al., "Let It Flow", NSDI 2017.
class FlowletEntry {
 public:
  enum class Choice : std::uint8_t { keep, anew };

  // Call for every packet of the flow. The first is always `anew`.
  Choice on_packet(Ps gap, Ps now) {
    const Choice out = seen_ && now - last_ <= gap ? Choice::keep : Choice::anew;
    last_ = now;
    seen_ = true;
    return out;
  }

  std::uint16_t port = 0;  // chosen last; the caller's

 private:
  bool seen_ = false;
  Ps last_ = 0;
};

}  // namespace weft::transport
