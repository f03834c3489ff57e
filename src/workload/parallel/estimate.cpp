#include "workload/parallel/estimate.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "workload/parallel/dispatch.hpp"

namespace weft::workload {
namespace {

using model::Axis;
using model::ChunkCost;
using model::CollectiveOp;
using model::CommWork;
using model::Dimension;
using model::StepCost;

// Where a group lies.
struct Group {
  double ranks = 1, hosts = 1;
};

std::vector<std::uint32_t> members(const StepCost& cost, const CommWork& work) {
  const model::RankGrid grid({cost.tp, cost.cp, cost.pp, cost.dp}, cost.order);
  if (work.members == CommWork::Members::expert_data) return grid.expert_data_group(0, cost.ep);
  // Equal places along tp, whatever cp and dp.
  if (work.members == CommWork::Members::replicas) return grid.expert_data_group(0, cost.tp);
  switch (work.dimension) {
    case Dimension::tp:
      return grid.group(0, Axis::tp);
    case Dimension::cp:
      return grid.group(0, Axis::cp);
    case Dimension::pp:
      return grid.group(0, Axis::pp);
    case Dimension::ep:
      return grid.expert_group(0, cost.ep);
    case Dimension::dp:
    case Dimension::other:
      break;
  }
  return grid.group(0, Axis::dp);
}

Group place(const std::vector<std::uint32_t>& ranks, const LinkSpeeds& links) {
  std::set<std::uint32_t> hosts;
  for (const std::uint32_t rank : ranks) hosts.insert(rank / links.gpus_per_host);
  return {static_cast<double>(ranks.size()), static_cast<double>(hosts.size())};
}

double exchange_seconds(double bytes, const Group& group, const LinkSpeeds& links) {
  const double local = group.ranks / group.hosts;
  const double inside = bytes * (local - 1) / group.ranks / links.nvlink_bytes_per_s;
  if (group.hosts <= 1) return links.nvlink_latency_s + inside;
  const double outside = bytes * (group.ranks - local) / group.ranks / links.network_bytes_per_s;
  return links.network_latency_s + std::max(inside, outside);
}

// Saturates as docs/collectives-timing.md has it for rings inside a host.
double inside_seconds(double moved, const Group& group, const LinkSpeeds& links) {
  const double latency = links.nvlink_latency_s + links.nvlink_hop_s * (group.ranks - 1);
  const double root = std::sqrt(latency) + std::sqrt(moved / links.nvlink_bytes_per_s);
  return root * root;
}

double ring_seconds(double bytes, const Group& group, const LinkSpeeds& links) {
  const double moved = bytes * (group.ranks - 1) / group.ranks;
  if (group.hosts <= 1) return inside_seconds(moved, group, links);
  const double speed =
      std::min(links.nvlink_bytes_per_s, group.ranks / group.hosts * links.network_bytes_per_s);
  return links.network_latency_s * group.hosts + moved / speed;
}

// Sums by dimension of what some communication exposes and what it hides.
struct Split {
  std::array<double, model::dimension_count> exposed{};
  double hidden = 0;
  double total() const {
    double sum = 0;
    for (const double seconds : exposed) sum += seconds;
    return sum;
  }
};

Split split(const StepCost& cost, const std::vector<CommWork>& list, const LinkSpeeds& links) {
  Split out;
  for (const CommWork& work : list) {
    const double seconds = work.calls * call_seconds(cost, work, links);
    out.exposed[static_cast<std::size_t>(work.dimension)] += (1 - work.overlap) * seconds;
    out.hidden += work.overlap * seconds;
  }
  return out;
}

// One micro-batch through one stage.
struct StageTime {
  double compute = 0;
  double beside = 0;                 // compute lost to communication
  double forward = 0, backward = 0;  // with exposed communication
  std::array<double, model::dimension_count> exposed{};
  double total() const { return forward + backward; }
};

StageTime stage_time(const StepCost& cost, std::uint32_t stage, const LinkSpeeds& links) {
  StageTime time;
  const auto unit = [&](const model::UnitCost& work) {
    const Split comms = split(cost, work.comms, links);
    for (std::size_t d = 0; d < comms.exposed.size(); ++d) time.exposed[d] += comms.exposed[d];
    const double beside = cost.interference * comms.hidden;
    double seconds = std::max(work.compute_s + beside, comms.hidden) + comms.total();
    time.beside += beside;
    for (const auto& inner : work.inner) {
      seconds += inner.seconds;
      time.exposed[static_cast<std::size_t>(inner.dimension)] += inner.seconds;
    }
    time.compute += work.compute_s;
    return seconds;
  };
  for (std::uint32_t v = 0; v < cost.virtual_stages; ++v) {
    time.forward += unit(cost.chunk(stage, v).forward);
    time.backward += unit(cost.chunk(stage, v).backward);
  }
  return time;
}

double send_seconds(const StepCost& cost, const LinkSpeeds& links) {
  if (cost.pp == 1) return 0;
  const model::RankGrid grid({cost.tp, cost.cp, cost.pp, cost.dp}, cost.order);
  const std::uint32_t peer = grid.group(0, Axis::pp)[1];
  const bool near = peer < links.gpus_per_host;
  return near ? links.nvlink_latency_s + cost.activation_bytes / links.nvlink_bytes_per_s
              : links.network_latency_s + cost.activation_bytes / links.network_bytes_per_s;
}

// Exposed part of what one stage gathers or reduces: the chunk at the end of the step in full but
// for its overlap, the others where they exceed `window` seconds of compute.
double data_exposed(const StepCost& cost, StepCost::Timing timing, double window,
                    std::vector<CommWork> ChunkCost::* list, const LinkSpeeds& links,
                    double& total) {
  double bare = 0;
  total = 0;
  for (std::uint32_t v = 0; v < cost.virtual_stages; ++v) {
    const ChunkCost& chunk = cost.chunk(0, v);
    const Split part = split(cost, chunk.*list, links);
    if (v == 0) bare = part.total();
    total += part.total() + part.hidden;
  }
  if (timing == StepCost::Timing::serial) return total;
  return bare + std::max(0.0, total - bare - window);
}

}  // namespace

double call_seconds(const StepCost& cost, const CommWork& work, const LinkSpeeds& links) {
  const Group group = place(members(cost, work), links);
  if (group.ranks <= 1) return 0;
  switch (work.op) {
    case CollectiveOp::all_to_all:
      return exchange_seconds(work.bytes, group, links);
    case CollectiveOp::all_reduce:
      return 2 * ring_seconds(work.bytes, group, links);
    default:
      return ring_seconds(work.bytes, group, links);
  }
}

StepEstimate estimate_step(StepCost cost, const LinkSpeeds& links) {
  send_once_per_host(cost, [&](std::uint32_t rank) { return rank / links.gpus_per_host; });
  StepEstimate out;
  StageTime slowest;
  double others = 0;
  for (std::uint32_t stage = 0; stage < cost.pp; ++stage) {
    const StageTime time = stage_time(cost, stage, links);
    others += time.total();
    if (time.total() > slowest.total()) slowest = time;
    out.optimizer_s = std::max(out.optimizer_s, cost.optimizer_s[stage]);
  }
  others -= slowest.total();
  const double m = cost.microbatches;
  const double send = send_seconds(cost, links);
  const double sends = 2 * m * cost.virtual_stages;
  out.compute_s = m * slowest.compute;
  out.bubble_s = others / cost.virtual_stages;
  for (std::size_t d = 0; d < out.exposed_s.size(); ++d) out.exposed_s[d] = m * slowest.exposed[d];
  auto& pp = out.exposed_s[static_cast<std::size_t>(Dimension::pp)];
  pp += 2 * (cost.pp - 1) * send + cost.interference * sends * send;

  const double round = std::min<double>(m, cost.pp);  // micro-batches before a chunk is done
  double gather = 0;
  double reduce = 0;
  auto& dp = out.exposed_s[static_cast<std::size_t>(Dimension::dp)];
  dp += data_exposed(cost, cost.gather, round * slowest.forward, &ChunkCost::gather, links, gather);
  dp +=
      data_exposed(cost, cost.reduce, round * slowest.backward, &ChunkCost::reduce, links, reduce);
  dp += cost.interference * (gather + reduce);
  out.step_s = m * slowest.total() + out.bubble_s + pp + dp + out.optimizer_s;
  return out;
}

}  // namespace weft::workload
