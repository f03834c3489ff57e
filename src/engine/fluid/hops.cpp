#include "engine/fluid/hops.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"

namespace weft::engine::fluid {
namespace {

// By insertion, in place: paths are short and nearly sorted.
void merge_few(std::span<const Hop> hops, std::vector<Hop>& out) {
  out.resize(hops.size());
  std::size_t count = 0;
  for (const Hop& hop : hops) {
    std::size_t at = count;
    while (at > 0 && out[at - 1].link > hop.link) --at;
    if (at > 0 && out[at - 1].link == hop.link) {
      out[at - 1].share += hop.share;
    } else {
      for (std::size_t later = count++; later > at; --later) out[later] = out[later - 1];
      out[at] = hop;
    }
  }
  out.resize(count);
}

}  // namespace

bool is_merged(std::span<const Hop> hops) {
  for (std::size_t h = 0; h < hops.size(); ++h)
    if (hops[h].share <= 0 || (h > 0 && hops[h - 1].link >= hops[h].link)) return false;
  return true;
}

void HopMerger::merge(std::span<const Hop> hops, std::vector<Hop>& out) {
  constexpr std::size_t few = 64;
  out.clear();
  if (hops.size() <= few) {
    merge_few(hops, out);
  } else {
    // A ring names each of its links many times: add up by link, then sort what is left.
    for (const Hop& hop : hops) {
      if (share_.size() <= hop.link.index()) share_.resize(2 * hop.link.index() + 1, 0);
      if (share_[hop.link.index()] == 0) out.push_back(hop);
      share_[hop.link.index()] += hop.share;
    }
    std::ranges::sort(out, {}, &Hop::link);
    for (Hop& hop : out) hop.share = std::exchange(share_[hop.link.index()], 0);
  }
  const auto is_empty = [](const Hop& hop) { return hop.share <= 0; };
  if (std::ranges::any_of(out, is_empty)) std::erase_if(out, is_empty);
}

std::uint32_t Shares::find(double share) {
  const auto next = static_cast<std::uint32_t>(shares_.size());
  const auto [entry, is_new] = places_.try_emplace(share, next);
  if (is_new) shares_.push_back(share);
  return entry->second;
}

std::uint32_t PathStore::add(std::span<const Hop> path) {
  WEFT_CHECK(words_.size() + 2 * path.size() < UINT32_MAX);
  const auto first = static_cast<std::uint32_t>(words_.size());
  std::uint32_t share = 0;
  for (const Hop& hop : path) {
    WEFT_CHECK(hop.link.value < share_bit);
    const std::uint32_t own = shares_.place_of(hop.share);
    if (own != share) words_.push_back(own | share_bit);
    share = own;
    words_.push_back(hop.link.value);
  }
  return first;
}

}  // namespace weft::engine::fluid
