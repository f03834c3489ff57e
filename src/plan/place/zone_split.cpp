#include "plan/place/zone_split.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "base/check.hpp"
#include "plan/place/anneal.hpp"

namespace weft::plan::place {
namespace {

using Zones = std::vector<std::uint32_t>;

// How hard to look; chosen so that 512 hosts take 0.2 CPU s.
struct Effort {
  std::size_t trees, climbers, steps, starts, swaps;
  explicit Effort(std::size_t hosts)
      : trees(std::clamp<std::size_t>(200'000 / hosts, 8, 400)),
        climbers(6),
        steps(std::clamp<std::size_t>(200'000 / hosts, 8, 400)),
        starts(5),
        swaps(std::min<std::size_t>(700 * hosts, 2'000'000)) {}
};

// A host's coordinates, with dp cut into expert groups: tp, cp, pp, group, place in the group.
constexpr std::size_t cut_axes = model::axis_count + 1;
using CutPoint = std::array<std::uint32_t, cut_axes>;
constexpr std::array<std::string_view, cut_axes> cut_names{"tp", "cp", "pp", "dp", "ep"};

std::vector<CutPoint> cut_points(const JobShape& shape, std::uint32_t expert_dp) {
  std::vector<CutPoint> out;
  for (std::uint32_t v = 0; v < shape.host_count(); ++v) {
    const model::GridPoint at = shape.point(v);
    out.push_back({at[0], at[1], at[2], at[3] / expert_dp, at[3] % expert_dp});
  }
  return out;
}

// ---- plain orders ------------------------------------------------------------------------------

class PlainOrders {
 public:
  PlainOrders(const JobShape& shape, const JobGraph& graph, std::span<const std::uint32_t> free)
      : graph_(graph), free_(free), points_(cut_points(shape, shape.expert_dp())) {
    for (const CutPoint& point : points_)
      for (std::size_t a = 0; a < cut_axes; ++a) size_[a] = std::max(size_[a], point[a] + 1);
  }

  // All of them; the cheapest is named in `out`.
  std::vector<Split> all(ZoneSplit& out) {
    std::vector<std::size_t> axes;
    for (std::size_t a = 0; a < cut_axes; ++a)
      if (size_[a] > 1) axes.push_back(a);
    Zones given(free_.size());
    std::iota(given.begin(), given.end(), 0u);
    Zones rising = given;
    std::ranges::stable_sort(rising, {}, [&](std::uint32_t z) { return free_[z]; });
    const Zones falling(rising.rbegin(), rising.rend());
    std::vector<Split> splits;
    do {
      for (const bool snake : {false, true}) {
        const Zones order = hosts_in_order(axes, snake);
        for (const auto& [zones, name] :
             std::initializer_list<std::pair<const Zones*, const char*>>{
                 {&given, ""}, {&falling, ", zones falling"}, {&rising, ", zones rising"}}) {
          splits.push_back(fill(order, *zones));
          if (splits.size() > 1 && splits.back().cost >= out.plain_cost) continue;
          out.plain_cost = splits.back().cost;
          out.plain_name = fmt::format("{}{}{}", text(axes), snake ? ", snake" : "", name);
        }
      }
    } while (std::ranges::next_permutation(axes).found);
    return splits;
  }

 private:
  static std::string text(const std::vector<std::size_t>& axes) {
    std::string out;
    for (const std::size_t a : axes) out += (out.empty() ? "" : "-") + std::string(cut_names[a]);
    return out;
  }

  // Innermost axis first; a snake turns back at the end of every line.
  Zones hosts_in_order(const std::vector<std::size_t>& axes, bool snake) const {
    std::vector<std::pair<std::uint64_t, std::uint32_t>> keys;
    for (std::uint32_t v = 0; v < points_.size(); ++v) {
      std::uint64_t key = 0;
      for (std::size_t i = axes.size(); i-- > 0;) {
        const std::uint32_t length = size_[axes[i]], at = points_[v][axes[i]];
        key = key * length + (snake && (key & 1) != 0 ? length - 1 - at : at);
      }
      keys.emplace_back(key, v);
    }
    std::ranges::sort(keys);
    Zones out;
    for (const auto& [key, v] : keys) out.push_back(v);
    return out;
  }

  Split fill(const Zones& order, const Zones& zones) const {
    const std::uint64_t all = std::accumulate(free_.begin(), free_.end(), std::uint64_t{0});
    Split out{.part = Zones(all), .cost = 0};
    std::size_t at = 0;
    for (const std::uint32_t z : zones)
      for (std::uint32_t i = 0; i < free_[z]; ++i, ++at)
        out.part[at < order.size() ? order[at] : at] = z;
    out.cost = graph_.crossing(out.part);
    return out;
  }

  const JobGraph& graph_;
  std::span<const std::uint32_t> free_;
  std::vector<CutPoint> points_;
  CutPoint size_{};
};

// ---- guillotine trees --------------------------------------------------------------------------

// How a region is cut in two: by a prefix of boxes of some sides from a corner, box after box, and
// inside a box line after line. Sides of 1 make it a plain order.
struct Cut {
  double at = 0;                        // share of the zones before it
  std::array<double, cut_axes> side{};  // share of the region along each axis; 0: 1 host
  std::array<std::uint8_t, cut_axes> axes{0, 1, 2, 3, 4};  // innermost first
  std::uint32_t mirrored = 0;                              // bit per axis
  bool by_expert = false;  // dp as groups and places inside, or as one axis
};

struct Tree {
  std::vector<std::uint32_t> zones;  // in the order in which they are cut off
  Zones share;                       // hosts by zone
  std::vector<Cut> cuts;             // zones - 1, in preorder
};

class Guillotine {
 public:
  Guillotine(const JobShape& shape, const JobGraph& graph, std::span<const std::uint32_t> free,
             Rng rng)
      : graph_(graph),
        free_(free),
        expert_(shape.expert_dp() > 1),
        points_{cut_points(shape, 1), cut_points(shape, shape.expert_dp())},
        rng_(rng) {}

  Tree draw() {
    Tree tree;
    tree.zones.resize(free_.size());
    std::iota(tree.zones.begin(), tree.zones.end(), 0u);
    rng_.shuffle(std::span(tree.zones));
    tree.share = draw_share(tree.zones);
    tree.cuts.resize(free_.size() - 1);
    for (Cut& cut : tree.cuts) cut = draw_cut();
    return tree;
  }

  // A neighbour: another cut, a side or mirror of one, two zones swapped, or other shares.
  Tree changed(Tree tree) {
    const std::uint64_t what = rng_.below(8);
    Cut& cut = tree.cuts[rng_.below(tree.cuts.size())];
    if (what < 2) {
      cut = draw_cut();
    } else if (what < 4) {
      cut.side[rng_.below(cut_axes)] = draw_side();
    } else if (what == 4) {
      cut.mirrored ^= 1u << rng_.below(cut_axes);
    } else if (what == 5) {
      std::swap(cut.axes[rng_.below(cut_axes)], cut.axes[rng_.below(cut_axes)]);
    } else if (what == 6) {
      std::swap(tree.zones[rng_.below(free_.size())], tree.zones[rng_.below(free_.size())]);
    } else {
      cut.at = rng_.uniform();
      if (has_spare()) tree.share = draw_share(tree.zones);
    }
    return tree;
  }

  Split grow(const Tree& tree) {
    Split out;
    const std::size_t hosts = graph_.size();
    out.part.resize(hosts);
    cells_.resize(hosts);
    std::iota(cells_.begin(), cells_.end(), 0u);
    next_cut_ = 0;
    divide(tree, cells_, tree.zones, out.part);
    out.cost = graph_.crossing(out.part);
    for (std::uint32_t z = 0; z < free_.size(); ++z)
      out.part.insert(out.part.end(), free_[z] - tree.share[z], z);
    return out;
  }

 private:
  bool has_spare() const {
    return std::accumulate(free_.begin(), free_.end(), std::uint64_t{0}) > graph_.size();
  }
  double draw_side() {
    switch (rng_.below(3)) {
      case 0:
        return 0;
      case 1:
        return 1.0 / static_cast<double>(1u << rng_.below(5));
      default:
        return rng_.uniform();
    }
  }
  Cut draw_cut() {
    Cut cut;
    cut.at = rng_.below(2) == 0 ? 0 : rng_.uniform();
    cut.mirrored = static_cast<std::uint32_t>(rng_.below(1u << cut_axes));
    cut.by_expert = expert_ && rng_.below(2) == 0;
    rng_.shuffle(std::span<std::uint8_t>(cut.axes));
    if (rng_.below(2) == 0)
      for (double& side : cut.side) side = draw_side();
    return cut;
  }
  // Zones give what they have until the job is full: in the order of the tree, or what is spare
  // spread at random.
  Zones draw_share(std::span<const std::uint32_t> zones) {
    Zones share(free_.begin(), free_.end());
    std::uint64_t spare =
        std::accumulate(free_.begin(), free_.end(), std::uint64_t{0}) - graph_.size();
    const bool spread = rng_.below(2) == 0;
    for (std::size_t i = zones.size(); i-- > 0 && spare > 0;) {
      std::uint64_t less = std::min<std::uint64_t>(spare, share[zones[i]]);
      if (spread && i > 0) less = rng_.below(less + 1);
      share[zones[i]] -= static_cast<std::uint32_t>(less);
      spare -= less;
    }
    for (std::size_t i = 0; spare > 0; ++i) {  // the first had too few for the rest
      const std::uint64_t less = std::min<std::uint64_t>(spare, share[zones[i]]);
      share[zones[i]] -= static_cast<std::uint32_t>(less);
      spare -= less;
    }
    return share;
  }

  void divide(const Tree& tree, std::span<std::uint32_t> cells,
              std::span<const std::uint32_t> zones, Zones& out) {
    if (zones.size() == 1) {
      for (const std::uint32_t v : cells) out[v] = zones[0];
      return;
    }
    const Cut& cut = tree.cuts[next_cut_++];
    const std::size_t before =
        1 + static_cast<std::size_t>(cut.at * static_cast<double>(zones.size() - 1));
    std::size_t take = 0;
    for (const std::uint32_t z : zones.first(before)) take += tree.share[z];
    order(cells, cut, take);
    divide(tree, cells.first(take), zones.first(before), out);
    divide(tree, cells.subspan(take), zones.subspan(before), out);
  }

  // Brings the `take` first cells of the cut's order to the front.
  void order(std::span<std::uint32_t> cells, const Cut& cut, std::size_t take) {
    if (take == 0 || take == cells.size()) return;
    const std::vector<CutPoint>& points = points_[cut.by_expert ? 1 : 0];
    CutPoint low = points[cells[0]], high = low;
    for (const std::uint32_t v : cells)
      for (std::size_t a = 0; a < cut_axes; ++a) {
        low[a] = std::min(low[a], points[v][a]);
        high[a] = std::max(high[a], points[v][a]);
      }
    CutPoint side{}, boxes{};
    for (std::size_t a = 0; a < cut_axes; ++a) {
      const std::uint32_t length = high[a] - low[a] + 1;
      side[a] = std::max(1u, static_cast<std::uint32_t>(std::lround(cut.side[a] * length)));
      boxes[a] = (length + side[a] - 1) / side[a];
    }
    keys_.clear();
    for (const std::uint32_t v : cells) {
      std::uint64_t box = 0, inside = 0, volume = 1;
      for (std::size_t i = cut_axes; i-- > 0;) {
        const std::size_t a = cut.axes[i];
        const std::uint32_t at =
            (cut.mirrored >> a & 1) != 0 ? high[a] - points[v][a] : points[v][a] - low[a];
        box = box * boxes[a] + at / side[a];
        inside = inside * side[a] + at % side[a];
        volume *= side[a];
      }
      keys_.emplace_back(box * volume + inside, v);
    }
    std::ranges::nth_element(keys_, keys_.begin() + static_cast<std::ptrdiff_t>(take));
    for (std::size_t i = 0; i < cells.size(); ++i) cells[i] = keys_[i].second;
  }

  const JobGraph& graph_;
  std::span<const std::uint32_t> free_;
  bool expert_;
  std::array<std::vector<CutPoint>, 2> points_;
  Rng rng_;
  std::vector<std::uint32_t> cells_;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> keys_;
  std::size_t next_cut_ = 0;
};

// The best few, one for each cost.
void keep_best(std::vector<Split>& splits, std::size_t count) {
  std::ranges::stable_sort(splits, {}, &Split::cost);
  const auto [first, last] = std::ranges::unique(splits, {}, &Split::cost);
  splits.erase(first, last);
  if (splits.size() > count) splits.resize(count);
}

// Trees drawn at random, the best of them climbed.
std::vector<Split> grow_trees(Guillotine& guillotine, const Effort& effort) {
  std::vector<std::pair<std::int64_t, Tree>> trees;
  for (std::size_t i = 0; i < effort.trees; ++i) {
    Tree tree = guillotine.draw();
    const std::int64_t cost = guillotine.grow(tree).cost;
    trees.emplace_back(cost, std::move(tree));
  }
  std::ranges::stable_sort(trees, {}, [](const auto& tree) { return tree.first; });
  trees.resize(std::min(trees.size(), effort.climbers));
  std::vector<Split> out;
  for (auto& [cost, tree] : trees) {
    for (std::size_t i = 0; i < effort.steps; ++i) {
      Tree next = guillotine.changed(tree);
      const std::int64_t next_cost = guillotine.grow(next).cost;
      if (next_cost > cost) continue;
      cost = next_cost;
      tree = std::move(next);
    }
    out.push_back(guillotine.grow(tree));
  }
  return out;
}

std::pair<std::int64_t, std::int64_t> edge_range(const JobGraph& graph) {
  const auto [least, most] = std::ranges::minmax_element(graph.all, {}, &JobGraph::Edge::bytes);
  return {least->bytes, most->bytes};
}

}  // namespace

ZoneSplit split_zones(const JobShape& shape, const JobGraph& graph,
                      std::span<const std::uint32_t> free_hosts, const Rng& rng) {
  WEFT_CHECK(std::accumulate(free_hosts.begin(), free_hosts.end(), std::uint64_t{0}) >=
             graph.size());
  ZoneSplit out;
  out.bound = split_bound(shape, free_hosts);
  std::vector<Split> splits = PlainOrders(shape, graph, free_hosts).all(out);
  const Effort effort(graph.size());
  keep_best(splits, effort.starts);
  if (free_hosts.size() > 1 && splits[0].cost > out.bound && !graph.all.empty()) {
    Guillotine guillotine(shape, graph, free_hosts, rng.stream("guillotine"));
    for (Split& split : grow_trees(guillotine, effort)) splits.push_back(std::move(split));
    keep_best(splits, effort.starts);
    const auto [light, heavy] = edge_range(graph);
    Split best = splits[0];
    for (std::size_t i = 0; i < splits.size() && best.cost > out.bound; ++i) {
      constexpr std::array<double, 3> hot{0.15, 0.35, 0.75};
      Split cold = anneal(graph, splits[i],
                          {.parts = free_hosts.size(),
                           .swaps = effort.swaps,
                           .hot = hot[i % hot.size()] * static_cast<double>(heavy),
                           .cold = 0.08 * static_cast<double>(light),
                           .bound = out.bound},
                          rng.stream(i));
      if (cold.cost < best.cost) best = std::move(cold);
    }
    splits[0] = std::move(best);
  }
  out.cost = splits[0].cost;
  out.zone = std::move(splits[0].part);
  out.zone.resize(graph.size());
  return out;
}

}  // namespace weft::plan::place
