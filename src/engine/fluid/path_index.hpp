// Which entity has which path.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/fluid/solver.hpp"

namespace weft::engine::fluid {

// Of merged hops: links and shares, to the last bit.
std::uint64_t path_hash(std::span<const Hop> hops);

// A hash table with chains by entity. At most one entity of a path is in it. Cost: O(hops) a call.
class PathIndex {
 public:
  // The entity of that path, or an invalid id. All entities in it are alive in the solver.
  EntityId find(std::uint64_t hash, std::span<const Hop> hops, const Solver& solver) const;
  void add(std::uint64_t hash, EntityId entity);
  // Nothing happens where the entity is not in it.
  void erase(EntityId entity);

 private:
  static constexpr std::uint32_t none = UINT32_MAX;
  struct Row {
    std::uint64_t hash = 0;
    std::uint32_t next = none;  // in its chain
    bool is_in = false;
  };
  std::uint32_t& chain_of(std::uint64_t hash) { return first_[hash & (first_.size() - 1)]; }
  void grow();

  std::vector<std::uint32_t> first_;  // of each chain; a power of two of them, or none
  std::vector<Row> rows_;             // by entity
  std::size_t count_ = 0;
};

}  // namespace weft::engine::fluid
