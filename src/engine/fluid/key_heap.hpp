// Ids by key, the smallest first.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace weft::engine::fluid {

// A 4-ary heap. Where each id is in it is kept outside, so that heaps of different ids share one
// column: `position`, by id, `absent` for those in none.
class KeyHeap {
 public:
  static constexpr std::uint32_t absent = UINT32_MAX;
  using Positions = std::vector<std::uint32_t>;
  struct Item {
    double key;
    std::uint32_t id;
  };

  bool empty() const { return items_.empty(); }
  const Item& top() const { return items_.front(); }
  // All of them, in no order.
  std::span<const Item> items() const { return items_; }
  // Puts the id in, or gives it another key.
  void set(std::uint32_t id, double key, Positions& position);
  // Takes the id out, if it is in.
  void erase(std::uint32_t id, Positions& position);

 private:
  void up(std::size_t at, Item item, Positions& position);
  std::size_t least_of(std::size_t first) const;
  void down(std::size_t at, Item item, Positions& position);
  void place(std::size_t at, Item item, Positions& position) {
    items_[at] = item;
    position[item.id] = static_cast<std::uint32_t>(at);
  }

  std::vector<Item> items_;
};

}  // namespace weft::engine::fluid
