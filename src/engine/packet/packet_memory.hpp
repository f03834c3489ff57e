// Memory for packets: rings of powers of two out of large pages. Internal to the room.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/packet/packet.hpp"

namespace weft::engine::packet {

// An array on pages of 2 MiB where the system has them: a simulation touches its state at random,
// and small pages cost a table walk for almost every packet.
template <class T>
class LargeArray {
 public:
  LargeArray() = default;
  explicit LargeArray(std::size_t count);
  T& operator[](std::size_t i) { return data_.get()[i]; }
  const T& operator[](std::size_t i) const { return data_.get()[i]; }
  std::size_t size() const { return count_; }
  T* data() { return data_.get(); }

 private:
  struct Free {
    void operator()(T* data) const;
  };
  std::unique_ptr<T, Free> data_;
  std::size_t count_ = 0;
};

void* allocate_large(std::size_t bytes);
void free_large(void* data);

template <class T>
LargeArray<T>::LargeArray(std::size_t count) : count_(count) {
  static_assert(std::is_trivially_destructible_v<T>);
  data_.reset(static_cast<T*>(allocate_large(count * sizeof(T))));
  std::uninitialized_value_construct_n(data_.get(), count);
}
template <class T>
void LargeArray<T>::Free::operator()(T* data) const {
  free_large(data);
}

// Large pages, shared out in pieces to the shards of a run.
class PacketPages {
 public:
  static constexpr std::size_t piece_packets = (std::size_t{1} << 18) / sizeof(Packet);
  // Any thread may ask; a run in its steady state does not.
  Packet* take(std::size_t count);

 private:
  static constexpr std::size_t block_packets = 16 * piece_packets;
  std::mutex mutex_;
  std::vector<LargeArray<Packet>> blocks_;
  std::size_t used_ = block_packets;
};

// Rings of 2^k packets, k at least 4. A ring given back serves the next of its size; nothing is
// returned to the system before the end, so a run in its steady state allocates nothing.
class RingMemory {
 public:
  explicit RingMemory(PacketPages& pages) : pages_(pages) {}
  Packet* take(std::uint32_t count) {
    auto& free = free_[static_cast<std::size_t>(std::bit_width(count))];
    if (free.empty()) return carve(count);
    Packet* ring = free.back();
    free.pop_back();
    return ring;
  }
  void give(Packet* ring, std::uint32_t count) {
    free_[static_cast<std::size_t>(std::bit_width(count))].push_back(ring);
  }

 private:
  Packet* carve(std::uint32_t count);

  PacketPages& pages_;
  std::array<std::vector<Packet*>, 33> free_;
  Packet* piece_ = nullptr;
  std::size_t left_ = 0;
};

}  // namespace weft::engine::packet
