#include "engine/fluid/path_index.hpp"

#include <algorithm>
#include <bit>

#include "base/check.hpp"
#include "base/hash.hpp"

namespace weft::engine::fluid {

std::uint64_t path_hash(std::span<const Hop> hops) {
  // A sum, so that no hop waits for the one before: rings have thousands. Merged hops have one
  // order.
  std::uint64_t hash = hops.size();
  for (const Hop& hop : hops) {
    const std::uint64_t word =
        (std::bit_cast<std::uint64_t>(hop.share) ^ std::uint64_t{hop.link.value} << 20) *
        0x9e3779b97f4a7c15ull;
    hash += word ^ word >> 32;
  }
  return mix64(hash);
}

EntityId PathIndex::find(std::uint64_t hash, std::span<const Hop> hops,
                         const Solver& solver) const {
  if (first_.empty()) return {};
  for (std::uint32_t at = first_[hash & (first_.size() - 1)]; at != none; at = rows_[at].next)
    if (rows_[at].hash == hash && solver.has_hops(EntityId(at), hops)) return EntityId(at);
  return {};
}

void PathIndex::add(std::uint64_t hash, EntityId entity) {
  if (rows_.size() <= entity.index()) rows_.resize(entity.index() + 1);
  if (count_ == first_.size()) grow();
  Row& row = rows_[entity.index()];
  WEFT_CHECK(!row.is_in);
  std::uint32_t& first = chain_of(hash);
  row = {.hash = hash, .next = first, .is_in = true};
  first = entity.value;
  ++count_;
}

void PathIndex::erase(EntityId entity) {
  if (entity.index() >= rows_.size() || !rows_[entity.index()].is_in) return;
  Row& row = rows_[entity.index()];
  std::uint32_t* at = &chain_of(row.hash);
  while (*at != entity.value) at = &rows_[*at].next;
  *at = row.next;
  row.is_in = false;
  --count_;
}

void PathIndex::grow() {
  first_.assign(std::max<std::size_t>(64, 2 * first_.size()), none);
  for (std::uint32_t id = 0; id < rows_.size(); ++id) {
    if (!rows_[id].is_in) continue;
    std::uint32_t& first = chain_of(rows_[id].hash);
    rows_[id].next = first;
    first = id;
  }
}

}  // namespace weft::engine::fluid
