// Names and addresses to numbers, without allocation per lookup. Internal to the room.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.hpp"

namespace weft::observe::telemetry {

// (owner, name) -> value by open addressing; the first of equal keys stays.
class NameTable {
 public:
  static constexpr std::uint32_t none = UINT32_MAX;

  // False, and no change, when the key is there already.
  bool add(std::uint32_t owner, std::string_view name, std::uint32_t value) {
    if (2 * (rows_.size() + 1) > slots_.size()) grow();
    const std::uint64_t hash = hash_of(owner, name);
    std::size_t at = hash & (slots_.size() - 1);
    for (; slots_[at] != none; at = (at + 1) & (slots_.size() - 1))
      if (is(rows_[slots_[at]], hash, owner, name)) return false;
    slots_[at] = static_cast<std::uint32_t>(rows_.size());
    rows_.push_back({hash, names_.size(), static_cast<std::uint32_t>(name.size()), owner, value});
    names_ += name;
    return true;
  }

  std::uint32_t find(std::uint32_t owner, std::string_view name) const {
    if (slots_.empty()) return none;
    const std::uint64_t hash = hash_of(owner, name);
    for (std::size_t at = hash & (slots_.size() - 1); slots_[at] != none;
         at = (at + 1) & (slots_.size() - 1))
      if (const Row& row = rows_[slots_[at]]; is(row, hash, owner, name)) return row.value;
    return none;
  }

  std::size_t size() const { return rows_.size(); }

 private:
  struct Row {
    std::uint64_t hash;
    std::size_t first;
    std::uint32_t length, owner, value;
  };

  static std::uint64_t hash_of(std::uint32_t owner, std::string_view name) {
    std::uint64_t h = mix64(owner + (std::uint64_t{name.size()} << 32));
    const char* at = name.data();
    std::size_t left = name.size();
    for (; left >= 8; at += 8, left -= 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, at, 8);
      h = (std::rotl(h, 29) ^ word) * 0x9e3779b97f4a7c15ull;
    }
    std::uint64_t word = 0;
    if (left > 0) std::memcpy(&word, at, left);
    return mix64(h ^ word);
  }
  bool is(const Row& row, std::uint64_t hash, std::uint32_t owner, std::string_view name) const {
    return row.hash == hash && row.owner == owner &&
           std::string_view(names_).substr(row.first, row.length) == name;
  }
  void grow() {
    slots_.assign(slots_.empty() ? 16 : 2 * slots_.size(), none);
    for (std::uint32_t i = 0; i < rows_.size(); ++i) {
      std::size_t at = rows_[i].hash & (slots_.size() - 1);
      while (slots_[at] != none) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = i;
    }
  }

  std::vector<Row> rows_;
  std::vector<std::uint32_t> slots_;  // a power of two, at most half full
  std::string names_;
};

}  // namespace weft::observe::telemetry
