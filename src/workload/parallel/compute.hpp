// Kernels of a training step and how long a GPU computes on them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "workload/parallel/gpu.hpp"
#include "workload/parallel/model_spec.hpp"
#include "workload/parallel/plan.hpp"
#include "workload/parallel/stages.hpp"

namespace weft::workload {

enum class Pass : std::uint8_t { forward, backward };

// One kernel, or `count` equal ones in one launch (batched) as experts are.
struct Kernel {
  enum class Kind : std::uint8_t { gemm, attention, memory };
  std::string_view name;
  Kind kind = Kind::memory;
  Precision precision = Precision::bf16;
  double m = 0, n = 0, k = 0;  // gemm: m x k times k x n
  double count = 1;
  bool grouped = false;  // of experts: Calibration::grouped applies
  double flops = 0;      // of all `count`
  double bytes = 0;      // to and from memory
  double sequence = 0;   // attention: keys per query at most
  Pass pass = Pass::forward;
};

// Seconds of one kernel, launch included, with the scalars of the plan's precision and software
// (those products that stay in bf16 under fp8 take them too, on the bf16 peak).
//   gemm       max(flops / (peak gemm quantisation depth), bytes / memory) where quantisation is
//              the share of computed tiles that are used, waves over the SMs included, with the
//              best of a few tile shapes, and depth = k / (k + 128) is the share of the main loop.
//   attention  flops / (peak attention s / (s + 512)), s the tokens of a sequence on one
//              rank; the backward reaches 0.85 of it.
//   memory     bytes / (0.7 x memory bandwidth)
double kernel_seconds(const Kernel& kernel, const GpuSpec& gpu, const Calibration& calibration);

// Kernels of one layer for one micro-batch on one rank, after the split over TP, CP and EP.
// Backward has recomputation in it. Experts are loaded evenly.
std::vector<Kernel> layer_kernels(const TransformerSpec& spec, const TrainingPlan& plan,
                                  std::uint32_t layer, Pass pass);
// Input embedding; output projection with its loss.
std::vector<Kernel> embedding_kernels(const TransformerSpec& spec, const TrainingPlan& plan,
                                      Pass pass);
std::vector<Kernel> head_kernels(const TransformerSpec& spec, const TrainingPlan& plan, Pass pass);
// What joins two hidden states for multi-token prediction, before its layer and head.
std::vector<Kernel> prediction_kernels(const TransformerSpec& spec, const TrainingPlan& plan,
                                       Pass pass);
// Dense layers and look-ups of a recommendation model, for one micro-batch.
std::vector<Kernel> recommendation_kernels(const RecommendationSpec& spec, const TrainingPlan& plan,
                                           Pass pass);

double total_seconds(const std::vector<Kernel>& kernels, const GpuSpec& gpu,
                     const Calibration& calibration);
double total_flops(const std::vector<Kernel>& kernels);

// Everything a chunk computes for one micro-batch.
double chunk_seconds(const TransformerSpec& spec, const TrainingPlan& plan, const GpuSpec& gpu,
                     const ChunkLayers& chunk, Pass pass);

// What the host needs to launch the layers of experts of a chunk for one micro-batch. It cannot run
// ahead of the GPU there, for it must learn how many tokens each expert gets. 0 for dense layers.
double launch_seconds(const TransformerSpec& spec, const TrainingPlan& plan, const GpuSpec& gpu,
                      const ChunkLayers& chunk, Pass pass);

// Adam on `held` parameters of which this rank updates `updated`: gradients are cleared (held),
// read for their norm, and states are read and written (updated).
double optimizer_seconds(double held, double updated, const TrainingPlan& plan, const GpuSpec& gpu);

}  // namespace weft::workload
