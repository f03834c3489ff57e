// The ids that came last, in memory of a fixed size.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/check.hpp"
#include "base/hash.hpp"

namespace weft::serve {

// A set of hashes that forgets the oldest one for each that it has no room for. All of its memory
// is taken at the start, so that a service does not seem to leak until it is full.
class RecentIds {
 public:
  explicit RecentIds(std::size_t capacity)
      : ring_(capacity), slots_(std::bit_ceil(2 * capacity), free) {
    WEFT_CHECK(capacity > 0 && slots_.size() <= free);
  }

  bool contains(std::uint64_t id) const { return slots_[find(id)] != free; }

  // Nothing where it is known.
  void insert(std::uint64_t id) {
    if (contains(id)) return;
    if (count_ == ring_.size())
      erase(ring_[next_]);
    else
      ++count_;
    slots_[find(id)] = static_cast<std::uint32_t>(next_);
    ring_[next_] = id;
    next_ = (next_ + 1) % ring_.size();
  }
  std::size_t size() const { return count_; }

 private:
  static constexpr std::uint32_t free = UINT32_MAX;

  std::size_t home(std::uint64_t id) const { return mix64(id) & (slots_.size() - 1); }
  std::size_t after(std::size_t slot) const { return (slot + 1) & (slots_.size() - 1); }

  // Its slot, or the free one where it belongs. At least half of all slots are free.
  std::size_t find(std::uint64_t id) const {
    std::size_t slot = home(id);
    while (slots_[slot] != free && ring_[slots_[slot]] != id) slot = after(slot);
    return slot;
  }

  // What stands behind moves up, so that no search ends too early.
  void erase(std::uint64_t id) {
    std::size_t hole = find(id);
    WEFT_CHECK(slots_[hole] == next_);
    for (std::size_t slot = after(hole); slots_[slot] != free; slot = after(slot)) {
      const std::size_t wanted = home(ring_[slots_[slot]]);
      const std::size_t mask = slots_.size() - 1;
      if (((slot - wanted) & mask) < ((slot - hole) & mask)) continue;
      slots_[hole] = slots_[slot];
      hole = slot;
    }
    slots_[hole] = free;
  }

  std::vector<std::uint64_t> ring_;
  std::vector<std::uint32_t> slots_;  // positions in the ring
  std::size_t next_ = 0, count_ = 0;
};

}  // namespace weft::serve
