// Popularity of objects by Zipf's law, and what an LRU cache makes of it.
#pragma once

#include <cstdint>
#include <vector>

namespace weft::plan::edge {

// Hit rates of an LRU cache by Che's approximation: an object stays for a characteristic time T
// after each request, the same for all objects; T is what fills the cache on average. Requests are
// independent, objects of one size. From: Che, Tung, Wang, "Hierarchical Web Caching Systems:
// Modeling, Design and Experimental Results", IEEE JSAC 20(7), 2002.
// Ranks beyond 256 are taken together in groups of 2 %, at their mean popularity.
class Popularity {
 public:
  // Rank i of `objects` is asked for in proportion to i^-zipf; objects >= 1, zipf in [0, 4].
  Popularity(std::uint64_t objects, double zipf);

  // Share of requests that a cache of so many objects answers; 0 to 1. Cost: 40 passes over
  // the groups, about a thousand for a billion objects.
  double hit_rate(double cached) const;
  // Where the hit rate grows by `slope` per object that the cache has more; 0 where it never grows
  // so fast, the whole catalogue where it always does. The hit rate is concave, so there is one;
  // between points of a table.
  double size_at(double slope) const;

 private:
  struct Group {
    double each, count;  // popularity of one, objects
  };
  struct Point {
    double cached, hit, slope;
  };
  Point at(double time) const;  // in requests

  std::uint64_t objects_;
  std::vector<Group> groups_;
  std::vector<double> times_;  // rising, each by the same factor
  std::vector<Point> points_;  // of times_
};

}  // namespace weft::plan::edge
