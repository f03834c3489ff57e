// GPUs: what a data sheet says, and the three calibrated scalars per precision.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/text.hpp"

namespace weft::workload {

// Of the matrix products in the layers. Attention's core, vocabulary head and everything
// element-wise stay in bf16 with fp8, as in NVIDIA's recipes.
enum class Precision : std::uint8_t { bf16, fp8 };

// When the kernel libraries are from. FP8 rows are all of 2025.
enum class Software : std::uint8_t { of_2024, of_2025 };

// The only fitted numbers of the compute model; docs/training-model.md says from which rows, and
// why the ranges are what they are.
struct Calibration {
  double gemm = 0;        // share of dense peak that a large GEMM reaches, 0.5 .. 0.8 where fitted
  double attention = 0;   // share of bf16 peak of causal attention's forward core, 0.5 .. 0.65
  double tp_overlap = 0;  // share of tensor-parallel communication that GEMMs hide, 0.3 .. 0.9
  // Of grouped products of experts, relative to `gemm`: one product for all experts of a rank,
  // whose rows are few and unequal.
  double grouped = 1;
  // Not fitted: seconds of compute lost per second of communication beside it, for the SMs that
  // its kernels hold (8 of 132; NCCL takes 1 to 16 for a link of 400 Gbps).
  static constexpr double interference = 0.06;
};

// Seconds that a host needs to launch one layer of experts for one micro-batch, forward and
// backward; fitted to published rows of mixtures, docs/training-model.md.
struct HostTimes {
  double alltoall_s = 0.013, flex_s = 0.0082;  // dispatchers: plain; DeepEP and HybridEP
  double graphs_s = 0.0068;                    // with the router and its preparations recorded
  double recompute_s = 0.0006;                 // more for each module that is computed again
  double fp8_expert_s = 0.00027;  // more for each expert of a rank: its own quantising and padding
  // Where exchanges overlap, another micro-batch's work fills gaps: launches cost 1 - this share of
  // overlap.ep.
  double overlap_share = 0.8;
};

struct GpuSpec {
  std::string name;
  double bf16_flops = 0, fp8_flops = 0;  // dense peak per second; fp8 0: not available
  double memory_bytes_per_s = 0;
  double memory_bytes = 0;
  std::uint32_t multiprocessors = 0;
  Calibration bf16, bf16_of_2025, fp8;
  HostTimes host = {};

  double peak_flops(Precision precision) const {
    return precision == Precision::fp8 ? fp8_flops : bf16_flops;
  }
  const Calibration& calibration(Precision precision, Software software) const {
    if (precision == Precision::fp8) return fp8;
    return software == Software::of_2025 ? bf16_of_2025 : bf16;
  }
};

// "a100", "h100", "h200", "b200", "gb200", "b300", "gb300", "mi300x".
std::vector<std::string> gpu_names();
// Fails: Errc::unknown with the nearest name.
Result<GpuSpec> gpu_by_name(const Token& name);

}  // namespace weft::workload
