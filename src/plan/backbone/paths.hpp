// Paths of a backbone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/backbone/wan.hpp"

namespace weft::plan::backbone {

inline constexpr std::uint32_t no_path = UINT32_MAX;

// Links in order, path by path, demand by demand.
struct PathSet {
  std::vector<std::uint32_t> first_path{0};  // of each demand, and one more
  std::vector<std::uint32_t> first_link{0};  // of each path, and one more
  std::vector<std::uint32_t> links;

  std::size_t path_count() const { return first_link.size() - 1; }
  std::span<const std::uint32_t> path(std::size_t p) const {
    return {links.data() + first_link[p], links.data() + first_link[p + 1]};
  }
};

class PathFinder {
 public:
  explicit PathFinder(const Wan& wan);

  // To every site by breadth-first search; no_path where there is none.
  std::vector<std::uint32_t> hops_from(std::uint32_t site);
  // Up to `count` paths without a link in common: the one of fewest links, then of fewest among the
  // links that are left. Among equals the links of lower number. None over a cable of `dead` (of
  // each cable; empty: all live). Appends to `out`.
  void add_disjoint(std::uint32_t from, std::uint32_t to, std::uint32_t count, PathSet& out,
                    std::span<const char> dead = {});
  // Least sums of `price` (of each link, >= 0) to every site; infinity where there is no path.
  std::vector<double> distances(std::uint32_t from, std::span<const double> price) const;

  // The links of a path of least price; empty where there is none.
  std::vector<std::uint32_t> cheapest_path(std::uint32_t from, std::uint32_t to,
                                           std::span<const double> price) const;

 private:
  bool search(std::uint32_t from, std::uint32_t to);

  const Wan& wan_;
  std::vector<std::uint32_t> first_out_;            // of each site, and one more
  std::vector<std::uint32_t> out_link_, out_site_;  // links leave in order of their number
  std::vector<std::uint32_t> came_by_, queue_, seen_, banned_;
  std::uint32_t search_ = 0, ban_ = 0;
};

// Of all demands, one after the other; a pair that comes again has the same paths.
PathSet find_paths(const Wan& wan, const std::vector<Demand>& demands, std::uint32_t count);

}  // namespace weft::plan::backbone
