#include "plan/place/job_graph.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace weft::plan::place {
namespace {

using model::Axis;
using model::GridPoint;

struct Arc {
  std::uint32_t from, to;
  std::int64_t bytes;
};

class ArcList {
 public:
  explicit ArcList(const JobShape& shape) : shape_(shape) {}

  void add_axis(Axis axis) {
    const std::uint32_t length = shape_.size[axis_index(axis)];
    for (std::uint32_t v = 0; v < shape_.host_count(); ++v) {
      GridPoint at = shape_.point(v);
      std::uint32_t& along = at[axis_index(axis)];
      const bool last = along + 1 == length;
      along = last ? 0 : along + 1;
      const bool wraps = last && axis == Axis::pp;
      add(v, shape_.place(at), wraps ? shape_.bytes.pp_wrap : shape_.bytes.axis[axis_index(axis)]);
    }
  }

  void add_experts() {
    const std::uint32_t inner = shape_.size[0] * shape_.size[1];
    const std::uint32_t stage_hosts = inner * shape_.size[3], run = shape_.expert_hosts;
    WEFT_CHECK(run >= 1 && stage_hosts % run == 0);
    const auto place = [&](std::uint32_t stage, std::uint32_t i) {
      return shape_.place(
          {i % shape_.size[0], i / shape_.size[0] % shape_.size[1], stage, i / inner});
    };
    for (std::uint32_t stage = 0; stage < shape_.size[2]; ++stage)
      for (std::uint32_t i = 0; i < stage_hosts; ++i) {
        add(place(stage, i), place(stage, (i + run) % stage_hosts), shape_.bytes.expert_data);
        add(place(stage, i), place(stage, (i + shape_.size[0]) % stage_hosts),
            shape_.bytes.replicas);
        for (std::uint32_t j = i + 1; j < (i / run + 1) * run; ++j)
          add(place(stage, i), place(stage, j), shape_.bytes.expert_pair);
      }
  }

  // Sorted by both ends, one arc for each pair and direction.
  std::vector<Arc> merged() && {
    std::ranges::sort(arcs_, {}, [](const Arc& arc) { return std::pair(arc.from, arc.to); });
    std::vector<Arc> out;
    for (const Arc& arc : arcs_)
      if (!out.empty() && out.back().from == arc.from && out.back().to == arc.to)
        out.back().bytes += arc.bytes;
      else
        out.push_back(arc);
    return out;
  }

 private:
  void add(std::uint32_t a, std::uint32_t b, std::int64_t bytes) {
    if (a == b || bytes == 0) return;
    arcs_.push_back({a, b, bytes});
    arcs_.push_back({b, a, bytes});
  }

  const JobShape& shape_;
  std::vector<Arc> arcs_;
};

}  // namespace

JobGraph::JobGraph(const JobShape& shape) : first(shape.host_count() + 1, 0) {
  ArcList list(shape);
  for (const Axis axis : {Axis::tp, Axis::cp, Axis::pp, Axis::dp}) list.add_axis(axis);
  list.add_experts();
  for (const Arc& arc : std::move(list).merged()) {
    ++first[arc.from + 1];
    all.push_back({arc.to, arc.bytes});
  }
  for (std::size_t i = 1; i < first.size(); ++i) first[i] += first[i - 1];
}

JobGraph::JobGraph(const JobGraph& whole, std::span<const std::uint32_t> places) : first{0} {
  constexpr std::uint32_t outside = UINT32_MAX;
  std::vector<std::uint32_t> number(whole.size(), outside);
  for (std::uint32_t i = 0; i < places.size(); ++i) number[places[i]] = i;
  for (const std::uint32_t v : places) {
    for (const Edge& edge : whole.edges(v))
      if (number[edge.to] != outside) all.push_back({number[edge.to], edge.bytes});
    first.push_back(static_cast<std::uint32_t>(all.size()));
  }
}

std::int64_t JobGraph::crossing(std::span<const std::uint32_t> part) const {
  std::int64_t twice = 0;
  for (std::uint32_t v = 0; v < size(); ++v)
    for (const Edge& edge : edges(v)) twice += part[v] != part[edge.to] ? edge.bytes : 0;
  return twice / 2;
}

}  // namespace weft::plan::place
