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
  std::uint32_t ports = 1;                  // of the sender, at least 1
  std::uint32_t port = 0;                   // by which the packet is to leave
};

// By which of its sender's ports a packet leaves.
constexpr std::uint32_t port_of(Entropy entropy, std::uint32_t ports) { return entropy % ports; }

// Of the port that is asked for where each port has entropies.
constexpr Entropy fresh_entropy(const EntropyDraw& draw) {
  const std::uint64_t hash = mix64(draw.seed ^ mix64(draw.counter)) >> 32;
  const auto any = static_cast<std::uint32_t>(hash * draw.count >> 32);
  if (draw.ports == 1 || draw.count < draw.ports) return static_cast<Entropy>(any);
  const std::uint32_t out = any - any % draw.ports + draw.port;
  return static_cast<Entropy>(out < draw.count ? out : out - draw.ports);
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
  Entropy next(const EntropyDraw& draw) { return count_ > 0 ? take(0) : fresh_entropy(draw); }

  // ... of a sender with several ports: the oldest of those whose port is free first.
  // `free_at`: of an entropy's port.
  template <class FreeAt>
  Entropy next(const EntropyDraw& draw, const FreeAt& free_at) {
    if (count_ == 0) return fresh_entropy(draw);
    std::size_t best = 0;
    for (std::size_t i = 1; i < count_; ++i)
      if (free_at(at(i)) < free_at(at(best))) best = i;
    return take(best);
  }

  std::size_t size() const { return count_; }

 private:
  Entropy& at(std::size_t i) { return ring_[(first_ + i) % capacity]; }
  // The i-th oldest; those before it stay in their order.
  Entropy take(std::size_t i) {
    const Entropy out = at(i);
    for (; i > 0; --i) at(i) = at(i - 1);
    first_ = static_cast<std::uint8_t>((first_ + 1) % capacity);
    --count_;
    return out;
  }

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
