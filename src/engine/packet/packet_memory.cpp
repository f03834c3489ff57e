#include "engine/packet/packet_memory.hpp"

#include <sys/mman.h>

#include <cstdlib>

#include "base/check.hpp"

namespace weft::engine::packet {

void* allocate_large(std::size_t bytes) {
  constexpr std::size_t page = std::size_t{2} << 20;
  if (bytes < page) {
    void* data = std::aligned_alloc(64, (bytes + 63) / 64 * 64 + 64);
    if (data == nullptr) throw std::bad_alloc();
    return data;
  }
  const std::size_t rounded = (bytes + page - 1) / page * page;
  void* data = std::aligned_alloc(page, rounded);
  if (data == nullptr) throw std::bad_alloc();
  madvise(data, rounded, MADV_HUGEPAGE);  // without it everything works, only slower
  return data;
}

void free_large(void* data) { std::free(data); }

Packet* PacketPages::take(std::size_t count) {
  const std::lock_guard lock(mutex_);
  if (count > block_packets / 2) {
    // Large rings get a block of their own, which nobody shares.
    blocks_.insert(blocks_.begin(), LargeArray<Packet>(count));
    return blocks_.front().data();
  }
  if (used_ + count > block_packets) {
    blocks_.emplace_back(block_packets);
    used_ = 0;
  }
  WEFT_CHECK(used_ + count <= block_packets);
  Packet* out = blocks_.back().data() + used_;
  used_ += count;
  return out;
}

Packet* RingMemory::carve(std::uint32_t count) {
  if (count > PacketPages::piece_packets / 2) return pages_.take(count);
  if (count > left_) {
    piece_ = pages_.take(PacketPages::piece_packets);
    left_ = PacketPages::piece_packets;
  }
  WEFT_CHECK(count <= left_);
  Packet* ring = piece_;
  piece_ += count;
  left_ -= count;
  return ring;
}

}  // namespace weft::engine::packet
