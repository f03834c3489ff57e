// A hash table for lookups only: nobody sees its order.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>

#include "base/hash.hpp"

namespace weft::observe::detect {

struct NumberPair {
  std::uint64_t a = 0, b = 0;
  friend bool operator==(const NumberPair&, const NumberPair&) = default;
};
struct NumberPairHash {
  using is_avalanching = void;  // every bit of the key changes every bit of the hash
  std::size_t operator()(const NumberPair& key) const { return mix64(mix64(key.a) ^ key.b); }
};
using FlatMap = boost::unordered_flat_map<NumberPair, std::uint32_t, NumberPairHash>;

}  // namespace weft::observe::detect
