#include "engine/fluid/key_heap.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace weft::engine::fluid {

void KeyHeap::up(std::size_t at, Item item, Positions& position) {
  while (at > 0) {
    const std::size_t parent = (at - 1) / 4;
    if (items_[parent].key <= item.key) break;
    place(at, items_[parent], position);
    at = parent;
  }
  place(at, item, position);
}

// Of up to four siblings; of equals, the first.
std::size_t KeyHeap::least_of(std::size_t first) const {
  const Item* const items = items_.data();
  if (first + 4 <= items_.size()) {  // in pairs: no guess of a branch to go wrong
    const std::size_t low = first + (items[first + 1].key < items[first].key ? 1 : 0);
    const std::size_t high = first + 2 + (items[first + 3].key < items[first + 2].key ? 1 : 0);
    return items[high].key < items[low].key ? high : low;
  }
  std::size_t best = first;
  for (std::size_t c = first + 1; c < items_.size(); ++c)
    if (items[c].key < items[best].key) best = c;
  return best;
}

void KeyHeap::down(std::size_t at, Item item, Positions& position) {
  for (;;) {
    const std::size_t first = 4 * at + 1;
    if (first >= items_.size()) break;
    const std::size_t best = least_of(first);
    if (items_[best].key >= item.key) break;
    place(at, items_[best], position);
    at = best;
  }
  place(at, item, position);
}

void KeyHeap::set(std::uint32_t id, double key, Positions& position) {
  const Item item{key, id};
  const std::uint32_t at = position[id];
  if (at == absent) {
    items_.push_back(item);
    up(items_.size() - 1, item, position);
  } else if (key < items_[at].key) {
    up(at, item, position);
  } else {
    down(at, item, position);
  }
}

void KeyHeap::erase(std::uint32_t id, Positions& position) {
  const std::uint32_t at = position[id];
  if (at == absent) return;
  WEFT_CHECK(items_[at].id == id);
  position[id] = absent;
  const Item last = items_.back();
  items_.pop_back();
  if (last.id == id) return;
  if (at > 0 && items_[(at - 1) / 4].key > last.key) {
    up(at, last, position);
  } else {
    down(at, last, position);
  }
}

}  // namespace weft::engine::fluid
