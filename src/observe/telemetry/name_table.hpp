// Names and addresses to numbers, without allocation per lookup. Internal to the room.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/hash.hpp"

namespace weft::observe::telemetry {

// (owner, name) -> value; the first of equal keys stays.
class NameTable {
 public:
  static constexpr std::uint32_t none = UINT32_MAX;

  // False, and no change, when the key is there already.
  bool add(std::uint32_t owner, std::string_view name, std::uint32_t value) {
    return rows_.try_emplace(Key{owner, std::string(name)}, value).second;
  }
  std::uint32_t find(std::uint32_t owner, std::string_view name) const {
    const auto at = rows_.find(View{owner, name});
    return at == rows_.end() ? none : at->second;
  }
  std::size_t size() const { return rows_.size(); }

 private:
  struct View {
    std::uint32_t owner;
    std::string_view name;
    friend bool operator==(const View&, const View&) = default;
  };
  struct Key {
    std::uint32_t owner;
    std::string name;
    operator View() const { return {owner, name}; }
  };
  struct Hash {
    using is_transparent = void;
    using is_avalanching = void;
    std::size_t operator()(const View& key) const {
      return mix64(key.owner ^ std::hash<std::string_view>()(key.name));
    }
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(const View& a, const View& b) const { return a == b; }
  };

  boost::unordered_flat_map<Key, std::uint32_t, Hash, Equal> rows_;
};

}  // namespace weft::observe::telemetry
