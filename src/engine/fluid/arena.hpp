// Blocks out of parallel columns, recycled: a million short lists without a million allocations.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <tuple>
#include <type_traits>

#include "base/check.hpp"

namespace weft::engine::fluid {

// A vector of plain items that grows without a second copy beside it, where the system can move
// pages (hundreds of megabytes in large runs). New items are not initialized.
template <class T>
class GrowingArray {
 public:
  static_assert(std::is_trivially_copyable_v<T>);

  void resize(std::size_t size) {
    if (size > capacity_) grow(size);
    size_ = size;
  }
  [[gnu::always_inline]] void push_back(T item) {
    resize(size_ + 1);
    items_.get()[size_ - 1] = item;
  }
  void pop_back() { --size_; }
  void clear() { size_ = 0; }
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  T& operator[](std::size_t at) { return items_.get()[at]; }
  T& back() { return items_.get()[size_ - 1]; }
  T* begin() { return items_.get(); }
  T* end() { return items_.get() + size_; }
  T* data() { return items_.get(); }
  const T* data() const { return items_.get(); }

 private:
  // Apart, so that push_back() is a few instructions wherever it stands.
  [[gnu::noinline]] void grow(std::size_t size) {
    const std::size_t capacity = std::max(size, 2 * capacity_);
    void* const grown = std::realloc(items_.get(), capacity * sizeof(T));
    if (grown == nullptr) throw std::bad_alloc();
    static_cast<void>(items_.release());  // realloc() has freed or kept it
    items_.reset(static_cast<T*>(grown));
    capacity_ = capacity;
  }
  struct Free {
    void operator()(T* items) const { std::free(items); }
  };
  std::unique_ptr<T, Free> items_;
  std::size_t size_ = 0, capacity_ = 0;
};

// Row numbers, such as those to be used again: many are put in and taken out per event.
using Ids = GrowingArray<std::uint32_t>;

template <class... Columns>
class BlockArena {
 public:
  // Items of each column in the blocks of a size class: 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20
  // and so on, four to a power of two.
  static constexpr std::uint32_t size_of(std::uint32_t size_class) {
    return size_class < 4 ? size_class + 1 : (size_class % 4 + 5) << (size_class / 4 - 1);
  }
  // The least that holds so many.
  static constexpr std::uint32_t class_for(std::uint32_t count) {
    if (count <= 4) return std::max(count, 1u) - 1;
    const auto shift = static_cast<std::uint32_t>(std::bit_width(count - 1)) - 3;
    return 4 * shift + ((count - 1) >> shift);
  }

  // Cost: O(1) amortised.
  std::uint32_t take(std::uint32_t size_class) {
    Ids& free = free_[size_class];
    if (!free.empty()) {
      const std::uint32_t first = free.back();
      free.pop_back();
      return first;
    }
    const std::size_t first = size_;
    size_ += size_of(size_class);
    WEFT_CHECK(size_ <= UINT32_MAX);
    std::apply([&](auto&... column) { (column.resize(size_), ...); }, columns_);
    return static_cast<std::uint32_t>(first);
  }
  void give_back(std::uint32_t first, std::uint32_t size_class) {
    WEFT_CHECK(std::size_t{first} + size_of(size_class) <= size_);
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
  std::tuple<GrowingArray<Columns>...> columns_;
  std::size_t size_ = 0;
  std::array<Ids, class_for(UINT32_MAX) + 1> free_;
};

}  // namespace weft::engine::fluid
