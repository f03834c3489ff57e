// Blocks of power-of-two size out of parallel columns, recycled: a million short lists without a
// million allocations.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <tuple>
#include <vector>

#include "base/check.hpp"

namespace weft::engine::fluid {

template <class... Columns>
class BlockArena {
 public:
  // Blocks hold 2^size_class items of each column. Cost: O(1) amortised.
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
    const std::size_t first = size_;
    size_ += std::size_t{1} << size_class;
    WEFT_CHECK(size_ <= UINT32_MAX);
    std::apply([&](auto&... column) { (column.resize(size_), ...); }, columns_);
    return static_cast<std::uint32_t>(first);
  }
  void give_back(std::uint32_t first, std::uint32_t size_class) {
    WEFT_CHECK(first + (std::size_t{1} << size_class) <= size_);
    free_[size_class].push_back(first);
  }

  // From an item of a column on.
  template <std::size_t column = 0>
  auto* at(std::uint32_t index) {
    return std::get<column>(columns_).data() + index;
  }
  template <std::size_t column = 0>
  const auto* at(std::uint32_t index) const {
    return std::get<column>(columns_).data() + index;
  }

 private:
  std::tuple<std::vector<Columns>...> columns_;
  std::size_t size_ = 0;
  std::array<std::vector<std::uint32_t>, 33> free_;
};

}  // namespace weft::engine::fluid
