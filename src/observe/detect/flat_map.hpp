// A hash table without allocation per row, for lookups only: nobody can see its order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/hash.hpp"

namespace weft::observe::detect {

// From a pair of whole numbers. Open addressing, at most half full; what is erased leaves no mark.
class FlatMap {
 public:
  struct Key {
    std::uint64_t a = 0, b = 0;
    friend bool operator==(const Key&, const Key&) = default;
  };

  std::optional<std::uint32_t> find(const Key& key) const {
    if (cells_.empty()) return std::nullopt;
    for (std::size_t at = home(key); cells_[at].is_used; at = after(at))
      if (cells_[at].key == key) return cells_[at].value;
    return std::nullopt;
  }
  // The key must be new.
  void add(const Key& key, std::uint32_t value) {
    if (2 * (size_ + 1) > cells_.size()) grow();
    place({key, value, true});
    ++size_;
  }
  // The key must be there.
  void erase(const Key& key) {
    std::size_t hole = home(key);
    while (cells_[hole].key != key || !cells_[hole].is_used) hole = after(hole);
    // Those behind move up as long as that brings them nearer to where they belong.
    for (std::size_t at = after(hole); cells_[at].is_used; at = after(at)) {
      const std::size_t way = (at - home(cells_[at].key)) & (cells_.size() - 1);
      if (way < ((at - hole) & (cells_.size() - 1))) continue;
      cells_[hole] = cells_[at];
      hole = at;
    }
    cells_[hole].is_used = false;
    --size_;
  }
  std::size_t size() const { return size_; }

 private:
  struct Cell {
    Key key;
    std::uint32_t value = 0;
    bool is_used = false;
  };

  std::size_t home(const Key& key) const {
    return mix64(mix64(key.a) ^ key.b) & (cells_.size() - 1);
  }
  std::size_t after(std::size_t at) const { return (at + 1) & (cells_.size() - 1); }
  void place(const Cell& cell) {
    std::size_t at = home(cell.key);
    while (cells_[at].is_used) at = after(at);
    cells_[at] = cell;
  }
  void grow() {
    const std::vector<Cell> old = std::exchange(
        cells_, std::vector<Cell>(cells_.empty() ? std::size_t{16} : 2 * cells_.size()));
    for (const Cell& cell : old)
      if (cell.is_used) place(cell);
  }

  std::vector<Cell> cells_;
  std::size_t size_ = 0;
};

}  // namespace weft::observe::detect
