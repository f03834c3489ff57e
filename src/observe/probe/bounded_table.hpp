// A table of fixed size that forgets what was used least recently.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/hash.hpp"

namespace weft::observe::probe {

// Sets of eight entries; a new one takes the place of the oldest of its set. `salt` keeps senders
// from choosing keys that meet in one set. Cost: one cache line or two a look-up.
template <class TableKey, class Value>
class BoundedTable {
 public:
  struct Found {
    Value* value;
    bool is_new;
  };

  BoundedTable(std::size_t entries, std::uint64_t salt)
      : sets_(std::bit_ceil(entries < ways ? 1 : entries / ways)), salt_(salt) {}

  // The entry of `key`, made (with a default value) where there is none.
  Found at(const TableKey& key) {
    Set& set = sets_[mix64(key.hash() ^ salt_) & (sets_.size() - 1)];
    ++now_;
    std::size_t oldest = 0;
    for (std::size_t i = 0; i < ways; ++i) {
      if (set[i].used != 0 && set[i].key == key) {
        set[i].used = now_;
        return {&set[i].value, false};
      }
      if (set[i].used < set[oldest].used) oldest = i;
    }
    evicted_ += set[oldest].used != 0 ? 1 : 0;
    set[oldest] = {key, {}, now_};
    return {&set[oldest].value, true};
  }
  // The same, but nullptr where there is none.
  Value* find(const TableKey& key) {
    Set& set = sets_[mix64(key.hash() ^ salt_) & (sets_.size() - 1)];
    for (Entry& entry : set)
      if (entry.used != 0 && entry.key == key) return &entry.value;
    return nullptr;
  }
  std::uint64_t evicted() const { return evicted_; }
  std::size_t capacity() const { return sets_.size() * ways; }

 private:
  static constexpr std::size_t ways = 8;
  struct Entry {
    TableKey key{};
    Value value{};
    std::uint64_t used = 0;  // 0: free
  };
  using Set = std::array<Entry, ways>;

  std::vector<Set> sets_;
  std::uint64_t salt_;
  std::uint64_t now_ = 0;
  std::uint64_t evicted_ = 0;
};

}  // namespace weft::observe::probe
