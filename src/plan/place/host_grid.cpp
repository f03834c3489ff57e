#include "plan/place/host_grid.hpp"

#include <algorithm>
#include <cmath>

#include "workload/collective/traffic.hpp"

namespace weft::plan::place {
namespace {

using model::Axis;
using model::CommWork;
using model::Dimension;
using model::GridPoint;
using model::StepCost;

// Ranks of one host along each axis: the innermost axes first, as ranks are counted.
std::optional<GridPoint> tile_of(const StepCost& cost, std::uint32_t gpus_per_host) {
  const GridPoint sizes{cost.tp, cost.cp, cost.pp, cost.dp};
  GridPoint tile{1, 1, 1, 1};
  std::uint32_t rest = gpus_per_host;
  for (const Axis axis : cost.order) {
    const std::uint32_t size = sizes[axis_index(axis)], along = std::min(rest, size);
    if (rest % along != 0 || size % along != 0) return std::nullopt;
    tile[axis_index(axis)] = along;
    rest /= along;
  }
  if (rest > 1) return std::nullopt;
  return tile;
}

// Adds up what one step sends between hosts, in bytes over all stages.
class StepBytes {
 public:
  StepBytes(const StepCost& cost, const GridPoint& tile, const JobShape& shape)
      : cost_(cost), tile_(tile), shape_(shape) {
    for (const std::uint32_t along : tile) ranks_ *= along;
  }

  EdgeBytes total() {
    for (const model::ChunkCost& chunk : cost_.chunks) {
      for (const model::UnitCost* unit : {&chunk.forward, &chunk.backward})
        for (const CommWork& work : unit->comms) add(work, cost_.microbatches);
      for (const auto* once : {&chunk.gather, &chunk.reduce})
        for (const CommWork& work : *once) add(work, 1);
    }
    const double stages = cost_.pp;
    const double message =
        2 * cost_.activation_bytes * cost_.microbatches * ranks_ / tile_[axis_index(Axis::pp)];
    EdgeBytes out;
    for (std::size_t a = 0; a < model::axis_count; ++a)
      out.axis[a] = std::llround(axis_[a] / stages);
    out.axis[axis_index(Axis::pp)] = std::llround(message * cost_.virtual_stages);
    out.pp_wrap = std::llround(message * (cost_.virtual_stages - 1));
    out.expert_pair = std::llround(expert_pair_ / stages);
    out.expert_data = std::llround(expert_data_ / stages);
    out.replicas = std::llround(replicas_ / stages);
    return out;
  }

 private:
  void add(const CommWork& work, double times) {
    if (work.dimension == Dimension::ep) return add_exchange(work, times);
    if (work.members == CommWork::Members::expert_data) {
      const double groups = std::min(ranks_ / tile_[axis_index(Axis::pp)], double{1} * cost_.ep);
      const std::uint32_t size = cost_.tp * cost_.cp * cost_.dp / cost_.ep;
      const double bytes = ring(work, size) * times * groups * tile_[axis_index(Axis::pp)];
      (along_dp(shape_.expert_hosts) ? axis_[axis_index(Axis::dp)] : expert_data_) += bytes;
    } else if (work.members == CommWork::Members::replicas) {
      const double bytes = ring(work, cost_.cp * cost_.dp) * times * tile_[axis_index(Axis::tp)] *
                           tile_[axis_index(Axis::pp)];
      (along_dp(shape_.size[0]) ? axis_[axis_index(Axis::dp)] : replicas_) += bytes;
    } else if (work.dimension == Dimension::tp) {
      add_axis(Axis::tp, work, cost_.tp, times);
    } else if (work.dimension == Dimension::cp) {
      add_axis(Axis::cp, work, cost_.cp, times);
    } else if (work.dimension == Dimension::dp) {
      add_axis(Axis::dp, work, cost_.dp, times);
    }
  }
  // A ring over the hosts of a stage with that stride is the ring along dp.
  bool along_dp(std::uint32_t stride) const {
    return shape_.size[1] == 1 && stride == shape_.size[0];
  }
  // What each link of a ring carries.
  static double ring(const CommWork& work, std::uint32_t size) {
    return work.calls * work.bytes * workload::busbw_factor(work.op, size);
  }
  void add_axis(Axis axis, const CommWork& work, std::uint32_t size, double times) {
    axis_[axis_index(axis)] += ring(work, size) * times * ranks_ / tile_[axis_index(axis)];
  }
  // Each rank sends 1/ep of its bytes to each member.
  void add_exchange(const CommWork& work, double times) {
    const double members = std::min(ranks_ / tile_[axis_index(Axis::pp)], double{1} * cost_.ep);
    expert_pair_ += 2 * work.calls * work.bytes / cost_.ep * times * members * members *
                    tile_[axis_index(Axis::pp)];
  }

  const StepCost& cost_;
  const GridPoint& tile_;
  const JobShape& shape_;
  double ranks_ = 1;  // of a host
  std::array<double, model::axis_count> axis_{};
  double expert_pair_ = 0, expert_data_ = 0, replicas_ = 0;
};

}  // namespace

std::optional<HostGrid> host_grid(const StepCost& cost, std::uint32_t gpus_per_host) {
  const std::optional<GridPoint> tile = tile_of(cost, gpus_per_host);
  if (!tile) return std::nullopt;
  HostGrid out;
  const GridPoint sizes{cost.tp, cost.cp, cost.pp, cost.dp};
  for (std::size_t a = 0; a < model::axis_count; ++a) out.shape.size[a] = sizes[a] / (*tile)[a];
  const std::uint32_t ranks_of_stage = gpus_per_host / (*tile)[axis_index(Axis::pp)];
  const std::uint32_t run = std::max(1u, cost.ep / ranks_of_stage);
  const std::uint32_t stage_hosts = out.shape.size[0] * out.shape.size[1] * out.shape.size[3];
  if (stage_hosts % run != 0) return std::nullopt;
  out.shape.expert_hosts = run;
  out.shape.bytes = StepBytes(cost, *tile, out.shape).total();
  const model::RankGrid grid(sizes, cost.order);
  for (std::uint32_t rank = 0; rank < grid.rank_count(); rank += gpus_per_host) {
    GridPoint at = grid.point(rank);
    for (std::size_t a = 0; a < model::axis_count; ++a) at[a] /= (*tile)[a];
    out.place_of_node.push_back(out.shape.place(at));
  }
  return out;
}

}  // namespace weft::plan::place
