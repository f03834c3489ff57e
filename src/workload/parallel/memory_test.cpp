#include "workload/parallel/memory.hpp"

#include <doctest/doctest.h>

#include "base/test_approx.hpp"
#include "workload/parallel/test_kit.hpp"

namespace weft::workload {
namespace {

using testing::preset;

// Korthikanti et al.: 34 s b h per layer, of which 2 are masks of dropout, which we leave out.
TEST_CASE("a GPT layer stores 32 bytes per token and hidden element") {
  const TransformerSpec spec = preset("megatron-177b");
  TrainingPlan plan{.tp = 8, .micro_batch = 2, .recompute = Recompute::none};
  const double sbh = 4096.0 * 2 * 12288;
  CHECK(activation_bytes(spec, plan, 0) == approx(32 * sbh / 8).epsilon(1e-12));
  plan.recompute = Recompute::full;
  CHECK(activation_bytes(spec, plan, 0) == approx(2 * sbh / 8).epsilon(1e-12));
  // Norms' outputs (4) and the activation function's (8) are computed again.
  plan.recompute = Recompute::selective;
  CHECK(activation_bytes(spec, plan, 0) == approx(20 * sbh / 8).epsilon(1e-12));
}

// Rajbhandari et al.: 16 bytes per parameter with bf16 and FP32 gradients are 2 + 4 + 12 here.
TEST_CASE("model states by ZeRO stage") {
  const TransformerSpec spec = preset("llama3-8b");
  const double n = spec.parameters() - spec.hidden;
  TrainingPlan plan{.dp = 16};
  const auto use = [&](ZeroStage zero) {
    plan.zero = zero;
    return memory_use(spec, plan);
  };
  CHECK(use(ZeroStage::none).parameters == approx(2 * n));
  CHECK(use(ZeroStage::none).gradients == approx(4 * n));
  CHECK(use(ZeroStage::none).optimizer == approx(12 * n));
  CHECK(use(ZeroStage::optimizer).optimizer == approx(12 * n / 16));
  CHECK(use(ZeroStage::optimizer).gradients == approx(4 * n));
  CHECK(use(ZeroStage::gradients).gradients == approx(4 * n * (1.0 / 16 + 2.0 / 32)));
  CHECK(use(ZeroStage::parameters).parameters == approx(2 * n * (1.0 / 16 + 2.0 / 32)));
  // fp8 sums gradients in bf16.
  plan.precision = Precision::fp8;
  CHECK(use(ZeroStage::none).gradients == approx(2 * n));
}

TEST_CASE("more of any dimension never needs more memory, more of a micro-batch never less") {
  const TransformerSpec spec = preset("llama3-70b");
  for (const ZeroStage zero :
       {ZeroStage::none, ZeroStage::optimizer, ZeroStage::gradients, ZeroStage::parameters}) {
    const TrainingPlan base{
        .tp = 2, .cp = 2, .pp = 4, .dp = 4, .batch = 256, .sequence = 8192, .zero = zero};
    const double total = memory_use(spec, base).total();
    const auto with = [&](std::uint32_t TrainingPlan::* size) {
      TrainingPlan plan = base;
      plan.*size *= 2;
      return memory_use(spec, plan).total();
    };
    CHECK(with(&TrainingPlan::tp) < total);
    CHECK(with(&TrainingPlan::cp) < total);
    CHECK(with(&TrainingPlan::pp) < total);
    CHECK(with(&TrainingPlan::dp) <= total);
    CHECK(with(&TrainingPlan::micro_batch) > total);
    CHECK(with(&TrainingPlan::sequence) > total);
    TrainingPlan plan = base;
    plan.recompute = Recompute::none;
    CHECK(memory_use(spec, plan).total() > total);
    plan.recompute = Recompute::full;
    CHECK(memory_use(spec, plan).total() < total);
  }
}

// Stage s of 1F1B holds PP - s micro-batches; 126 layers on 16 stages are 8 but for the last.
TEST_CASE("micro-batches in flight") {
  const TransformerSpec spec = preset("llama3-405b");
  TrainingPlan plan{.tp = 8, .pp = 16, .dp = 16, .batch = 2048, .sequence = 8192};
  const double layer = activation_bytes(spec, plan, 0);
  CHECK(memory_use(spec, plan).activations == approx(16 * 7 * layer).epsilon(0.15));
  // Interleaved: all of the pipeline and (PP - 1) / V more (Narayanan et al., 2.2).
  plan.vp = 8;
  const double interleaved = memory_use(spec, plan).activations;
  CHECK(interleaved == approx((126 + 15.0) * layer).epsilon(0.15));
  CHECK(interleaved > 126 * layer * 0.99);
  // Few micro-batches bound what can be held.
  plan = {.tp = 8, .pp = 16, .dp = 1024, .batch = 2048, .sequence = 8192};
  CHECK(memory_use(spec, plan).activations < 17 * layer);
}

// 10 micro-batches on 4 stages are two groups of 5. Stage 0 is 2 x 3 + 5 + 1 = 12 units ahead: a
// group through both chunks, 2 more in chunk 0. 3 micro-batches all go forward first.
TEST_CASE("micro-batches in flight, where the stages do not divide them") {
  TransformerSpec spec = preset("megatron-1.7b");
  spec.layers = 8;
  spec.vocabulary = 1000;  // no head to speak of
  TrainingPlan plan{.pp = 4, .vp = 2, .batch = 10};
  const double layer = activation_bytes(spec, plan, 0);
  const MemoryUse use = memory_use(spec, plan);
  CHECK(use.stage == 0);
  CHECK(use.activations == approx(12 * layer));
  plan.batch = 3;
  CHECK(memory_use(spec, plan).activations == approx(6 * layer).epsilon(0.05));
}

TEST_CASE("published plans fit their GPUs") {
  const TransformerSpec llama = preset("llama3-405b");
  const double h100 = gpu_by_name({"h100", {}})->memory_bytes - memory_reserve_bytes;
  CHECK(memory_use(llama, {.tp = 8, .pp = 16, .vp = 8, .dp = 128, .batch = 2048, .sequence = 8192})
            .total() < h100);
  CHECK(memory_use(llama, {.tp = 8,
                           .cp = 2,
                           .pp = 8,
                           .vp = 8,
                           .dp = 8,
                           .batch = 512,
                           .sequence = 8192,
                           .precision = Precision::fp8})
            .total() < h100);
  CHECK(memory_use(preset("deepseek-v3"), {.tp = 2,
                                           .pp = 8,
                                           .vp = 4,
                                           .dp = 64,
                                           .ep = 64,
                                           .batch = 8192,
                                           .precision = Precision::fp8})
            .total() < h100);
}

}  // namespace
}  // namespace weft::workload
