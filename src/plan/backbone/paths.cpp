#include "plan/backbone/paths.hpp"

#include <algorithm>
#include <limits>
#include <queue>
#include <utility>

namespace weft::plan::backbone {

PathFinder::PathFinder(const Wan& wan)
    : wan_(wan),
      first_out_(wan.sites.size() + 1, 0),
      out_link_(wan.link_count()),
      out_site_(wan.link_count()),
      came_by_(wan.sites.size()),
      seen_(wan.sites.size(), 0),
      banned_(wan.link_count(), 0) {
  for (std::size_t l = 0; l < wan.link_count(); ++l) ++first_out_[wan.from(l) + 1];
  for (std::size_t i = 1; i < first_out_.size(); ++i) first_out_[i] += first_out_[i - 1];
  std::vector<std::uint32_t> next(first_out_.begin(), first_out_.end() - 1);
  for (std::uint32_t l = 0; l < wan.link_count(); ++l) {
    const std::uint32_t at = next[wan.from(l)]++;
    out_link_[at] = l;
    out_site_[at] = wan.to(l);
  }
  queue_.reserve(wan.sites.size());
}

std::vector<std::uint32_t> PathFinder::hops_from(std::uint32_t site) {
  std::vector<std::uint32_t> out(wan_.sites.size(), no_path);
  out[site] = 0;
  queue_.assign(1, site);
  for (std::size_t i = 0; i < queue_.size(); ++i)
    for (std::uint32_t at = first_out_[queue_[i]]; at < first_out_[queue_[i] + 1]; ++at)
      if (const std::uint32_t to = out_site_[at]; out[to] == no_path) {
        out[to] = out[queue_[i]] + 1;
        queue_.push_back(to);
      }
  return out;
}

bool PathFinder::search(std::uint32_t from, std::uint32_t to) {
  ++search_;
  queue_.assign(1, from);
  seen_[from] = search_;
  for (std::size_t i = 0; i < queue_.size(); ++i)
    for (std::uint32_t at = first_out_[queue_[i]]; at < first_out_[queue_[i] + 1]; ++at) {
      const std::uint32_t site = out_site_[at];
      if (seen_[site] == search_ || banned_[out_link_[at]] == ban_) continue;
      seen_[site] = search_;
      came_by_[site] = out_link_[at];
      if (site == to) return true;
      queue_.push_back(site);
    }
  return false;
}

void PathFinder::add_disjoint(std::uint32_t from, std::uint32_t to, std::uint32_t count,
                              PathSet& out, std::span<const char> dead) {
  ++ban_;
  for (std::size_t c = 0; c < dead.size(); ++c)
    if (dead[c] != 0) banned_[2 * c] = banned_[2 * c + 1] = ban_;
  for (std::uint32_t k = 0; k < count && search(from, to); ++k) {
    const auto first = static_cast<std::ptrdiff_t>(out.links.size());
    for (std::uint32_t site = to; site != from; site = wan_.from(came_by_[site])) {
      out.links.push_back(came_by_[site]);
      banned_[came_by_[site]] = ban_;
    }
    std::reverse(out.links.begin() + first, out.links.end());
    out.first_link.push_back(static_cast<std::uint32_t>(out.links.size()));
  }
}

std::vector<double> PathFinder::distances(std::uint32_t from, std::span<const double> price) const {
  std::vector<double> out(wan_.sites.size(), std::numeric_limits<double>::infinity());
  using Entry = std::pair<double, std::uint32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
  out[from] = 0;
  open.emplace(0.0, from);
  while (!open.empty()) {
    const auto [distance, site] = open.top();
    open.pop();
    if (distance > out[site]) continue;
    for (std::uint32_t at = first_out_[site]; at < first_out_[site + 1]; ++at) {
      const double next = distance + price[out_link_[at]];
      if (next >= out[out_site_[at]]) continue;
      out[out_site_[at]] = next;
      open.emplace(next, out_site_[at]);
    }
  }
  return out;
}

std::vector<std::uint32_t> PathFinder::cheapest_path(std::uint32_t from, std::uint32_t to,
                                                     std::span<const double> price) const {
  const std::vector<double> distance = distances(from, price);
  std::vector<std::uint32_t> out;
  if (distance[to] == std::numeric_limits<double>::infinity()) return out;
  for (std::uint32_t site = to; site != from && out.size() < wan_.sites.size();) {
    std::uint32_t best = no_path;
    for (std::uint32_t at = first_out_[site]; at < first_out_[site + 1]; ++at) {
      const std::uint32_t in = out_link_[at] ^ 1;  // the other way on the same cable
      const double by = distance[out_site_[at]] + price[in];
      if (best == no_path || by < distance[wan_.from(best)] + price[best]) best = in;
    }
    out.push_back(best);
    site = wan_.from(best);
  }
  std::ranges::reverse(out);
  return out;
}

PathSet find_paths(const Wan& wan, const std::vector<Demand>& demands, std::uint32_t count) {
  PathSet out;
  PathFinder finder(wan);
  for (const Demand& d : demands) {
    finder.add_disjoint(d.from, d.to, count, out);
    out.first_path.push_back(static_cast<std::uint32_t>(out.path_count()));
  }
  return out;
}

}  // namespace weft::plan::backbone
