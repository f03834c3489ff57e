#include "plan/place/rack_match.hpp"

#include <algorithm>
#include <numeric>
#include <set>

#include "base/check.hpp"
#include "plan/place/anneal.hpp"

namespace weft::plan::place {
namespace {

constexpr std::uint32_t none = UINT32_MAX;

// Fills racks, largest first.
class Filler {
 public:
  Filler(const JobGraph& graph, std::span<const std::uint32_t> sizes)
      : graph_(graph), sizes_(sizes), rack_(graph.size(), none), left_(graph.size(), 0) {
    for (std::uint32_t v = 0; v < graph.size(); ++v) {
      for (const JobGraph::Edge& edge : graph.edges(v)) left_[v] += edge.bytes;
      waiting_.emplace(left_[v], v);
    }
  }

  std::vector<std::uint32_t> fill() && {
    std::vector<std::uint32_t> racks(sizes_.size());
    std::iota(racks.begin(), racks.end(), 0u);
    std::ranges::stable_sort(racks, std::greater{}, [&](std::uint32_t r) { return sizes_[r]; });
    for (const std::uint32_t rack : racks) {
      members_.clear();
      for (std::uint32_t i = 0; i < sizes_[rack]; ++i) take(next(), rack);
    }
    return std::move(rack_);
  }

 private:
  // Whoever talks most to the members; for the first member, whoever has least left to talk to.
  std::uint32_t next() const {
    std::uint32_t best = none;
    std::int64_t most = -1;
    for (const std::uint32_t member : members_)
      for (const JobGraph::Edge& edge : graph_.edges(member)) {
        if (rack_[edge.to] != none) continue;
        const std::int64_t bytes = to_members(edge.to);
        if (bytes > most || (bytes == most && edge.to < best)) {
          best = edge.to;
          most = bytes;
        }
      }
    return best != none ? best : waiting_.begin()->second;
  }
  std::int64_t to_members(std::uint32_t v) const {
    std::int64_t bytes = 0;
    for (const JobGraph::Edge& edge : graph_.edges(v))
      if (std::ranges::find(members_, edge.to) != members_.end()) bytes += edge.bytes;
    return bytes;
  }
  void take(std::uint32_t v, std::uint32_t rack) {
    waiting_.erase({left_[v], v});
    rack_[v] = rack;
    members_.push_back(v);
    for (const JobGraph::Edge& edge : graph_.edges(v)) {
      if (rack_[edge.to] != none) continue;
      waiting_.erase({left_[edge.to], edge.to});
      waiting_.emplace(left_[edge.to] -= edge.bytes, edge.to);
    }
  }

  const JobGraph& graph_;
  std::span<const std::uint32_t> sizes_;
  std::vector<std::uint32_t> rack_;
  std::vector<std::int64_t> left_;  // bytes to hosts without a rack
  std::set<std::pair<std::int64_t, std::uint32_t>> waiting_;
  std::vector<std::uint32_t> members_;  // of the rack that is being filled
};

}  // namespace

std::vector<std::uint32_t> match_racks(const JobGraph& graph, std::span<const std::uint32_t> places,
                                       std::span<const std::uint32_t> rack_sizes, const Rng& rng) {
  WEFT_CHECK(std::accumulate(rack_sizes.begin(), rack_sizes.end(), std::size_t{0}) ==
             places.size());
  const JobGraph zone(graph, places);
  Split split{.part = Filler(zone, rack_sizes).fill(), .cost = 0};
  split.cost = zone.crossing(split.part);
  if (zone.all.empty() || rack_sizes.size() < 2) return split.part;
  const auto lightest = std::ranges::min_element(zone.all, {}, &JobGraph::Edge::bytes)->bytes;
  const auto cold = static_cast<double>(lightest);
  return anneal(zone, std::move(split),
                {.parts = rack_sizes.size(),
                 .swaps = std::min<std::size_t>(300 * places.size(), 300'000),
                 .hot = 0.3 * cold,
                 .cold = 0.05 * cold},
                rng)
      .part;
}

}  // namespace weft::plan::place
