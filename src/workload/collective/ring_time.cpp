#include "workload/collective/ring_time.hpp"

#include <algorithm>
#include <vector>

#include "base/check.hpp"

namespace weft::workload {
namespace {

struct Line {
  double slope, height;
  std::size_t start;  // the position a that it stands for
  double at(double t) const { return slope * t + height; }
};

// Upper hull of lines that come in order of rising slope.
class Hull {
 public:
  void clear() { lines_.clear(); }
  bool empty() const { return lines_.empty(); }

  void add(const Line& line) {
    while (lines_.size() >= 2 && covered(lines_[lines_.size() - 2], lines_.back(), line))
      lines_.pop_back();
    lines_.push_back(line);
  }

  // The highest line at t.
  const Line& top(double t) const {
    std::size_t low = 0, high = lines_.size() - 1;
    while (low < high) {
      const std::size_t mid = (low + high) / 2;
      if (lines_[mid].at(t) < lines_[mid + 1].at(t))
        low = mid + 1;
      else
        high = mid;
    }
    return lines_[low];
  }

 private:
  // b is nowhere above both a and c.
  static bool covered(const Line& a, const Line& b, const Line& c) {
    return (c.height - a.height) * (b.slope - a.slope) >=
           (b.height - a.height) * (c.slope - a.slope);
  }
  std::vector<Line> lines_;
};

// The ring unrolled to two laps, with the time from position 0 to each.
class Unrolled {
 public:
  Unrolled(std::span<const double> tau, std::span<const double> start, double steps)
      : tau_(tau), start_(start), steps_(steps), sum_(2 * tau.size() + 1, 0) {
    for (std::size_t x = 0; x < 2 * tau.size(); ++x) sum_[x + 1] = sum_[x] + this->tau(x);
  }
  double tau(std::size_t x) const { return tau_[x % tau_.size()]; }
  // As a function of t = tau(x), what start position a adds to a path to x.
  Line line(std::size_t a) const {
    return {static_cast<double>(a), start_[a % start_.size()] - sum_[a], a};
  }
  // Of rising slope when a falls, for t = -tau(x).
  Line mirrored(std::size_t a) const {
    const Line l = line(a);
    return {-l.slope, l.height, a};
  }
  double length(std::size_t a, std::size_t x) const {
    return start_[a % start_.size()] + (sum_[x] - sum_[a]) +
           (steps_ - static_cast<double>(x - a)) * tau(x);
  }

 private:
  std::span<const double> tau_, start_;
  double steps_;
  std::vector<double> sum_;
};

}  // namespace

double ring_time(std::span<const double> edge_s_per_chunk, std::span<const double> start_s,
                 std::uint32_t steps) {
  const std::size_t n = edge_s_per_chunk.size();
  WEFT_CHECK(n > 0 && start_s.size() == n);
  if (steps == 0) return std::ranges::max(start_s);
  const Unrolled ring(edge_s_per_chunk, start_s, steps);
  const std::size_t window = std::min<std::size_t>(n, steps), end = 2 * n;

  // Starts a in [x - window + 1, x] are the tail of the block before x's and the head of x's own.
  double longest = 0;
  Hull hull;
  for (std::size_t block = 0; block < end; block += window) {
    hull.clear();
    const std::size_t block_end = std::min(block + window, end);
    for (std::size_t x = block; x < block_end; ++x) {
      hull.add(ring.line(x));
      longest = std::max(longest, ring.length(hull.top(ring.tau(x)).start, x));
    }
    if (block == 0) continue;
    hull.clear();
    for (std::size_t x = block + window - 1; x-- > block;) {
      hull.add(ring.mirrored(x - window + 1));
      if (x < end) longest = std::max(longest, ring.length(hull.top(-ring.tau(x)).start, x));
    }
  }
  return longest;
}

}  // namespace weft::workload
