#include "route/pools.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "base/hash.hpp"

namespace weft::route {

std::size_t Pools::Hash::operator()(const std::vector<LinkId>& links) const {
  Digest digest;
  for (const LinkId link : links) digest.add(std::uint64_t{link.value});
  return digest.value();
}

LinkId Pools::resource_of(std::vector<LinkId>& links) {
  WEFT_CHECK(!links.empty());
  if (links.size() == 1) return links.front();
  if (!std::ranges::is_sorted(links)) std::ranges::sort(links);
  const auto [it, is_new] = known_.try_emplace(links, LinkId(resource_count()));
  if (is_new) pools_.push_back({links, sum(links)});
  WEFT_CHECK(pools_.size() == known_.size());
  return it->second;
}

double Pools::sum(std::span<const LinkId> links) const {
  double total = 0;
  for (const LinkId link : links) total += live_.bytes_per_s(link);
  return total;
}

double Pools::capacity(LinkId resource) const {
  WEFT_CHECK(resource.index() < resource_count());
  if (resource.index() < fabric_.link_count()) return live_.bytes_per_s(resource);
  return pools_[resource.index() - fabric_.link_count()].bytes_per_s;
}

std::span<const LinkId> Pools::members(LinkId resource) const {
  WEFT_CHECK(resource.index() < resource_count());
  if (resource.index() >= fabric_.link_count())
    return pools_[resource.index() - fabric_.link_count()].links;
  // A node's links stand in the order of its ports.
  return fabric_.out(fabric_.from(resource)).subspan(fabric_.port(resource), 1);
}

void Pools::on_change() {
  for (Pool& pool : pools_) pool.bytes_per_s = sum(pool.links);
}

}  // namespace weft::route
