// What lies in a window of time: entries of many groups, oldest first, those of a group chained.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace weft::observe::detect {

// A group's entries, by place in the timeline; 0 is none.
struct Chain {
  std::uint32_t first = 0, last = 0, count = 0;
};

// A list in a pool that grows up to its bound. All calls are O(1), but for the growing.
template <class Item>
class Timeline {
 public:
  struct Cell {
    std::int64_t t = 0;
    std::uint32_t group = 0;
    std::uint32_t before = 0, after = 0;  // in time
    std::uint32_t next = 0;               // of the same group
    Item item{};
  };

  explicit Timeline(std::size_t cells_max) : cells_max_(cells_max), cells_(1) {}

  bool empty() const { return size_ == 0; }
  bool is_full() const { return size_ >= cells_max_; }
  Cell& operator[](std::uint32_t at) { return cells_[at]; }
  const Cell& operator[](std::uint32_t at) const { return cells_[at]; }
  const Cell& front() const { return cells_[front_]; }
  std::uint32_t front_at() const { return front_; }

  // Times must not fall; the timeline must not be full.
  std::uint32_t push(std::int64_t t, std::uint32_t group, Chain& chain, Item item) {
    const std::uint32_t at = free_cell();
    cells_[at] = {t, group, back_, 0, 0, std::move(item)};
    (size_++ == 0 ? front_ : cells_[back_].after) = at;
    back_ = at;
    (chain.count++ == 0 ? chain.first : cells_[chain.last].next) = at;
    chain.last = at;
    return at;
  }

  // Removes the oldest of a chain that is not empty.
  void pop(Chain& chain) {
    const std::uint32_t at = chain.first;
    const Cell& cell = cells_[at];
    (cell.before == 0 ? front_ : cells_[cell.before].after) = cell.after;
    (cell.after == 0 ? back_ : cells_[cell.after].before) = cell.before;
    chain.first = cell.next;
    if (--chain.count == 0) chain = {};
    cells_[at].after = std::exchange(free_, at);
    --size_;
  }

 private:
  std::uint32_t free_cell() {
    if (free_ == 0) {
      cells_.emplace_back();
      return static_cast<std::uint32_t>(cells_.size() - 1);
    }
    const std::uint32_t at = free_;
    free_ = cells_[at].after;
    return at;
  }

  std::size_t cells_max_;
  std::size_t size_ = 0;
  std::vector<Cell> cells_;  // the first is nobody's
  std::uint32_t front_ = 0, back_ = 0, free_ = 0;
};

}  // namespace weft::observe::detect
