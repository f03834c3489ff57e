// The kernels of layers, embedding and head. Element-wise traffic is counted in bytes per token as
// the published implementations move it; docs/training-model.md has the table.
#include <algorithm>
#include <cmath>

#include "workload/parallel/compute.hpp"

namespace weft::workload {
namespace {

struct Product {
  std::string_view name;
  double m, n, k;
  double count = 1;
  Precision precision = Precision::bf16;
  bool grouped = false;
};

// Collects the kernels of one pass.
class Kernels {
 public:
  Kernels(const TrainingPlan& plan, Pass pass) : plan_(plan), pass_(pass) {}

  // Forward: one product. Backward: gradients of the input and of the weights, the latter added to
  // a sum in memory (read and written once per micro-batch).
  void product(const Product& p) {
    if (pass_ == Pass::forward) return add(p, 2 * p.m * p.n);
    add({p.name, p.m, p.k, p.n, p.count, p.precision, p.grouped}, 2 * p.m * p.k);
    add({p.name, p.k, p.n, p.m, p.count, p.precision, p.grouped},
        2 * plan_.gradient_bytes() * p.k * p.n);
  }
  // Backward computes five products where forward has two: scores once more, and four gradients.
  void attention(double forward_flops, double bytes, double sequence) {
    const double factor = pass_ == Pass::forward ? 1 : 2.5;
    Kernel kernel{.name = "attention", .kind = Kernel::Kind::attention, .pass = pass_};
    kernel.flops = factor * forward_flops;
    kernel.bytes = factor * bytes;
    kernel.sequence = sequence;
    list_.push_back(kernel);
  }
  void traffic(std::string_view name, double forward_bytes, double backward_bytes) {
    Kernel kernel{.name = name, .kind = Kernel::Kind::memory, .pass = pass_};
    kernel.bytes = pass_ == Pass::forward ? forward_bytes : backward_bytes;
    if (kernel.bytes > 0) list_.push_back(kernel);
  }
  std::vector<Kernel> take() { return std::move(list_); }

 private:
  void add(const Product& p, double result_bytes) {
    const double element = p.precision == Precision::fp8 ? 1 : 2;
    Kernel kernel{.name = p.name, .kind = Kernel::Kind::gemm, .precision = p.precision};
    kernel.m = p.m;
    kernel.n = p.n;
    kernel.k = p.k;
    kernel.count = p.count;
    kernel.grouped = p.grouped;
    kernel.flops = 2 * p.count * p.m * p.n * p.k;
    kernel.bytes = p.count * (element * (p.m * p.k + p.k * p.n) + result_bytes);
    kernel.pass = pass_;
    list_.push_back(kernel);
  }

  const TrainingPlan& plan_;
  Pass pass_;
  std::vector<Kernel> list_;
};

// Sizes of one rank's share.
struct Local {
  const TransformerSpec& spec;
  const TrainingPlan& plan;
  double tokens;  // of the micro-batch, whole tensor-parallel group
  double heads, kv_heads;

  Local(const TransformerSpec& s, const TrainingPlan& p)
      : spec(s),
        plan(p),
        tokens(p.tokens_per_rank()),
        heads(static_cast<double>(s.heads) / p.tp),
        kv_heads(std::max(1.0, static_cast<double>(s.kv_heads) / p.tp)) {}
  double queries() const { return heads * spec.query_size(); }
  double values() const { return heads * spec.head_value_size(); }
  double keys_and_values() const {
    if (spec.latent()) return heads * (spec.query_size() + spec.value_size);
    return 2 * kv_heads * spec.head_size;
  }
  double gates() const { return spec.kind == TransformerSpec::Ffn::gated ? 2 : 1; }
};

// Of latent attention: from the compressed queries, keys and values to those of all heads.
void add_up_projections(Kernels& out, const Local& at) {
  const TransformerSpec& spec = at.spec;
  const Precision precision = at.plan.precision;
  const double query_in = spec.query_rank > 0 ? spec.query_rank : spec.hidden;
  out.product({"q up", at.tokens, at.queries(), query_in, 1, precision});
  const double up = at.heads * (spec.head_size + spec.value_size);
  out.product({"kv up", at.tokens, up, double{1} * spec.kv_rank, 1, precision});
}

void add_projections(Kernels& out, const Local& at) {
  const TransformerSpec& spec = at.spec;
  const Precision precision = at.plan.precision;
  const double h = spec.hidden;
  if (!spec.latent()) {
    out.product({"qkv", at.tokens, at.queries() + at.keys_and_values(), h, 1, precision});
    return;
  }
  // The compressing products are small and done by every tensor-parallel rank for its own tokens.
  const double own = at.tokens / at.plan.tp;
  if (spec.query_rank > 0)
    out.product({"q down", own, double{1} * spec.query_rank, h, 1, precision});
  out.product({"kv down", own, double{1} * spec.kv_rank + spec.rope_size, h, 1, precision});
  add_up_projections(out, at);
}

void add_rope(Kernels& out, const Local& at) {
  const double bytes = 4 * at.tokens * (at.queries() + at.keys_and_values() / 2);
  out.traffic("rope", bytes, bytes);
}

void add_attention_core(Kernels& out, const Local& at) {
  const double sequence = at.plan.sequence;
  const double sizes = at.queries() + at.values();
  // Causal: a token attends to half of the sequence; two products.
  out.attention(2 * at.tokens * (sequence / 2) * sizes,
                2 * at.tokens * (sizes + at.keys_and_values()), sequence / at.plan.cp);
}

void add_attention(Kernels& out, const Local& at) {
  add_projections(out, at);
  add_rope(out, at);
  add_attention_core(out, at);
  out.product(
      {"projection", at.tokens, double{1} * at.spec.hidden, at.values(), 1, at.plan.precision});
}

// Activation function between the products of a feed-forward block `width` wide.
void add_activation(Kernels& out, const Local& at, double tokens, double width, bool recomputed) {
  const double in = 2 * at.gates() * width;
  const double forward = in + 2 * width;
  const double again = recomputed ? forward : 0;
  out.traffic("activation", tokens * forward, tokens * (2 * in + 2 * width + again));
}

void add_ffn(Kernels& out, const Local& at, double width) {
  const double h = at.spec.hidden;
  out.product({"ffn in", at.tokens, at.gates() * width, h, 1, at.plan.precision});
  add_activation(out, at, at.tokens, width, at.plan.recompute.has(Recompute::activation));
  out.product({"ffn out", at.tokens, h, width, 1, at.plan.precision});
}

void add_shared_experts(Kernels& out, const Local& at) {
  const TransformerSpec& spec = at.spec;
  if (spec.shared_experts > 0)
    add_ffn(out, at, static_cast<double>(spec.shared_experts) * spec.expert_ffn / at.plan.tp);
}

// Router, permutation to experts and back, experts as grouped products. Experts are whole
// (no tensor parallelism inside); every rank dispatches its own share of the tokens.
void add_experts(Kernels& out, const Local& at) {
  const TransformerSpec& spec = at.spec;
  const Recompute& recompute = at.plan.recompute;
  const Precision precision = at.plan.precision;
  const double h = spec.hidden;
  const double own = at.tokens / at.plan.tp;
  const double routed = own * spec.experts_per_token;
  const double local = static_cast<double>(spec.experts) / at.plan.ep;
  out.product({"router", own, double{1} * spec.experts, h, 1, Precision::bf16});
  out.traffic("top k", 24 * own * spec.experts, 24 * own * spec.experts);
  // Gather into expert order and back: before and after the exchange, or where the dispatcher makes
  // the copies, after it alone.
  const double times = at.plan.dispatcher == Dispatcher::alltoall ? 2 : 1;
  out.traffic("permute", times * 4 * routed * h, times * 4 * routed * h);
  // FP8 products want rows in multiples of 16: half a multiple per expert is padding.
  const double rows = routed / local + (precision == Precision::fp8 ? 8 : 0);
  out.product({"experts in", rows, at.gates() * spec.expert_ffn, h, local, precision, true});
  add_activation(out, at, routed, spec.expert_ffn,
                 recompute.has(Recompute::activation) || recompute.has(Recompute::moe_act));
  out.product({"experts out", rows, h, double{1} * spec.expert_ffn, local, precision, true});
  out.traffic("combine", times * 4 * routed * h, times * 6 * routed * h);
  add_shared_experts(out, at);
}

// Norms and residual sums, on the sequence-parallel share of the tokens.
void add_norms(Kernels& out, const Local& at) {
  const double elements = at.tokens / at.plan.tp * at.spec.hidden;
  const double again = at.plan.recompute.has(Recompute::layernorm) ? 4 : 0;
  for (int i = 0; i < 2; ++i) {
    out.traffic("norm", 4 * elements, (6 + again) * elements);
    out.traffic("residual", 6 * elements, 6 * elements);
  }
}

// Casts to fp8 with a scale of the tensor at hand ("current scaling"): read for its largest element
// (2 B), read again and written in both orientations (2 + 2 B). Of every product's input, and of
// every gradient that enters one.
void add_casts(Kernels& out, const Local& at, bool experts) {
  if (at.plan.precision != Precision::fp8) return;
  constexpr double cast = 6;
  const TransformerSpec& spec = at.spec;
  const double own = at.tokens / at.plan.tp;
  // Elements at the two products of the feed-forward block, and at the first's output.
  double hidden = own * spec.hidden, inner = at.tokens * spec.ffn / at.plan.tp;
  if (experts) {
    const double copies = own * (spec.experts_per_token + spec.shared_experts);
    hidden = copies * spec.hidden;
    inner = copies * spec.expert_ffn;
  }
  const double first = own * spec.hidden + hidden;
  out.traffic(
      "cast", cast * (first + at.tokens * at.values() + inner),
      cast * (first + at.tokens * (at.queries() + at.keys_and_values()) + at.gates() * inner));
}

// Whole modules that the backward computes again first. Norms and activation functions have it in
// their own backward.
std::vector<Kernel> recomputed(const TransformerSpec& spec, const TrainingPlan& plan,
                               std::uint32_t layer) {
  Kernels out(plan, Pass::forward);
  const Local at(spec, plan);
  const Recompute& modules = plan.recompute;
  const bool experts = spec.has_experts(layer);
  if (modules.has(Recompute::mla_up_proj) && spec.latent()) {
    add_up_projections(out, at);
    add_rope(out, at);
  }
  if (modules.has(Recompute::core_attn)) add_attention_core(out, at);
  if (modules.has(Recompute::mlp) && !experts)
    add_ffn(out, at, static_cast<double>(spec.ffn) / plan.tp);
  if (modules.has(Recompute::moe) && experts)
    add_experts(out, at);
  else if (modules.has(Recompute::shared_experts) && experts)
    add_shared_experts(out, at);
  return out.take();
}

std::vector<Kernel> one_pass(const TransformerSpec& spec, const TrainingPlan& plan,
                             std::uint32_t layer, Pass pass) {
  Kernels out(plan, pass);
  const Local at(spec, plan);
  add_norms(out, at);
  add_attention(out, at);
  const bool experts = spec.has_experts(layer);
  if (experts)
    add_experts(out, at);
  else
    add_ffn(out, at, static_cast<double>(spec.ffn) / plan.tp);
  add_casts(out, at, experts);
  return out.take();
}

}  // namespace

std::vector<Kernel> layer_kernels(const TransformerSpec& spec, const TrainingPlan& plan,
                                  std::uint32_t layer, Pass pass) {
  std::vector<Kernel> kernels = one_pass(spec, plan, layer, pass);
  if (pass == Pass::forward) return kernels;
  const std::vector<Kernel> again = plan.recompute.has(Recompute::whole_layer)
                                        ? one_pass(spec, plan, layer, Pass::forward)
                                        : recomputed(spec, plan, layer);
  kernels.insert(kernels.end(), again.begin(), again.end());
  return kernels;
}

std::vector<Kernel> embedding_kernels(const TransformerSpec& spec, const TrainingPlan& plan,
                                      Pass pass) {
  Kernels out(plan, pass);
  const double elements = plan.tokens_per_rank() * spec.hidden;
  out.traffic("embedding", 4 * elements, (2 + 2 * plan.gradient_bytes()) * elements);
  return out.take();
}

std::vector<Kernel> head_kernels(const TransformerSpec& spec, const TrainingPlan& plan, Pass pass) {
  Kernels out(plan, pass);
  const double tokens = plan.tokens_per_rank();
  const double logits = std::ceil(static_cast<double>(spec.vocabulary) / plan.tp);
  out.traffic("norm", 4 * tokens / plan.tp * spec.hidden, 6 * tokens / plan.tp * spec.hidden);
  // Megatron's output projection is in bf16, but published fp8 rows leave no time for that on the
  // last stage (docs/training-model.md).
  out.product({"head", tokens, logits, double{1} * spec.hidden, 1, plan.precision});
  // Megatron's bf16 way. Forward: to FP32 (2 + 4), largest (4), exponential and sum (4 + 4).
  // Backward: difference (4 + 4), to bf16 (4 + 2). The fp8 recipes fuse all of it: logits are read
  // for their sum (2), then read and replaced by their gradient (2 + 2).
  const bool fused = plan.precision == Precision::fp8;
  out.traffic("loss", (fused ? 2 : 18) * tokens * logits, (fused ? 4 : 14) * tokens * logits);
  return out.take();
}

std::vector<Kernel> prediction_kernels(const TransformerSpec& spec, const TrainingPlan& plan,
                                       Pass pass) {
  Kernels out(plan, pass);
  const double h = spec.hidden;
  out.product({"join", plan.tokens_per_rank(), h / plan.tp, 2 * h, 1, plan.precision});
  return out.take();
}

std::vector<Kernel> recommendation_kernels(const RecommendationSpec& spec, const TrainingPlan& plan,
                                           Pass pass) {
  Kernels out(plan, pass);
  const double samples = plan.micro_batch;
  const auto dense = [&](const std::vector<std::uint32_t>& widths) {
    for (std::size_t i = 1; i < widths.size(); ++i) {
      out.product(
          {"dense", samples, double{1} * widths[i], double{1} * widths[i - 1], 1, plan.precision});
      out.traffic("activation", 4 * samples * widths[i], 6 * samples * widths[i]);
    }
  };
  // Rows of FP32 are read and summed; backward reads and writes them and their Adagrad state.
  const double vectors = samples * static_cast<double>(spec.tables);
  const double row = 4 * static_cast<double>(spec.embedding_size);
  const double rows = vectors * spec.pooled_lookups * row;
  out.traffic("look-up", rows + vectors * row, 4 * rows + vectors * row);
  dense(spec.bottom);
  const auto width = static_cast<double>(spec.interaction_size());
  const double n = static_cast<double>(spec.tables) + 1;
  out.product({"interaction", n, n, static_cast<double>(spec.embedding_size), samples});
  if (!spec.top.empty())
    out.product({"dense", samples, double{1} * spec.top.front(), width, 1, plan.precision});
  dense(spec.top);
  return out.take();
}

}  // namespace weft::workload
