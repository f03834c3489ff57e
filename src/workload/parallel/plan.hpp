// How a model is spread over GPUs, and how a step is cut into micro-batches.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/config.hpp"
#include "model/work/rank_grid.hpp"
#include "workload/parallel/gpu.hpp"
#include "workload/parallel/layout.hpp"
#include "workload/parallel/model_spec.hpp"

namespace weft::workload {

// What data-parallel ranks share out: 0 nothing (gradients are all-reduced), 1 optimizer states
// (gradients are reduce-scattered, parameters gathered, once a step), 2 gradients too
// (reduce-scattered after every micro-batch), 3 parameters too (gathered for every forward and
// backward): Rajbhandari et al., arXiv 1910.02054.
enum class ZeroStage : std::uint8_t { none, optimizer, gradients, parameters };

// What the backward pass computes again, in the words of Megatron's --recompute-modules. selective:
// norms and activation functions, which cost memory traffic alone. full: the whole layer.
// Attention's scores are never stored (FlashAttention).
struct Recompute {
  enum Module : std::uint8_t {
    layernorm,
    activation,   // of all feed-forward blocks
    moe_act,      // of the experts alone
    mla_up_proj,  // what latent attention expands, and its rotary embedding
    core_attn,    // attention without its projections
    mlp,          // dense feed-forward blocks
    moe,          // router, both exchanges, experts
    shared_experts,
    whole_layer,
  };
  std::uint16_t modules = 0;

  constexpr bool has(Module module) const { return (modules >> module & 1) != 0; }
  constexpr void add(Module module) { modules = static_cast<std::uint16_t>(modules | 1 << module); }
  bool operator==(const Recompute&) const = default;
  static const Recompute none, selective, full;
};
inline constexpr Recompute Recompute::none{};
inline constexpr Recompute Recompute::selective{1 << layernorm | 1 << activation};
inline constexpr Recompute Recompute::full{1 << whole_layer};

// How tokens reach their experts. alltoall: one copy for each expert. deepep, hybridep: one copy
// for each host that has any of them, and from there over NVLink (DeepEP's README; HybridEP
// likewise).
enum class Dispatcher : std::uint8_t { alltoall, deepep, hybridep };

// Whether the host launches every kernel, or replays what it has recorded.
enum class CudaGraphs : std::uint8_t { off, on };

// Shares of communication that run beside compute of the same rank, in [0, 1].
struct Overlap {
  // Of an expert exchange with Megatron's overlap_moe_expert_parallel_comm, hidden by products and
  // attention: Nsight profile of Qwen3-30B-A3B on 16 H100, Megatron-Bridge, skills/
  // nemo-mbridge-perf-moe-comm-overlap (0.11 % without).
  static constexpr double exchange_on = 0.3655;
  std::optional<double> tp;  // none: as calibrated for dense models, 0 for mixtures of experts
  double cp = 0;             // the gather of keys and values comes before attention (Llama 3)
  double ep = 0;             // Megatron's default
  enum class Timing : std::uint8_t { overlapped, serial };
  Timing dp_gather = Timing::overlapped, dp_reduce = Timing::overlapped;  // Megatron, Llama 3
};

struct TrainingPlan {
  std::uint32_t tp = 1, cp = 1, pp = 1, vp = 1, dp = 1, ep = 1;
  std::array<model::Axis, model::axis_count> order{model::Axis::tp, model::Axis::cp,
                                                   model::Axis::pp, model::Axis::dp};
  std::uint64_t batch = 1;        // sequences (or samples) of a step, all replicas together
  std::uint32_t sequence = 4096;  // tokens
  std::uint32_t micro_batch = 1;  // sequences (or samples)
  Precision precision = Precision::bf16;
  ZeroStage zero = ZeroStage::optimizer;
  Recompute recompute = Recompute::selective;
  Overlap overlap = {};
  Software software = Software::of_2024;
  Dispatcher dispatcher = Dispatcher::alltoall;
  CudaGraphs cuda_graphs = CudaGraphs::off;
  std::vector<StageContents> layout;  // by virtual stage; empty: split_layers decides

  // Ranks; saturates. Micro-batches of one replica, 0 where the batch does not divide.
  std::uint64_t gpus() const;
  std::uint64_t microbatches() const;
  double tokens() const { return static_cast<double>(batch) * sequence; }
  // Tokens of one micro-batch on one rank of a context-parallel group.
  double tokens_per_rank() const {
    return static_cast<double>(micro_batch) * sequence / static_cast<double>(cp);
  }
  // Bytes per element of parameters when gathered and of gradients when reduced: 2 and 4 in bf16
  // (Megatron, Llama 3: gradients are summed in FP32), 1 and 2 in fp8 (Megatron-Bridge's recipes).
  double parameter_bytes() const { return precision == Precision::fp8 ? 1 : 2; }
  double gradient_bytes() const { return precision == Precision::fp8 ? 2 : 4; }
  model::RankGrid grid() const;
  std::string text() const;  // "TP 8, PP 16, VP 8, DP 128": dimensions above 1; "DP 1" if none
};

// The keys of a job that make its plan.
inline constexpr std::array<std::string_view, 13> plan_keys{
    "parallel",  "batch",   "batch_tokens", "sequence", "micro_batch", "precision",  "zero",
    "recompute", "overlap", "layout",       "software", "dispatcher",  "cuda_graphs"};

// Takes the plan's keys from a job: parallel {tp, cp, pp, vp, dp, ep, order}, batch_tokens or
// batch, sequence, micro_batch (a number or "auto"), precision, zero, recompute, overlap, layout,
// software, dispatcher, cuda_graphs. `gpus`, where known, must be the product of the dimensions; dp
// follows from it where it is not given. Defaults are those of TrainingPlan, for a mixture of
// experts those of mixture_defaults, and the model's usual sequence; the batch is required. All
// errors go to the reader's list, what check_plan finds among them. Returns no plan when there was
// one.
std::optional<TrainingPlan> read_plan(Reader& job, const ModelSpec& model, const GpuSpec& gpu,
                                      std::optional<std::uint64_t> gpus = std::nullopt);

// What Megatron does with a mixture of experts unless told otherwise: expert groups on neighbouring
// ranks (its order is tp-cp-ep-dp-pp), and software of 2025.
void mixture_defaults(TrainingPlan& plan);

// What cannot work, each with its arithmetic: heads, layers, batch, experts that do not divide;
// memory that one GPU does not have. Errc::infeasible, Errc::unsupported; empty: the plan is fine.
Errors check_plan(const ModelSpec& model, const TrainingPlan& plan, const GpuSpec& gpu);

}  // namespace weft::workload
