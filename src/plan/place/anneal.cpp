#include "plan/place/anneal.hpp"

#include <array>
#include <cmath>
#include <utility>

namespace weft::plan::place {
namespace {

class Annealer {
 public:
  Annealer(const JobGraph& graph, std::size_t parts, Split start, const Rng& rng)
      : graph_(graph), best_(std::move(start)), members_(parts), rng_(rng) {
    part_ = best_.part;
    cost_ = best_.cost;
    for (std::uint32_t v = 0; v < part_.size(); ++v) {
      at_.push_back(static_cast<std::uint32_t>(members_[part_[v]].size()));
      members_[part_[v]].push_back(v);
    }
    for (std::size_t i = 0; i < losses_.size(); ++i)
      losses_[i] = -std::log((static_cast<double>(i) + 0.5) / static_cast<double>(losses_.size()));
  }

  Split run(const AnnealOptions& options) {
    constexpr std::size_t stride = 256;
    const double cooling =
        std::pow(options.cold / options.hot,
                 static_cast<double>(stride) / static_cast<double>(options.swaps));
    double temperature = options.hot;
    for (std::size_t i = 0; i < options.swaps && best_.cost > options.bound; ++i) {
      if (i % stride == 0) temperature *= cooling;
      try_swap(temperature);
    }
    return std::move(best_);
  }

 private:
  std::uint32_t below(std::size_t n) {
    return static_cast<std::uint32_t>(((rng_.next() >> 32) * n) >> 32);
  }

  void try_swap(double temperature) {
    const std::uint32_t u = below(graph_.size()), from = part_[u];
    const std::uint32_t to = other_part(u);
    if (to == from) return;
    const std::uint32_t v = partner(from, to);
    const std::int64_t more = moved(u, from, to, v) + moved(v, to, from, u);
    if (more > 0 &&
        static_cast<double>(more) > temperature * losses_[rng_.next() >> (64 - losses_bits)])
      return;
    swap(u, v);
    cost_ += more;
    if (cost_ < best_.cost) best_ = {part_, cost_};
  }

  // The part of some neighbour that lies elsewhere; the own one where there is none.
  std::uint32_t other_part(std::uint32_t u) {
    const auto edges = graph_.edges(u);
    if (edges.empty()) return part_[u];
    std::size_t i = below(edges.size());
    for (std::size_t tries = 0; tries < edges.size(); ++tries) {
      if (part_[edges[i].to] != part_[u]) return part_[edges[i].to];
      if (++i == edges.size()) i = 0;
    }
    return part_[u];
  }

  // A host of `to` that borders on `from`, or any.
  std::uint32_t partner(std::uint32_t from, std::uint32_t to) {
    for (int tries = 0; tries < 5; ++tries) {
      const std::uint32_t y = members_[from][below(members_[from].size())];
      if (y >= graph_.size() || graph_.edges(y).empty()) continue;
      const auto edges = graph_.edges(y);
      const std::uint32_t x = edges[below(edges.size())].to;
      if (part_[x] == to) return x;
    }
    return members_[to][below(members_[to].size())];
  }

  // Bytes that cross in addition when v moves, its partner left aside.
  std::int64_t moved(std::uint32_t v, std::uint32_t from, std::uint32_t to, std::uint32_t other) {
    std::int64_t more = 0;
    if (v >= graph_.size()) return 0;
    for (const JobGraph::Edge& edge : graph_.edges(v)) {
      if (edge.to == other) continue;
      const std::uint32_t part = part_[edge.to];
      more += part == from ? edge.bytes : part == to ? -edge.bytes : 0;
    }
    return more;
  }

  void swap(std::uint32_t u, std::uint32_t v) {
    members_[part_[u]][at_[u]] = v;
    members_[part_[v]][at_[v]] = u;
    std::swap(at_[u], at_[v]);
    std::swap(part_[u], part_[v]);
  }

  static constexpr unsigned losses_bits = 10;
  const JobGraph& graph_;
  Split best_;
  std::vector<std::uint32_t> part_;
  std::int64_t cost_ = 0;
  std::vector<std::vector<std::uint32_t>> members_;  // by part
  std::vector<std::uint32_t> at_;                    // place among the members, by host
  std::array<double, 1u << losses_bits> losses_{};   // -log of uniform numbers
  Rng rng_;
};

}  // namespace

Split anneal(const JobGraph& graph, Split start, const AnnealOptions& options, const Rng& rng) {
  return Annealer(graph, options.parts, std::move(start), rng).run(options);
}

}  // namespace weft::plan::place
