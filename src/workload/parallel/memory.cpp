#include "workload/parallel/memory.hpp"

#include <algorithm>
#include <utility>

#include "workload/parallel/stages.hpp"

namespace weft::workload {
namespace {

constexpr double parameter_bytes = 2;   // bf16, or two copies in fp8
constexpr double optimizer_bytes = 12;  // FP32 copy and two moments

bool at_least(const TrainingPlan& plan, ZeroStage stage) { return plan.zero >= stage; }

// Activation functions' inputs, and their outputs unless `again` computes those. Per token.
double ffn_bytes(const TransformerSpec& spec, const TrainingPlan& plan, double width, bool again) {
  const double gates = spec.kind == TransformerSpec::Ffn::gated ? 2 : 1;
  return 2 * gates * width + (again ? 0 : plan.parameter_bytes() * width);
}

double experts_bytes(const TransformerSpec& spec, const TrainingPlan& plan) {
  const Recompute& again = plan.recompute;
  if (again.has(Recompute::moe)) return 0;  // the norm's input is all
  const double copies = spec.experts_per_token;
  const double inputs = plan.parameter_bytes() * copies * spec.hidden;
  const double outputs = 2 * copies * spec.hidden;  // for the gradient of the router's weights
  const double shared = double{1} * spec.shared_experts * spec.expert_ffn;
  const bool act = again.has(Recompute::activation);
  double sum = inputs + outputs;
  sum += copies * ffn_bytes(spec, plan, spec.expert_ffn, act || again.has(Recompute::moe_act));
  if (!again.has(Recompute::shared_experts)) sum += ffn_bytes(spec, plan, shared, act);
  return sum;
}

// Micro-batches whose activations of chunk v are held at once, at most. 1F1B: PP - s. Interleaved:
// the warm-up's units, and one more, go through the chunks in groups of PP (Narayanan et al., SC
// 2021, 2.2), or of more where PP does not divide the micro-batches (docs/pipeline.md). As many
// micro-batches as stages, or fewer, all go forward first.
std::uint64_t held_at_once(const TrainingPlan& plan, std::uint32_t stage, std::uint32_t v) {
  const std::uint64_t count = plan.microbatches();
  if (plan.vp == 1) return std::min<std::uint64_t>(count, plan.pp - stage);
  if (count <= plan.pp) return count;
  const std::uint64_t groups = count / plan.pp;
  const std::uint64_t group = (count + groups - 1) / groups;
  const std::uint64_t units = 2ULL * (plan.pp - stage - 1) + (plan.vp - 1) * group + 1;
  const std::uint64_t rounds = units / (group * plan.vp);
  const std::uint64_t rest = units % (group * plan.vp);
  const std::uint64_t before = v * group;
  const std::uint64_t last = rest > before ? std::min(rest - before, group) : 0;
  return std::min(count, rounds * group + last);
}

double chunk_activations(const TransformerSpec& spec, const TrainingPlan& plan,
                         const ChunkLayers& chunk) {
  double sum = 0;
  for (std::uint32_t i = 0; i < chunk.count; ++i)
    sum += activation_bytes(spec, plan, chunk.first + i);
  return sum + chunk.prediction * activation_bytes(spec, plan, spec.layers);
}

// Logits in bf16 and FP32, of one micro-batch at a time.
double logits_bytes(const TransformerSpec& spec, const TrainingPlan& plan) {
  return 6 * plan.tokens_per_rank() * spec.vocabulary / plan.tp;
}

// Model states of parameters held by a rank, shared out over `ranks`. `working` parameters are
// gathered at any time with ZeRO 3, and have whole gradients from ZeRO 2 on.
void add_states(MemoryUse& use, const TrainingPlan& plan, double held, double working,
                double ranks) {
  const auto shared = [&](ZeroStage from, double extra) {
    return at_least(plan, from) ? held / ranks + std::min(extra, held) : held;
  };
  use.parameters += parameter_bytes * shared(ZeroStage::parameters, working);
  use.gradients += plan.gradient_bytes() * shared(ZeroStage::gradients, working);
  use.optimizer += optimizer_bytes * shared(ZeroStage::optimizer, 0);
}

MemoryUse stage_use(const TransformerSpec& spec, const TrainingPlan& plan,
                    const std::vector<ChunkLayers>& chunks, std::uint32_t stage) {
  MemoryUse use{.stage = stage};
  HeldParameters held;
  double layer_count = 0;
  for (std::uint32_t v = 0; v < plan.vp; ++v) {
    const ChunkLayers& chunk = chunks[std::size_t{stage} * plan.vp + v];
    const HeldParameters part = held_parameters(spec, plan, chunk);
    held.shared += part.shared;
    held.experts += part.experts;
    layer_count += chunk.count + chunk.prediction;
    use.activations +=
        static_cast<double>(held_at_once(plan, stage, v)) * chunk_activations(spec, plan, chunk);
    if (chunk.has_head()) use.activations += logits_bytes(spec, plan);
  }
  const double ranks = double{1} * plan.dp * plan.cp;
  // Two layers' worth: the one at work and the next, fetched ahead.
  const double layers = std::max(layer_count, 1.0);
  add_states(use, plan, held.shared, 2 * held.shared / layers, ranks);
  add_states(use, plan, held.experts, 2 * held.experts / layers, ranks * plan.tp / plan.ep);
  return use;
}

}  // namespace

double activation_bytes(const TransformerSpec& spec, const TrainingPlan& plan,
                        std::uint32_t layer) {
  const double tokens = plan.tokens_per_rank() / plan.tp;  // sequence parallelism shares all of it
  const double h = spec.hidden;
  const Recompute& again = plan.recompute;
  if (again.has(Recompute::whole_layer)) return 2 * tokens * h;
  const double norms = 2 * 2 * h;
  const double inputs = again.has(Recompute::layernorm) ? 0 : 2 * plan.parameter_bytes() * h;
  const double query_and_output =
      double{1} * spec.heads * (spec.query_size() + spec.head_value_size());
  // Keys and values of latent attention are kept compressed and expanded again.
  const double key_value = spec.latent() ? double{1} * spec.kv_rank + spec.rope_size
                                         : 2.0 * spec.kv_heads * spec.head_size;
  double block = 0;
  if (spec.has_experts(layer))
    block = experts_bytes(spec, plan);
  else if (!again.has(Recompute::mlp))
    block = ffn_bytes(spec, plan, spec.ffn, again.has(Recompute::activation));
  return tokens * (norms + inputs + 2 * (query_and_output + key_value) + block);
}

MemoryUse memory_use(const TransformerSpec& spec, const TrainingPlan& plan) {
  const std::vector<ChunkLayers> chunks = split_layers(spec, plan);
  MemoryUse fullest;
  if (chunks.empty()) return fullest;
  for (std::uint32_t stage = 0; stage < plan.pp; ++stage) {
    const MemoryUse use = stage_use(spec, plan, chunks, stage);
    if (use.total() > fullest.total()) fullest = use;
  }
  return fullest;
}

MemoryUse memory_use(const RecommendationSpec& spec, const TrainingPlan& plan) {
  MemoryUse use;
  const double tables = 4 * spec.embedding_parameters() / plan.dp;  // FP32
  use.parameters = 4 * spec.dense_parameters() + tables;
  use.gradients = 4 * spec.dense_parameters();
  // Two moments for the dense layers, one number a row for the tables (row-wise Adagrad).
  use.optimizer = 8 * spec.dense_parameters() + tables / static_cast<double>(spec.embedding_size);
  double widths = static_cast<double>(spec.interaction_size());
  for (const std::uint32_t width : spec.bottom) widths += 2.0 * width;
  for (const std::uint32_t width : spec.top) widths += 2.0 * width;
  widths += static_cast<double>(spec.tables) * static_cast<double>(spec.embedding_size);
  use.activations = 4 * plan.micro_batch * widths;
  return use;
}

std::uint32_t largest_micro_batch(const TransformerSpec& spec, TrainingPlan plan) {
  for (const std::uint32_t size : {4U, 2U}) {
    plan.micro_batch = size;
    const std::uint64_t count = plan.microbatches();
    const bool scheduled = count > 0 && (plan.vp == 1 || count % plan.pp == 0);
    if (scheduled && memory_use(spec, plan).total() <= memory_auto_bytes) return size;
  }
  return 1;
}

}  // namespace weft::workload
