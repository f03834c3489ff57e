// A job as rank order sees it: a grid of hosts, and the bytes that they send each other in a step.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "model/work/rank_grid.hpp"

namespace weft::plan::place {

constexpr std::size_t axis_index(model::Axis axis) { return static_cast<std::size_t>(axis); }

// Bytes of one step between two hosts that are neighbours along an axis, both directions together.
struct EdgeBytes {
  std::array<std::int64_t, model::axis_count> axis{};  // by Axis: rings of tp, cp, dp; chain of pp
  std::int64_t pp_wrap = 0;      // from the last stage to the first: interleaved schedules
  std::int64_t expert_pair = 0;  // each pair of hosts of an expert group
  std::int64_t expert_data = 0;  // ring of the hosts that hold the same experts
  std::int64_t replicas = 0;     // ring of the hosts of a stage that hold the same parameters
};

// Hosts along each axis: what is inside a host is no concern of its order. Expert groups are runs
// of `expert_hosts` hosts of a pipeline stage, counted tp first, then cp, then dp.
struct JobShape {
  model::GridPoint size{1, 1, 1, 1};  // by Axis
  std::uint32_t expert_hosts = 1;     // divides tp x cp x dp
  EdgeBytes bytes;

  std::uint32_t host_count() const { return size[0] * size[1] * size[2] * size[3]; }
  // Place of a host: tp + TP (cp + CP (pp + PP dp)), whatever the ranks' own order is.
  std::uint32_t place(const model::GridPoint& at) const {
    return at[0] + size[0] * (at[1] + size[1] * (at[2] + size[2] * at[3]));
  }
  model::GridPoint point(std::uint32_t place) const {
    return {place % size[0], place / size[0] % size[1], place / size[0] / size[1] % size[2],
            place / size[0] / size[1] / size[2]};
  }
  // Hosts along dp in an expert group that has all of tp and cp; 1 where groups lie otherwise.
  std::uint32_t expert_dp() const {
    const std::uint32_t inner = size[0] * size[1];
    return expert_hosts % inner == 0 ? expert_hosts / inner : 1;
  }
};

// Weighted edges by host place; each edge stands at both ends.
struct JobGraph {
  explicit JobGraph(const JobShape& shape);
  // The part of a graph between some of its hosts, which are numbered as they stand there.
  JobGraph(const JobGraph& whole, std::span<const std::uint32_t> places);

  struct Edge {
    std::uint32_t to;
    std::int64_t bytes;
  };
  std::span<const Edge> edges(std::uint32_t place) const {
    return std::span(all).subspan(first[place], first[place + 1] - first[place]);
  }
  std::uint32_t size() const { return static_cast<std::uint32_t>(first.size() - 1); }
  // Bytes of all edges whose ends lie in different parts. `part`, by place, may be longer.
  std::int64_t crossing(std::span<const std::uint32_t> part) const;

  std::vector<std::uint32_t> first;  // into `all`; one more than places
  std::vector<Edge> all;             // merged: no pair of hosts stands there twice
};

}  // namespace weft::plan::place
