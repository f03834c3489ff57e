#include "plan/run/training.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "workload/collective/timing.hpp"
#include "workload/collective/tuner.hpp"
#include "workload/parallel/memory.hpp"
#include "workload/schedule/step_graph.hpp"

namespace weft::plan {
namespace {

using Contention = engine::fluid::NetworkOptions::Contention;
using model::CollectiveOp;
using model::CommWork;
using model::Dimension;
using model::Fabric;
using model::NodeId;
using model::StepCost;
using model::UnitCost;

// The GPU whose rates the job computes at: what the job says, else what the fabric says of all of
// its GPUs. A rate is never assumed.
Result<workload::GpuSpec> read_gpu(Reader& job, const Fabric& fabric) {
  if (job.has("gpu")) return workload::gpu_by_name({job.text("gpu", ""), job.where("gpu")});
  const std::span<const std::string> models = fabric.gpu_models();
  const std::string known = fmt::format("{}", fmt::join(workload::gpu_names(), ", "));
  if (models.size() == 1 && !models.front().empty()) {
    if (auto gpu = workload::gpu_by_name({models.front(), {}})) return gpu;
    return fail(
        Errc::unknown, job.where("gpu"),
        fmt::format("the rates of the fabric's GPUs, {}, are unknown", quote(models.front())),
        fmt::format("add gpu: with one of {}", known));
  }
  if (models.size() > 1)
    return fail(
        Errc::infeasible, job.where("gpu"),
        fmt::format("the fabric has {} GPU models, so the job must choose one", models.size()),
        fmt::format("add gpu: with one of {}", known));
  return fail(
      Errc::infeasible, job.where("gpu"),
      "the fabric does not specify the GPU of its hosts, so the rates of the job are unknown",
      fmt::format("add gpu: with one of {}, or give the fabric a host preset (host: h100)", known));
}

// Ranks of the group of `dimension` that `rank` is in.
std::vector<std::uint32_t> group_of(const model::RankGrid& grid, const StepCost& cost,
                                    Dimension dimension, std::uint32_t rank) {
  switch (dimension) {
    case Dimension::tp:
      return grid.group(rank, model::Axis::tp);
    case Dimension::cp:
      return grid.group(rank, model::Axis::cp);
    case Dimension::ep:
      return grid.expert_group(rank, cost.ep);
    default:
      return {};
  }
}

// A group of more than one rank, and every group of the dimension inside one host.
bool inside_hosts(const model::RankGrid& grid, const StepCost& cost, Dimension dimension,
                  const Fabric& fabric, std::span<const NodeId> ranks) {
  std::vector<bool> seen(ranks.size(), false);
  for (std::uint32_t r = 0; r < ranks.size(); ++r) {
    if (seen[r]) continue;
    const std::vector<std::uint32_t> group = group_of(grid, cost, dimension, r);
    if (group.size() < 2) return false;
    for (const std::uint32_t member : group) {
      seen[member] = true;
      if (!fabric.share_domain(ranks[member], ranks[r])) return false;
    }
  }
  return true;
}

// Times of collectives inside a host, as the calibrated model of `weft perf` has them.
class HostTimes {
 public:
  HostTimes(const Fabric& fabric, std::vector<NodeId> group)
      : system_(workload::system_of(fabric, group, workload::Transport::roce)),
        ranks_(static_cast<std::uint32_t>(group.size())) {}

  bool known() const { return system_.has_value(); }
  double seconds(CollectiveOp op, double bytes) const {
    const workload::GroupShape shape{
        .ranks = ranks_, .hosts = 1, .gpus_per_host = ranks_, .nics_per_host = 1};
    const auto pick = workload::pick(*system_, shape, op, bytes, {});
    if (!pick) return plain_seconds(op, bytes);
    const auto terms = workload::predict(
        *system_, shape,
        {.op = op, .algorithm = pick->algorithm, .protocol = pick->protocol, .bytes = bytes});
    return terms ? terms->seconds() : plain_seconds(op, bytes);
  }

 private:
  // An operation that the tuner does not time: every GPU's links at ring speed.
  double plain_seconds(CollectiveOp op, double bytes) const {
    const workload::GroupShape shape{
        .ranks = ranks_, .hosts = 1, .gpus_per_host = ranks_, .nics_per_host = 1};
    return bytes * workload::busbw_factor(op, ranks_) / ring_bytes_per_s(*system_, shape);
  }
  Result<workload::System> system_;
  std::uint32_t ranks_;
};

void fold_unit(UnitCost& unit, Dimension dimension, const HostTimes& times, double interference) {
  double exposed = 0, hidden = 0;
  std::erase_if(unit.comms, [&](const CommWork& work) {
    if (work.dimension != dimension) return false;
    const double seconds = work.calls * times.seconds(work.op, work.bytes);
    const double beside = std::min(work.overlap * seconds, unit.compute_s);
    hidden += beside;
    exposed += seconds - beside;
    return true;
  });
  unit.compute_s += hidden * interference;
  if (exposed > 0) unit.inner.push_back({dimension, exposed});
}

double unit_bytes(const UnitCost& unit, Dimension dimension, std::uint32_t group_size) {
  double bytes = 0;
  for (const CommWork& work : unit.comms)
    if (work.dimension == dimension)
      bytes += work.calls * work.bytes * workload::busbw_factor(work.op, group_size);
  return bytes;
}

// Whether ranks that follow each other in the pipeline share hosts in all replicas as in the first.
bool replicas_alike(const StepCost& cost, const Fabric& fabric, std::span<const NodeId> ranks) {
  const model::RankGrid grid({cost.tp, cost.cp, cost.pp, cost.dp}, cost.order);
  for (std::uint32_t r = 0; r < ranks.size(); ++r) {
    model::GridPoint here = grid.point(r);
    model::GridPoint next = here;
    auto& stage = next[static_cast<std::size_t>(model::Axis::pp)];
    stage = (stage + 1) % cost.pp;
    model::GridPoint first = here, first_next = next;
    first[static_cast<std::size_t>(model::Axis::dp)] = 0;
    first_next[static_cast<std::size_t>(model::Axis::dp)] = 0;
    const auto together = [&](const model::GridPoint& a, const model::GridPoint& b) {
      return fabric.domain_of(ranks[grid.rank(a)]) == fabric.domain_of(ranks[grid.rank(b)]);
    };
    if (together(here, next) != together(first, first_next)) return false;
  }
  return true;
}

}  // namespace

std::optional<TrainingSpec> read_training(Reader& job, const Fabric& fabric,
                                          std::optional<std::uint64_t> gpus) {
  const Config* value = job.child("model");
  auto model = workload::read_model(*value);
  auto gpu = read_gpu(job, fabric);
  if (!model) job.error(model.error());
  if (!gpu) job.error(gpu.error());
  if (!model || !gpu) {
    // Nothing can be said about the plan, but its keys are no mistake.
    for (const std::string_view key : workload::plan_keys) job.child(key);
    return std::nullopt;
  }
  const auto plan = workload::read_plan(job, *model, *gpu, gpus);
  if (!plan) return std::nullopt;
  return TrainingSpec{*std::move(model), *plan, *std::move(gpu)};
}

std::vector<Dimension> fold_inside_hosts(StepCost& cost, const Fabric& fabric,
                                         std::span<const NodeId> ranks) {
  const model::RankGrid grid({cost.tp, cost.cp, cost.pp, cost.dp}, cost.order);
  std::vector<Dimension> folded;
  for (const Dimension dimension : {Dimension::tp, Dimension::cp, Dimension::ep}) {
    if (!inside_hosts(grid, cost, dimension, fabric, ranks)) continue;
    std::vector<NodeId> group;
    for (const std::uint32_t r : group_of(grid, cost, dimension, 0)) group.push_back(ranks[r]);
    const HostTimes times(fabric, std::move(group));
    if (!times.known()) continue;  // no NVLink: the engine has the PCIe links
    for (model::ChunkCost& chunk : cost.chunks)
      for (UnitCost* unit : {&chunk.forward, &chunk.backward})
        fold_unit(*unit, dimension, times, cost.interference);
    folded.push_back(dimension);
  }
  return folded;
}

void add_folded_bytes(const StepCost& before, std::span<const Dimension> folded,
                      model::TrainingOutcome& out) {
  const double ranks_per_stage = double{1} * before.tp * before.cp * before.dp;
  for (const Dimension dimension : folded) {
    const std::uint32_t size = dimension == Dimension::tp   ? before.tp
                               : dimension == Dimension::cp ? before.cp
                                                            : before.ep;
    double bytes = 0;
    for (const model::ChunkCost& chunk : before.chunks)
      bytes +=
          unit_bytes(chunk.forward, dimension, size) + unit_bytes(chunk.backward, dimension, size);
    out.bytes[static_cast<std::size_t>(dimension)]
             [static_cast<std::size_t>(model::Distance::host)] +=
        bytes * before.microbatches * ranks_per_stage;
  }
}

Result<model::OpGraph> training_graph(const StepCost& cost, const Fabric& fabric,
                                      std::span<const NodeId> ranks, Contention contention) {
  workload::StepGraphOptions options;
  if (contention == Contention::off && replicas_alike(cost, fabric, ranks))
    options.replicas = workload::StepGraphOptions::Replicas::first;
  auto graph = workload::build_step_graph(cost, options);
  if (graph || graph.error().code != Errc::unsupported) return graph;
  options.actors = workload::StepGraphOptions::Actors::rank;
  return workload::build_step_graph(cost, options);
}

void add_rates(const TrainingSpec& spec, model::TrainingOutcome& out) {
  const auto gpus = static_cast<double>(spec.plan.gpus());
  out.model = workload::name_of(spec.model);
  out.plan = spec.plan.text();
  double flops = 0;
  if (const auto* transformer = std::get_if<workload::TransformerSpec>(&spec.model)) {
    flops = spec.plan.tokens() * workload::flops_per_token(*transformer, spec.plan.sequence,
                                                           workload::FlopConvention::causal);
    out.memory_bytes = workload::memory_use(*transformer, spec.plan).total();
  } else {
    const auto& recommendation = std::get<workload::RecommendationSpec>(spec.model);
    flops = static_cast<double>(spec.plan.batch) * workload::flops_per_sample(recommendation);
    out.memory_bytes = workload::memory_use(recommendation, spec.plan).total();
  }
  if (!(out.step_time_s > 0)) return;
  out.tokens_per_s_per_gpu = spec.plan.tokens() / out.step_time_s / gpus;
  out.tflops_per_gpu = flops / out.step_time_s / gpus / 1e12;
  out.mfu = out.tflops_per_gpu * 1e12 / spec.gpu.peak_flops(spec.plan.precision);
}

}  // namespace weft::plan
