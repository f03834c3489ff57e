#include "workload/parallel/compute.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace weft::workload {
namespace {

// Documented constants; none is fitted (docs/training-model.md).
constexpr double launch_s = 5e-6;          // start and drain of one kernel, and the gap before it
constexpr double memory_efficiency = 0.7;  // of the data sheet's bandwidth, element-wise kernels
constexpr double depth_half = 128;         // of k: filling and draining the tensor-core pipeline
constexpr double sequence_half = 512;      // of attention: masked half tiles, short loops
constexpr double attention_backward = 0.85;

// Tile shapes that GEMM libraries choose from; small ones reuse less of what they load.
struct Tile {
  double rows, columns, relative;
};
constexpr std::array<Tile, 4> tiles{{{128, 256, 1}, {256, 128, 1}, {128, 128, 0.9}, {64, 64, 0.6}}};

// Share of the computed tiles' area, over whole waves, that belongs to the result.
double quantisation(const Kernel& gemm, std::uint32_t multiprocessors) {
  double best = 0;
  for (const Tile& tile : tiles) {
    const double used =
        gemm.count * std::ceil(gemm.m / tile.rows) * std::ceil(gemm.n / tile.columns);
    const double waves = std::ceil(used / multiprocessors);
    const double area = waves * multiprocessors * tile.rows * tile.columns;
    best = std::max(best, tile.relative * gemm.count * gemm.m * gemm.n / area);
  }
  return best;
}

double gemm_seconds(const Kernel& kernel, const GpuSpec& gpu, const Calibration& calibration) {
  const double depth = kernel.k / (kernel.k + depth_half);
  const double share = calibration.gemm * (kernel.grouped ? calibration.grouped : 1);
  const double rate =
      gpu.peak_flops(kernel.precision) * share * depth * quantisation(kernel, gpu.multiprocessors);
  return kernel.flops / rate;
}

double attention_seconds(const Kernel& kernel, const GpuSpec& gpu, const Calibration& calibration) {
  const double share = calibration.attention * kernel.sequence / (kernel.sequence + sequence_half);
  const double direction = kernel.pass == Pass::backward ? attention_backward : 1;
  return kernel.flops / (gpu.bf16_flops * share * direction);
}

}  // namespace

double kernel_seconds(const Kernel& kernel, const GpuSpec& gpu, const Calibration& calibration) {
  const double memory = kernel.bytes / (memory_efficiency * gpu.memory_bytes_per_s);
  if (kernel.kind == Kernel::Kind::memory || kernel.flops <= 0) return launch_s + memory;
  const double compute = kernel.kind == Kernel::Kind::gemm
                             ? gemm_seconds(kernel, gpu, calibration)
                             : attention_seconds(kernel, gpu, calibration);
  return launch_s + std::max(compute, memory);
}

double total_seconds(const std::vector<Kernel>& kernels, const GpuSpec& gpu,
                     const Calibration& calibration) {
  double sum = 0;
  for (const Kernel& kernel : kernels) sum += kernel_seconds(kernel, gpu, calibration);
  return sum;
}

double total_flops(const std::vector<Kernel>& kernels) {
  double sum = 0;
  for (const Kernel& kernel : kernels) sum += kernel.flops;
  return sum;
}

double chunk_seconds(const TransformerSpec& spec, const TrainingPlan& plan, const GpuSpec& gpu,
                     const ChunkLayers& chunk, Pass pass) {
  const auto seconds = [&](const std::vector<Kernel>& kernels) {
    return total_seconds(kernels, gpu, gpu.calibration(plan.precision, plan.software));
  };
  double sum = 0;
  for (std::uint32_t i = 0; i < chunk.count; ++i)
    sum += seconds(layer_kernels(spec, plan, chunk.first + i, pass));
  if (chunk.has_embedding()) sum += seconds(embedding_kernels(spec, plan, pass));
  if (chunk.has_head()) sum += seconds(head_kernels(spec, plan, pass));
  for (std::uint32_t i = 0; i < chunk.prediction; ++i)
    sum += seconds(layer_kernels(spec, plan, spec.layers, pass)) +
           seconds(prediction_kernels(spec, plan, pass)) + seconds(head_kernels(spec, plan, pass));
  return sum;
}

double launch_seconds(const TransformerSpec& spec, const TrainingPlan& plan, const GpuSpec& gpu,
                      const ChunkLayers& chunk, Pass pass) {
  double layers = chunk.prediction;
  for (std::uint32_t i = 0; i < chunk.count; ++i)
    layers += spec.has_experts(chunk.first + i) ? 1 : 0;
  if (spec.experts == 0) return 0;
  const HostTimes& host = gpu.host;
  double both = plan.dispatcher == Dispatcher::alltoall ? host.alltoall_s : host.flex_s;
  if (plan.cuda_graphs == CudaGraphs::on) both = host.graphs_s;
  both += host.recompute_s * std::popcount(plan.recompute.modules);
  if (plan.precision == Precision::fp8)
    both += host.fp8_expert_s * static_cast<double>(spec.experts) / plan.ep;
  both *= 1 - host.overlap_share * plan.overlap.ep;
  return layers * both * (pass == Pass::forward ? 1.0 / 3 : 2.0 / 3);
}

double optimizer_seconds(double held, double updated, const TrainingPlan& plan,
                         const GpuSpec& gpu) {
  // Master copy and two moments, each 4 B read and 4 B written; gradient read, parameter written.
  const double update = 24 + plan.gradient_bytes() + 2;
  const double norm = plan.gradient_bytes();
  const double clear = plan.gradient_bytes();
  return 3 * launch_s +
         (held * clear + updated * (norm + update)) / (memory_efficiency * gpu.memory_bytes_per_s);
}

}  // namespace weft::workload
