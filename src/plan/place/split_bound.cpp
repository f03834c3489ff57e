// The certificate of a split: what no split can be cheaper than.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "plan/place/zone_split.hpp"

namespace weft::plan::place {
namespace {

constexpr std::int64_t unreachable = std::numeric_limits<std::int64_t>::max() / 4;

// The lines of one axis. A ring costs `ring` for each zone that fills it partly, a chain `chain`
// for each zone that it touches, less one: `refund` in all.
struct Lines {
  std::int64_t length, count;
  std::int64_t ring, chain;
  std::int64_t all() const { return ring + chain; }
  std::int64_t refund() const { return chain * count; }
};

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

std::vector<Lines> lines_of(const JobShape& shape) {
  std::vector<Lines> out;
  for (std::size_t a = 0; a < model::axis_count; ++a) {
    if (shape.size[a] < 2) continue;
    const std::int64_t length = shape.size[a], count = shape.host_count() / length;
    std::int64_t ring = shape.bytes.axis[a], chain = 0;
    if (a == axis_index(model::Axis::pp)) {
      ring = std::min(shape.bytes.axis[a], shape.bytes.pp_wrap);
      chain = shape.bytes.axis[a] - ring;
    }
    out.push_back({length, count, ring, chain});
  }
  return out;
}

// Of one zone of n hosts in a grid of two axes: rows are the lines of `a`, as many as b is long.
class Flat {
 public:
  Flat(const Lines& rows, const Lines& columns) : rows_(rows), columns_(columns) {}

  std::int64_t operator()(std::int64_t n) const {
    if (n == 0) return 0;
    if (n == rows_.length * rows_.count) return rows_.refund() + columns_.refund();
    std::int64_t best = unreachable;
    // No line is full: r rows and q columns with r q >= n.
    for (std::int64_t r = 1; r <= rows_.count; ++r)
      if (const std::int64_t q = ceil_div(n, r); q <= columns_.count)
        best = std::min(best, rows_.all() * r + columns_.all() * q);
    best = std::min({best, with_full(n, rows_, columns_), with_full(n, columns_, rows_)});
    // All lines are touched: b rows and a columns miss one of the m other hosts, a b >= m.
    const std::int64_t missing = rows_.length * rows_.count - n;
    for (std::int64_t b = 1; b <= rows_.count; ++b)
      if (const std::int64_t a = ceil_div(missing, b); a <= columns_.count)
        best =
            std::min(best, rows_.ring * b + columns_.ring * a + rows_.refund() + columns_.refund());
    return best;
  }

 private:
  // Some lines of `full` are, so that all of `other` are touched; not all of `full` are.
  static std::int64_t with_full(std::int64_t n, const Lines& full, const Lines& other) {
    if (n < full.length) return unreachable;
    return (n % full.length == 0 ? 0 : full.ring) + full.chain * ceil_div(n, full.length) +
           other.all() * other.count;
  }
  Lines rows_, columns_;
};

// Three and more axes: n^(d-1) is at most the product of the lines touched along each axis (Loomis
// and Whitney, 1949). Every subset of the axes may have full lines, which then cost nothing.
class Deep {
 public:
  explicit Deep(std::vector<Lines> lines) : lines_(std::move(lines)) {}

  std::int64_t operator()(std::int64_t n) const {
    if (n == 0) return 0;
    double best = static_cast<double>(unreachable);
    for (std::uint32_t full = 0; full < 1u << lines_.size(); ++full)
      best = std::min(best, with_full(n, full));
    // The power function rounds; a bound must not.
    return static_cast<std::int64_t>(best * (1 - 1e-9));
  }

 private:
  double with_full(std::int64_t n, std::uint32_t full) const {
    double product = std::pow(static_cast<double>(n), static_cast<double>(lines_.size() - 1));
    double weights = 1, apart = 0;
    std::size_t open = 0;
    for (std::size_t a = 0; a < lines_.size(); ++a) {
      const Lines& line = lines_[a];
      if ((full >> a & 1) != 0) {
        if (n < line.length) return static_cast<double>(unreachable);
        product /= static_cast<double>(line.count);
        // The chain is paid for every line that is touched, and those hold n hosts.
        apart += static_cast<double>(line.chain * ceil_div(n, line.length));
      } else {
        if (ceil_div(n, line.length - 1) > line.count) return static_cast<double>(unreachable);
        if (line.all() == 0) {
          product /= static_cast<double>(line.count);
          continue;
        }
        weights *= static_cast<double>(line.all());
        ++open;
      }
    }
    if (open == 0) return apart;
    const auto d = static_cast<double>(open);
    // Weighted sum under a product: least where all terms are equal.
    return apart + d * std::pow(weights * std::max(product, 1.0), 1 / d);
  }
  std::vector<Lines> lines_;
};

// Two axes and the pipeline: each stage holds n_s of the zone's n hosts, a grid of two axes, and
// the chains that are touched are as many as the largest n_s. The stages' costs are replaced by
// their lower convex hull up to the largest, so that equal shares are the cheapest.
class Stages {
 public:
  Stages(const Lines& a, const Lines& b, const Lines& pipeline)
      : stages_(pipeline.length), chain_(pipeline.chain) {
    const Lines rows{a.length, b.length, a.ring, a.chain};
    const Lines columns{b.length, a.length, b.ring, b.chain};
    const Flat stage(rows, columns);
    for (std::int64_t n = 0; n <= a.length * b.length; ++n) of_.push_back(stage(n));
  }

  std::int64_t operator()(std::int64_t n) const {
    const double mean = static_cast<double>(n) / static_cast<double>(stages_);
    double best = static_cast<double>(unreachable);
    std::vector<std::int64_t> hull;  // of hosts 0 to `most`
    for (std::int64_t most = 0; most < std::ssize(of_); ++most) {
      while (hull.size() > 1 && is_above(hull[hull.size() - 2], hull.back(), most)) hull.pop_back();
      hull.push_back(most);
      if (static_cast<double>(most) < mean) continue;
      const auto right = std::ranges::lower_bound(hull, static_cast<std::int64_t>(std::ceil(mean)));
      const std::int64_t left = right == hull.begin() ? *right : *(right - 1);
      const double slope = left == *right ? 0
                                          : static_cast<double>(of(*right) - of(left)) /
                                                static_cast<double>(*right - left);
      const double stage =
          static_cast<double>(of(left)) + slope * (mean - static_cast<double>(left));
      best =
          std::min(best, static_cast<double>(stages_) * stage + static_cast<double>(chain_ * most));
    }
    return static_cast<std::int64_t>(std::floor(best * (1 - 1e-9)));
  }

 private:
  std::int64_t of(std::int64_t n) const { return of_[static_cast<std::size_t>(n)]; }
  // Whether the middle point lies on or above the line between the others.
  bool is_above(std::int64_t a, std::int64_t b, std::int64_t c) const {
    return (of(b) - of(a)) * (c - a) >= (of(c) - of(a)) * (b - a);
  }
  std::int64_t stages_, chain_;
  std::vector<std::int64_t> of_;
};

// The least sum over the zones, where each takes at most what it has and all take `total`.
template <class Zone>
std::int64_t least_sum(std::span<const std::uint32_t> free_hosts, std::uint32_t total,
                       const Zone& zone) {
  const std::uint64_t free =
      std::accumulate(free_hosts.begin(), free_hosts.end(), std::uint64_t{0});
  if (free == total) {
    std::int64_t sum = 0;
    for (const std::uint32_t n : free_hosts) sum += zone(n);
    return sum;
  }
  const std::uint32_t most_free = std::min(total, std::ranges::max(free_hosts));
  if (std::uint64_t{total} * total > 40'000'000) {
    // Too many shares to compare: as if every host cost what it does in the cheapest one.
    double least = static_cast<double>(unreachable);
    for (std::uint32_t n = 1; n <= most_free; ++n)
      least = std::min(least, static_cast<double>(zone(n)) / n);
    return static_cast<std::int64_t>(least * total * (1 - 1e-9));
  }
  std::vector<std::int64_t> of(total + 1), least(total + 1, unreachable), next;
  for (std::uint32_t n = 0; n <= total; ++n) of[n] = zone(n);
  least[0] = 0;
  for (const std::uint32_t most : free_hosts) {
    next.assign(total + 1, unreachable);
    for (std::uint32_t had = 0; had <= total; ++had)
      if (least[had] < unreachable)
        for (std::uint32_t n = 0; n <= std::min(most, total - had); ++n)
          next[had + n] = std::min(next[had + n], least[had] + of[n]);
    least.swap(next);
  }
  return least[total];
}

}  // namespace

std::int64_t split_bound(const JobShape& shape, std::span<const std::uint32_t> free_hosts) {
  const std::vector<Lines> lines = lines_of(shape);
  const std::int64_t run = shape.expert_hosts, pair = shape.bytes.expert_pair;
  // Pairs of one expert group in different zones; fewest where one group alone is cut.
  const auto experts = [&](std::int64_t n) { return n % run * (run - n % run) * pair; };
  const Lines single{1, 1, 0, 0};
  std::int64_t refund = 0;
  for (const Lines& line : lines) refund += line.refund();
  const auto with = [&](const auto& grid) {
    const auto twice = [&](std::int64_t n) { return 2 * grid(n) + experts(n); };
    return (least_sum(free_hosts, shape.host_count(), twice) + 1) / 2 - refund;
  };
  std::int64_t bound = 0;
  if (lines.size() == 2) {
    bound = with(Flat(lines[0], lines[1]));
  } else if (lines.size() == 1) {
    // A single line, and columns of one host each that cost nothing.
    bound = with(Flat(lines[0], {1, lines[0].length, 0, 0}));
  } else if (lines.size() > 2) {
    bound = with(Deep(lines));
    const auto pp = shape.size[2] > 1 ? (shape.size[0] > 1) + (shape.size[1] > 1) : -1;
    // One share takes as many steps as a stage has hosts; there may be as many shares as hosts.
    const std::uint64_t steps = std::uint64_t{shape.host_count()} * shape.host_count();
    if (lines.size() == 3 && pp >= 0 && steps / shape.size[2] <= 200'000'000)
      bound = std::max(bound, with(Stages(lines[pp == 0 ? 1 : 0], lines[pp == 2 ? 1 : 2],
                                          lines[static_cast<std::size_t>(pp)])));
  } else {
    bound = with(Flat(single, single));
  }
  // Replicas form one ring for each stage, whatever lies along cp and dp: two axes again.
  if (shape.bytes.replicas > 0 && shape.size[0] == 1) {
    const std::int64_t stages = shape.size[2], of_stage = shape.host_count() / stages;
    Lines chains{stages, of_stage, 0, 0};
    for (const Lines& line : lines)
      if (line.chain > 0) chains = line;
    const std::int64_t other = refund - chains.refund();
    bound =
        std::max(bound, with(Flat({of_stage, stages, shape.bytes.replicas, 0}, chains)) + other);
  }
  return std::max<std::int64_t>(bound, 0);
}

}  // namespace weft::plan::place
