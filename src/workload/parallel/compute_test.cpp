#include "workload/parallel/compute.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>

#include "base/test_approx.hpp"
#include "workload/parallel/test_kit.hpp"

namespace weft::workload {
namespace {

using testing::h100;
using testing::preset;

// FLOPs of a whole micro-batch on all ranks, in units of one training token's.
double step_flops(const TransformerSpec& spec, const TrainingPlan& plan) {
  double sum = 0;
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    for (std::uint32_t layer = 0; layer < spec.layers; ++layer)
      sum += total_flops(layer_kernels(spec, plan, layer, pass));
    sum += total_flops(head_kernels(spec, plan, pass));
  }
  return sum * plan.tp * plan.cp;
}

// Of the attention core, the backward pass computes the scores once more: 2.5 instead of 2 times
// the forward, so 3.5 / 3 in all.
double again(const TransformerSpec& spec, std::uint32_t sequence) {
  return 0.5 / 3 *
         (flops_per_token(spec, sequence, FlopConvention::full) -
          flops_per_token(spec, sequence, FlopConvention::causal));
}

TEST_CASE("kernels add up to the model's FLOPs, whatever the split") {
  const TrainingPlan plans[] = {{.sequence = 4096},
                                {.tp = 4, .sequence = 4096, .micro_batch = 2},
                                {.tp = 2, .cp = 4, .sequence = 8192}};
  for (const char* name : {"megatron-7.1b", "llama3-8b", "llama3-70b"})
    for (const TrainingPlan& plan : plans) {
      const TransformerSpec spec = preset(name);
      const double tokens = double{1} * plan.micro_batch * plan.sequence;
      const double expected =
          tokens * (flops_per_token(spec, plan.sequence, FlopConvention::causal) +
                    again(spec, plan.sequence));
      CAPTURE(name);
      CHECK(step_flops(spec, plan) == approx(expected).epsilon(1e-3));  // but norms
    }
}

TEST_CASE("experts add up too, over expert parallelism") {
  TransformerSpec spec = preset("qwen3-235b-a22b");
  for (const std::uint32_t ep : {1U, 8U, 32U}) {
    const TrainingPlan plan{.tp = 2, .dp = 16, .ep = ep, .sequence = 4096};
    const double expected =
        4096 * (flops_per_token(spec, 4096, FlopConvention::causal) + again(spec, 4096));
    CHECK(step_flops(spec, plan) == approx(expected).epsilon(2e-3));
  }
}

TEST_CASE("full recomputation is one more forward") {
  const TransformerSpec spec = preset("llama3-8b");
  TrainingPlan plan{.sequence = 4096};
  const double forward = total_flops(layer_kernels(spec, plan, 0, Pass::forward));
  const double backward = total_flops(layer_kernels(spec, plan, 0, Pass::backward));
  plan.recompute = Recompute::full;
  CHECK(total_flops(layer_kernels(spec, plan, 0, Pass::backward)) == approx(forward + backward));
}

Kernel gemm(double m, double n, double k) {
  return {.kind = Kernel::Kind::gemm,
          .m = m,
          .n = n,
          .k = k,
          .flops = 2 * m * n * k,
          .bytes = 2 * (m * k + k * n + m * n)};
}

TEST_CASE("a GEMM's time: tiles, waves, depth and memory") {
  GpuSpec gpu = h100();
  gpu.bf16.gemm = 1;
  const double peak = gpu.bf16_flops;
  const auto share = [&](double m, double n, double k) {
    const Kernel kernel = gemm(m, n, k);
    return kernel.flops / peak / (kernel_seconds(kernel, gpu, gpu.bf16) - 5e-6);
  };
  // 132 tiles of 128 x 256 are one full wave, one more begins a second.
  const double full = share(128 * 12, 256 * 11, 4096);
  CHECK(full == approx(4096.0 / (4096 + 128)).epsilon(1e-6));
  CHECK(share(128 * 12 + 1, 256 * 11, 4096) < 0.75 * full);
  CHECK(share(128 * 12, 256 * 11, 256) < share(128 * 12, 256 * 11, 1024));
  // One row: bound by reading the weights.
  const Kernel row = gemm(1, 8192, 8192);
  CHECK(kernel_seconds(row, gpu, gpu.bf16) >= row.bytes / gpu.memory_bytes_per_s);
}

TEST_CASE("no kernel beats the roofline") {
  for (const char* gpu_name : {"a100", "h100", "b200"}) {
    const GpuSpec gpu = gpu_by_name({gpu_name, {}}).value();
    for (const char* name : {"llama3-8b", "deepseek-v3", "gpt3-175b"}) {
      const TransformerSpec spec = preset(name);
      const TrainingPlan plan{.tp = 4, .dp = 2, .sequence = 2048};
      for (const Pass pass : {Pass::forward, Pass::backward})
        for (const Kernel& kernel : layer_kernels(spec, plan, 5, pass)) {
          const double bound = std::max(kernel.flops / gpu.peak_flops(kernel.precision),
                                        kernel.bytes / gpu.memory_bytes_per_s);
          CHECK(kernel_seconds(kernel, gpu, gpu.bf16) > bound);
        }
    }
  }
}

TEST_CASE("a faster GPU, a smaller share and fp8 never take longer") {
  const TransformerSpec spec = preset("llama3-70b");
  const auto seconds = [&](const TrainingPlan& plan, const char* gpu) {
    return chunk_seconds(spec, plan, gpu_by_name({gpu, {}}).value(), {.first = 0, .count = 4},
                         Pass::forward);
  };
  const TrainingPlan plan{.tp = 4, .sequence = 8192};
  CHECK(seconds(plan, "h100") < seconds(plan, "a100"));
  CHECK(seconds(plan, "b200") < seconds(plan, "h100"));
  CHECK(seconds(plan, "h200") <= seconds(plan, "h100"));
  CHECK(seconds({.tp = 8, .sequence = 8192}, "h100") < seconds(plan, "h100"));
  CHECK(seconds({.tp = 4, .sequence = 8192, .precision = Precision::fp8}, "h100") <
        seconds(plan, "h100"));
}

TEST_CASE("fitted scalars lie in their documented ranges") {
  for (const std::string& name : gpu_names()) {
    if (name == "mi300x") continue;  // its products are as measured alone, and nothing is fitted
    const GpuSpec gpu = gpu_by_name({name, {}}).value();
    for (const Calibration& fitted : {gpu.bf16, gpu.fp8}) {
      CHECK(fitted.gemm >= 0.5);
      CHECK(fitted.gemm <= 0.8);
      CHECK(fitted.attention >= 0.5);
      CHECK(fitted.attention <= 0.65);
      CHECK(fitted.tp_overlap >= 0.3);
      CHECK(fitted.tp_overlap <= 0.9);
    }
  }
  CHECK(gpu_by_name({"h10", {}}).error().text().find("did you mean \"h100\"") != std::string::npos);
}

// 100 parameters held, 10 updated: gradients cleared 4 B; norm 4, update 24 + 4 + 2 B.
TEST_CASE("the optimizer is bound by memory") {
  const GpuSpec gpu = h100();
  const double bytes = 1e9 * 4 + 1e8 * (4 + 30);
  CHECK(optimizer_seconds(1e9, 1e8, {}, gpu) ==
        approx(bytes / (0.7 * gpu.memory_bytes_per_s)).epsilon(0.01));
}

TEST_CASE("a recommendation model's FLOPs") {
  const auto spec = std::get<RecommendationSpec>(model_by_name({"dlrm", {}}).value());
  const TrainingPlan plan{.micro_batch = 512};
  double sum = 0;
  for (const Pass pass : {Pass::forward, Pass::backward})
    sum += total_flops(recommendation_kernels(spec, plan, pass));
  // The pairwise products are computed as a full square.
  CHECK(sum >= 512 * flops_per_sample(spec));
  CHECK(sum <= 512 * flops_per_sample(spec) * 1.1);
}

}  // namespace
}  // namespace weft::workload
