// Blocks of power-of-two size out of one vector, recycled: a million short lists without a million
// allocations.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "base/check.hpp"

namespace weft::engine::fluid {

template <class T>
class BlockArena {
 public:
  // Blocks hold 2^size_class items. Cost: O(1) amortised.
  static constexpr std::uint32_t class_for(std::uint32_t count) {
    return static_cast<std::uint32_t>(std::bit_width(count > 1 ? count - 1 : 0u));
  }

  std::uint32_t take(std::uint32_t size_class) {
    std::vector<std::uint32_t>& free = free_[size_class];
    if (!free.empty()) {
      const std::uint32_t first = free.back();
      free.pop_back();
      return first;
    }
    const std::size_t first = items_.size();
    WEFT_CHECK(first + (std::size_t{1} << size_class) <= UINT32_MAX);
    items_.resize(first + (std::size_t{1} << size_class));
    return static_cast<std::uint32_t>(first);
  }
  void give_back(std::uint32_t first, std::uint32_t size_class) {
    WEFT_CHECK(first + (std::size_t{1} << size_class) <= items_.size());
    free_[size_class].push_back(first);
  }

  T* at(std::uint32_t first) { return items_.data() + first; }
  const T* at(std::uint32_t first) const { return items_.data() + first; }
  T& operator[](std::uint32_t index) { return items_[index]; }
  const T& operator[](std::uint32_t index) const { return items_[index]; }

 private:
  std::vector<T> items_;
  std::array<std::vector<std::uint32_t>, 33> free_;
};

}  // namespace weft::engine::fluid
