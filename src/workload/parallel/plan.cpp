#include "workload/parallel/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "workload/parallel/memory.hpp"
#include "workload/parallel/stages.hpp"

namespace weft::workload {
namespace {

// Collects what is wrong with a plan.
class Findings {
 public:
  void add(std::string what, std::string hint, Errc code = Errc::infeasible) {
    errors_.push_back({code, {}, std::move(what), std::move(hint), {}});
  }
  // `choose` names what can be changed, where that is not `by_name`.
  void divides(std::string_view name, std::uint64_t count, std::string_view by_name,
               std::uint64_t by, std::string_view choose = {}) {
    if (count % by == 0) return;
    add(fmt::format("{} {} / {} {} leaves a remainder of {}", count, name, by_name, by, count % by),
        fmt::format("choose {} so that it divides {}", choose.empty() ? by_name : choose, count));
  }
  Errors take() { return std::move(errors_); }
  bool none() const { return errors_.empty(); }

 private:
  Errors errors_;
};

void check_batch(Findings& out, const TrainingPlan& plan) {
  const std::uint64_t share = std::uint64_t{plan.dp} * plan.micro_batch;
  if (plan.batch == 0 || plan.batch % share != 0) {
    out.add(
        fmt::format("a batch of {} sequences / (dp {} x micro_batch {}) = {}, remainder {}",
                    plan.batch, plan.dp, plan.micro_batch, plan.batch / share, plan.batch % share),
        fmt::format("choose a multiple of {}", share));
    return;
  }
  const std::uint64_t count = plan.microbatches();
  if (count > (1U << 20))
    out.add(fmt::format("{} micro-batches per step", count), "use a smaller batch or a larger dp");
}

void check_expert_groups(Findings& out, const TransformerSpec& spec, const TrainingPlan& plan) {
  if (spec.experts == 0) {
    if (plan.ep > 1) out.add(fmt::format("ep {} on a model without experts", plan.ep), "use ep 1");
    return;
  }
  out.divides("experts", spec.experts, "ep", plan.ep);
  const std::uint64_t ranks = std::uint64_t{plan.tp} * plan.cp * plan.dp;
  if (ranks % plan.ep != 0)
    out.add(fmt::format("the tp {} x cp {} x dp {} = {} ranks of a pipeline stage do not divide "
                        "into groups of ep {}",
                        plan.tp, plan.cp, plan.dp, ranks, plan.ep),
            fmt::format("choose ep so that it divides {}", ranks));
}

void check_layout(Findings& out, const TransformerSpec& spec, const TrainingPlan& plan) {
  const std::vector<StageContents>& layout = plan.layout;
  const std::uint64_t stages = std::uint64_t{plan.pp} * plan.vp;
  std::uint64_t layers = 0, predictions = 0, embeddings = 0, heads = 0;
  for (const StageContents& stage : layout) {
    layers += stage.layers;
    predictions += stage.prediction;
    embeddings += stage.embedding ? 1 : 0;
    heads += stage.head ? 1 : 0;
  }
  if (layout.size() != stages)
    out.add(fmt::format("a layout of {} virtual stages for pp {} x vp {} = {}", layout.size(),
                        plan.pp, plan.vp, stages),
            "write one part between | for each virtual stage");
  if (layers != spec.layers || predictions != spec.prediction_layers)
    out.add(fmt::format("a layout of {} t and {} m for {} layers and {} prediction layers", layers,
                        predictions, spec.layers, spec.prediction_layers),
            "write one t for each layer and one m for each prediction layer");
  if (embeddings != 1 || heads != 1 || !layout.front().embedding || !layout.back().head)
    out.add("a layout without E on the first and L on the last virtual stage, once each",
            "begin with E and end with L");
}

void check_shape(Findings& out, const TransformerSpec& spec, const TrainingPlan& plan) {
  out.divides("heads", spec.heads, "tp", plan.tp);
  if (plan.tp <= spec.kv_heads)
    out.divides("key-value heads", spec.kv_heads, "tp", plan.tp);
  else
    out.divides("ranks of tp", plan.tp, "key-value heads", spec.kv_heads);
  out.divides("ffn", spec.ffn, "tp", plan.tp);
  // Causal attention is balanced by giving each rank one early and one late piece.
  const std::uint64_t pieces = plan.cp > 1 ? 2ULL * plan.cp : 1;
  out.divides("tokens of a sequence", plan.sequence, plan.cp > 1 ? "2 cp =" : "cp", pieces,
              "twice cp");
  if (plan.sequence % pieces == 0)
    out.divides("tokens of a micro-batch on a rank",
                std::uint64_t{plan.sequence} / plan.cp * plan.micro_batch, "tp", plan.tp);
  if (!plan.layout.empty()) return check_layout(out, spec, plan);
  if (split_layers(spec, plan).empty())
    out.add(fmt::format("{} layers for pp {} x vp {} = {} virtual stages", spec.layers, plan.pp,
                        plan.vp, std::uint64_t{plan.pp} * plan.vp),
            fmt::format("use at most {} (the first and the last may have none)", spec.layers + 2));
}

std::string gigabytes(double bytes) { return fmt::format("{:.1f} GB", bytes / 1e9); }

void check_memory(Findings& out, const MemoryUse& use, const TrainingPlan& plan,
                  const GpuSpec& gpu) {
  const double usable = gpu.memory_bytes - memory_reserve_bytes;
  if (use.total() <= usable) return;
  out.add(fmt::format("a GPU of stage {} needs {}: parameters {} + gradients {} + optimizer {} + "
                      "activations {}; {} has {} minus {} for the runtime = {}",
                      use.stage, gigabytes(use.total()), gigabytes(use.parameters),
                      gigabytes(use.gradients), gigabytes(use.optimizer),
                      gigabytes(use.activations), gpu.name, gigabytes(gpu.memory_bytes),
                      gigabytes(memory_reserve_bytes), gigabytes(usable)),
          fmt::format("use more tp, pp or zero (now {}), a smaller micro_batch, or recompute: full",
                      std::to_underlying(plan.zero)));
}

// The rest divides by these.
bool positive(Findings& out, const TrainingPlan& plan) {
  const std::uint32_t least = std::min(
      {plan.tp, plan.cp, plan.pp, plan.vp, plan.dp, plan.ep, plan.micro_batch, plan.sequence});
  if (least == 0)
    out.add("a dimension, the micro-batch or the sequence is 0", "give 1 or more", Errc::value);
  return least > 0;
}

void check_gpu(Findings& out, const TrainingPlan& plan, const GpuSpec& gpu) {
  if (gpu.peak_flops(plan.precision) <= 0)
    out.add(fmt::format("{} does not support fp8", gpu.name), "use precision: bf16",
            Errc::unsupported);
}

Errors check(const TransformerSpec& spec, const TrainingPlan& plan, const GpuSpec& gpu) {
  Findings out;
  if (!positive(out, plan)) return out.take();
  check_gpu(out, plan, gpu);
  check_batch(out, plan);
  check_expert_groups(out, spec, plan);
  check_shape(out, spec, plan);
  if (out.none()) check_memory(out, memory_use(spec, plan), plan, gpu);
  return out.take();
}

Errors check(const RecommendationSpec& spec, const TrainingPlan& plan, const GpuSpec& gpu) {
  Findings out;
  if (!positive(out, plan)) return out.take();
  check_gpu(out, plan, gpu);
  check_batch(out, plan);
  const std::pair<std::string_view, std::uint32_t> unused[] = {
      {"tp", plan.tp}, {"cp", plan.cp}, {"pp", plan.pp}, {"vp", plan.vp}, {"ep", plan.ep}};
  for (const auto& [name, size] : unused)
    if (size > 1)
      out.add(fmt::format("{} {} on a recommendation model", name, size),
              "use only dp: embedding tables are spread over its ranks");
  if (out.none()) check_memory(out, memory_use(spec, plan), plan, gpu);
  return out.take();
}

}  // namespace

std::uint64_t TrainingPlan::gpus() const {
  // Sizes are below 2^32, so two of them fit; more saturate.
  const auto times = [](std::uint64_t a, std::uint64_t b) {
    constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
    return b != 0 && a > most / b ? most : a * b;
  };
  return times(times(times(tp, cp), pp), dp);
}

std::uint64_t TrainingPlan::microbatches() const {
  const std::uint64_t share = std::uint64_t{dp} * micro_batch;
  return share == 0 || batch % share != 0 ? 0 : batch / share;
}

model::RankGrid TrainingPlan::grid() const { return model::RankGrid({tp, cp, pp, dp}, order); }

std::string TrainingPlan::text() const {
  std::string out;
  const std::pair<std::string_view, std::uint32_t> sizes[] = {{"TP", tp}, {"CP", cp}, {"PP", pp},
                                                              {"VP", vp}, {"DP", dp}, {"EP", ep}};
  for (const auto& [name, size] : sizes)
    if (size > 1) out += fmt::format("{}{} {}", out.empty() ? "" : ", ", name, size);
  return out.empty() ? "DP 1" : out;
}

void mixture_defaults(TrainingPlan& plan) {
  plan.order = {model::Axis::tp, model::Axis::cp, model::Axis::dp, model::Axis::pp};
  plan.software = Software::of_2025;
}

Errors check_plan(const ModelSpec& model, const TrainingPlan& plan, const GpuSpec& gpu) {
  return std::visit([&](const auto& spec) { return check(spec, plan, gpu); }, model);
}

}  // namespace weft::workload
