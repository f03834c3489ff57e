#include "workload/parallel/step_cost.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "workload/parallel/compute.hpp"
#include "workload/parallel/dispatch.hpp"
#include "workload/parallel/estimate.hpp"
#include "workload/parallel/stages.hpp"

namespace weft::workload {
namespace {

using model::ChunkCost;
using model::CollectiveOp;
using model::CommWork;
using model::Dimension;
using model::StepCost;

void add(std::vector<CommWork>& list, const CommWork& work) {
  if (work.calls > 0 && work.bytes > 0) list.push_back(work);
}

// What the collectives of one micro-batch depend on.
class Communication {
 public:
  Communication(const TransformerSpec& spec, const TrainingPlan& plan, const GpuSpec& gpu)
      : spec_(spec),
        plan_(plan),
        tp_overlap_(plan.overlap.tp.value_or(
            spec.experts > 0 ? 0 : gpu.calibration(plan.precision, plan.software).tp_overlap)) {
    if (plan.dispatcher == Dispatcher::alltoall) return;
    once_ = {.experts = spec.experts,
             .per_token = spec.experts_per_token,
             .groups = spec.expert_groups,
             .groups_per_token = spec.groups_per_token};
  }

  void add_forward(std::vector<CommWork>& out, const ChunkLayers& chunk) const {
    const Blocks blocks = count_blocks(chunk);
    tensor(out, CollectiveOp::all_gather, plan_.parameter_bytes(), blocks.inputs);
    tensor(out, CollectiveOp::reduce_scatter, 2, blocks.outputs);
    context(out, CollectiveOp::all_gather, blocks.layers);
    exchange(out, 2 * blocks.expert_layers);
    if (plan_.zero == ZeroStage::parameters)
      add_gather(out, chunk, in_unit(plan_.overlap.dp_gather));
  }
  // Each collective has its mirror image; sharded inputs are gathered once more for the gradients
  // of the weights (Korthikanti et al., arXiv 2205.05198, 4.2.2), keys and values are kept.
  void add_backward(std::vector<CommWork>& out, const ChunkLayers& chunk) const {
    const bool whole = plan_.recompute.has(Recompute::whole_layer);
    if (whole) add_forward(out, chunk);
    const Blocks blocks = count_blocks(chunk);
    if (!whole && plan_.recompute.has(Recompute::moe)) exchange(out, 2 * blocks.expert_layers);
    tensor(out, CollectiveOp::all_gather, 2, blocks.outputs);
    tensor(out, CollectiveOp::all_gather, plan_.parameter_bytes(), blocks.inputs);
    tensor(out, CollectiveOp::reduce_scatter, 2, blocks.inputs);
    context(out, CollectiveOp::reduce_scatter, blocks.layers);
    exchange(out, 2 * blocks.expert_layers);
    if (plan_.zero == ZeroStage::parameters && !whole)
      add_gather(out, chunk, in_unit(plan_.overlap.dp_gather));
    if (plan_.zero >= ZeroStage::gradients)
      add_reduce(out, chunk, in_unit(plan_.overlap.dp_reduce));
  }
  void add_gather(std::vector<CommWork>& out, const ChunkLayers& chunk, double share) const {
    const HeldParameters held = held_parameters(spec_, plan_, chunk);
    replicas(out, CollectiveOp::all_gather, plan_.parameter_bytes() * held.shared, share);
    experts(out, CollectiveOp::all_gather, plan_.parameter_bytes() * held.experts, share);
  }
  void add_reduce(std::vector<CommWork>& out, const ChunkLayers& chunk, double share) const {
    const HeldParameters held = held_parameters(spec_, plan_, chunk);
    const CollectiveOp op =
        plan_.zero == ZeroStage::none ? CollectiveOp::all_reduce : CollectiveOp::reduce_scatter;
    replicas(out, op, plan_.gradient_bytes() * held.shared, share);
    experts(out, op, plan_.gradient_bytes() * held.experts, share);
  }

 private:
  // Places where sequence-parallel tokens become whole (inputs) and are shared out (outputs).
  struct Blocks {
    std::uint32_t layers = 0, expert_layers = 0, inputs = 0, outputs = 0;
  };

  Blocks count_blocks(const ChunkLayers& chunk) const {
    Blocks blocks;
    const auto add_layer = [&](std::uint32_t layer) {
      const bool routed = spec_.has_experts(layer);
      const std::uint32_t whole = !routed || spec_.shared_experts > 0 ? 2 : 1;
      blocks.layers += 1;
      blocks.expert_layers += routed ? 1 : 0;
      blocks.inputs += whole;
      blocks.outputs += whole;
    };
    for (std::uint32_t i = 0; i < chunk.count; ++i) add_layer(chunk.first + i);
    for (std::uint32_t i = 0; i < chunk.prediction; ++i) add_layer(spec_.layers);
    if (chunk.has_embedding()) blocks.outputs += 1;
    if (chunk.has_head()) blocks.inputs += 1;
    blocks.inputs += chunk.prediction;  // the head once more
    return blocks;
  }

  void tensor(std::vector<CommWork>& out, CollectiveOp op, double element,
              std::uint32_t calls) const {
    if (plan_.tp == 1) return;
    add(out, {.dimension = Dimension::tp,
              .op = op,
              .bytes = element * plan_.tokens_per_rank() * spec_.hidden,
              .calls = calls,
              .overlap = tp_overlap_});
  }
  // Keys and values of the whole sequence; of latent attention the compressed ones.
  void context(std::vector<CommWork>& out, CollectiveOp op, std::uint32_t layers) const {
    if (plan_.cp == 1) return;
    const double heads = std::max(1.0, static_cast<double>(spec_.kv_heads) / plan_.tp);
    const double elements =
        spec_.latent() ? double{1} * spec_.kv_rank + spec_.rope_size : 2 * heads * spec_.head_size;
    add(out, {.dimension = Dimension::cp,
              .op = op,
              .bytes = 2 * plan_.tokens_per_rank() * plan_.cp * elements,
              .calls = layers,
              .overlap = plan_.overlap.cp});
  }
  // Each rank sends the copies of its own tokens.
  void exchange(std::vector<CommWork>& out, std::uint32_t calls) const {
    if (plan_.ep == 1) return;
    const double copies = plan_.tokens_per_rank() / plan_.tp * spec_.experts_per_token;
    add(out, {.dimension = Dimension::ep,
              .op = CollectiveOp::all_to_all,
              .bytes = 2 * copies * spec_.hidden,
              .calls = calls,
              .overlap = plan_.overlap.ep,
              .once = once_});
  }

  // In every unit: the next layer's parameters come, the last one's gradients go.
  static double in_unit(Overlap::Timing timing) {
    return timing == Overlap::Timing::overlapped ? 1 : 0;
  }
  // One group over dp and cp, whose ranks all hold the same parameters.
  void replicas(std::vector<CommWork>& out, CollectiveOp op, double bytes, double share) const {
    if (plan_.dp == 1 && plan_.cp == 1) return;
    add(out, {.dimension = Dimension::dp,
              .op = op,
              .bytes = bytes,
              .overlap = share,
              .members = CommWork::Members::replicas});
  }
  void experts(std::vector<CommWork>& out, CollectiveOp op, double bytes, double share) const {
    if (std::uint64_t{plan_.tp} * plan_.cp * plan_.dp == plan_.ep) return;
    add(out, {.dimension = Dimension::dp,
              .op = op,
              .bytes = bytes,
              .overlap = share,
              .members = CommWork::Members::expert_data});
  }

  const TransformerSpec& spec_;
  const TrainingPlan& plan_;
  double tp_overlap_;
  CommWork::OncePerHost once_;
};

// All but one layer's part of what a chunk gathers or reduces.
double once_a_step(const ChunkLayers& chunk, Overlap::Timing timing) {
  const double layers = chunk.count + chunk.prediction;
  return timing == Overlap::Timing::overlapped && layers > 1 ? (layers - 1) / layers : 0;
}

ChunkCost chunk_cost(const TransformerSpec& spec, const TrainingPlan& plan, const GpuSpec& gpu,
                     const ChunkLayers& chunk) {
  const Communication communication(spec, plan, gpu);
  ChunkCost cost;
  cost.forward.compute_s = chunk_seconds(spec, plan, gpu, chunk, Pass::forward);
  cost.backward.compute_s = chunk_seconds(spec, plan, gpu, chunk, Pass::backward);
  communication.add_forward(cost.forward.comms, chunk);
  communication.add_backward(cost.backward.comms, chunk);
  if (plan.zero == ZeroStage::optimizer || plan.zero == ZeroStage::gradients)
    communication.add_gather(cost.gather, chunk, once_a_step(chunk, plan.overlap.dp_gather));
  if (plan.zero <= ZeroStage::optimizer)
    communication.add_reduce(cost.reduce, chunk, once_a_step(chunk, plan.overlap.dp_reduce));
  return cost;
}

StepCost::Timing timing_of(Overlap::Timing timing) {
  return timing == Overlap::Timing::overlapped ? StepCost::Timing::overlapped
                                               : StepCost::Timing::serial;
}

StepCost frame(const TrainingPlan& plan) {
  StepCost cost;
  cost.tp = plan.tp;
  cost.cp = plan.cp;
  cost.pp = plan.pp;
  cost.dp = plan.dp;
  cost.ep = plan.ep;
  cost.order = plan.order;
  cost.microbatches = static_cast<std::uint32_t>(plan.microbatches());
  cost.gather = timing_of(plan.overlap.dp_gather);
  cost.reduce = timing_of(plan.overlap.dp_reduce);
  cost.interference = Calibration::interference;
  cost.norm_bytes = plan.gpus() > 1 ? 4 : 0;
  return cost;
}

double stage_optimizer_s(const TransformerSpec& spec, const TrainingPlan& plan, const GpuSpec& gpu,
                         std::span<const ChunkLayers> chunks) {
  HeldParameters held;
  for (const ChunkLayers& chunk : chunks) {
    const HeldParameters part = held_parameters(spec, plan, chunk);
    held.shared += part.shared;
    held.experts += part.experts;
  }
  const double ranks = plan.zero == ZeroStage::none ? 1 : double{1} * plan.dp * plan.cp;
  const double expert_ranks =
      plan.zero == ZeroStage::none ? 1 : double{1} * plan.dp * plan.cp * plan.tp / plan.ep;
  return optimizer_seconds(held.all(), held.shared / ranks + held.experts / expert_ranks, plan,
                           gpu);
}

template <class Spec>
Status checked(const Spec& spec, const TrainingPlan& plan, const GpuSpec& gpu) {
  Errors errors = check_plan(spec, plan, gpu);
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  return {};
}

// Adds the gaps that slow launches leave. Either side may be the slower one from layer to layer, so
// that time approaches the larger of the two from above.
double launch_gap(double busy_s, double launch_s) {
  return std::pow(std::pow(busy_s, 4) + std::pow(launch_s, 4), 0.25) - busy_s;
}

// The GPU is busy with exchanges too, which are timed as if ranks filled hosts of eight in order.
void add_launch_gaps(StepCost& cost, const TransformerSpec& spec, const TrainingPlan& plan,
                     const GpuSpec& gpu, const std::vector<ChunkLayers>& chunks) {
  if (spec.experts == 0) return;
  StepCost placed = cost;
  const LinkSpeeds links;
  send_once_per_host(placed, [&](std::uint32_t rank) { return rank / links.gpus_per_host; });
  std::optional<double> exchange_s;  // of one call; they are all alike
  const auto add = [&](model::UnitCost& unit, const model::UnitCost& timed, double launch_s) {
    double busy_s = unit.compute_s;
    for (const CommWork& work : timed.comms) {
      if (work.dimension != Dimension::ep) continue;
      if (!exchange_s) exchange_s = call_seconds(placed, work, links);
      busy_s += work.calls * *exchange_s * (1 - work.overlap);
    }
    if (launch_s > 0) unit.compute_s += launch_gap(busy_s, launch_s);
  };
  for (std::size_t c = 0; c < chunks.size(); ++c) {
    const auto launch_s = [&](Pass pass) {
      return launch_seconds(spec, plan, gpu, chunks[c], pass);
    };
    add(cost.chunks[c].forward, placed.chunks[c].forward, launch_s(Pass::forward));
    add(cost.chunks[c].backward, placed.chunks[c].backward, launch_s(Pass::backward));
  }
}

}  // namespace

Result<StepCost> step_cost(const TransformerSpec& spec, const TrainingPlan& plan,
                           const GpuSpec& gpu) {
  WEFT_TRY_STATUS(checked(spec, plan, gpu));
  StepCost cost = frame(plan);
  const bool by_layer = plan.pp == 1 && plan.vp == 1 && plan.layout.empty();
  cost.virtual_stages = by_layer ? spec.layers : plan.vp;
  const std::vector<ChunkLayers> chunks = plan.layout.empty()
                                              ? split_layers(spec, plan.pp, cost.virtual_stages)
                                              : split_layers(spec, plan);
  for (const ChunkLayers& chunk : chunks) cost.chunks.push_back(chunk_cost(spec, plan, gpu, chunk));
  add_launch_gaps(cost, spec, plan, gpu, chunks);
  if (plan.pp > 1) {
    cost.activation_bytes = 2 * plan.tokens_per_rank() / plan.tp * spec.hidden;
    if (spec.tied_embeddings)
      cost.embedding_bytes = plan.gradient_bytes() * spec.embedding_parameters() / plan.tp;
  }
  for (std::uint32_t stage = 0; stage < plan.pp; ++stage)
    cost.optimizer_s.push_back(stage_optimizer_s(
        spec, plan, gpu,
        std::span(chunks).subspan(std::size_t{stage} * cost.virtual_stages, cost.virtual_stages)));
  return cost;
}

Result<StepCost> step_cost(const RecommendationSpec& spec, const TrainingPlan& plan,
                           const GpuSpec& gpu) {
  WEFT_TRY_STATUS(checked(spec, plan, gpu));
  StepCost cost = frame(plan);
  cost.ep = plan.dp;  // the exchange is among all ranks
  ChunkCost chunk;
  const auto seconds = [&](Pass pass) {
    return total_seconds(recommendation_kernels(spec, plan, pass), gpu,
                         gpu.calibration(plan.precision, plan.software));
  };
  chunk.forward.compute_s = seconds(Pass::forward);
  chunk.backward.compute_s = seconds(Pass::backward);
  if (plan.dp > 1) {
    const CommWork exchange{.dimension = Dimension::ep,
                            .op = CollectiveOp::all_to_all,
                            .bytes = 4.0 * plan.micro_batch * static_cast<double>(spec.tables) *
                                     static_cast<double>(spec.embedding_size),
                            .overlap = plan.overlap.ep};
    chunk.forward.comms.push_back(exchange);
    chunk.backward.comms.push_back(exchange);
    chunk.reduce.push_back({.dimension = Dimension::dp,
                            .op = CollectiveOp::all_reduce,
                            .bytes = 4 * spec.dense_parameters()});
  }
  cost.chunks.push_back(std::move(chunk));
  const double dense = spec.dense_parameters();
  cost.optimizer_s.push_back(optimizer_seconds(dense, dense, plan, gpu));
  return cost;
}

Result<StepCost> step_cost(const ModelSpec& model, const TrainingPlan& plan, const GpuSpec& gpu) {
  return std::visit([&](const auto& spec) { return step_cost(spec, plan, gpu); }, model);
}

}  // namespace weft::workload
