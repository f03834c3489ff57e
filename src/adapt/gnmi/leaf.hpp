// One value with the place in the data tree that it is of.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <variant>

namespace weft::adapt::gnmi {

// [name=value] of a list entry.
struct PathKey {
  std::string_view element, name, value;
};

// What encodings can tell apart; JSON and some targets write numbers as texts.
using Value = std::variant<bool, std::int64_t, std::uint64_t, double, std::string_view>;

struct Leaf {
  std::string_view path;  // names of elements without keys and modules: "interfaces/interface/mtu"
  std::span<const std::string_view> elements;  // the same one by one
  std::span<const PathKey> keys;               // from the root on
  Value value;
};

}  // namespace weft::adapt::gnmi
