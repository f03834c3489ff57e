#include "workload/parallel/gpu.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

namespace weft::workload {
namespace {

constexpr double gib = 1024.0 * 1024.0 * 1024.0;

// Least worst error: bf16 of 2024 on Megatron-LM's 1.7B, 32B and 177B, fp8 on Megatron-Bridge's
// Llama 3 8B, 70B and 405B, all on H100. Products of 2025 in bf16 reach the same shares as in fp8.
// Other GPUs take them over but for two: the share of peak that Blackwell's products reach, which
// is the power of the module's (GB300: 1.4 kW; B200 1.0 and GB200 1.2 kW with less of a peak), and
// what its recipes hide of tensor parallelism, both fitted on Bridge's Llama 3 rows.
constexpr Calibration fitted_bf16{.gemm = 0.551, .attention = 0.513, .tp_overlap = 0.90};
// Grouped products: Mixtral 8x22B in both precisions.
constexpr Calibration fitted_fp8{
    .gemm = 0.620, .attention = 0.57, .tp_overlap = 0.45, .grouped = 0.7};
constexpr double b200_gemm = 0.515, gb300_gemm = 0.665, blackwell_tp_overlap = 0.75;

// Dense peaks, bandwidths and sizes: NVIDIA's data sheets (A100 80 GB SXM, H100 SXM, H200 SXM, HGX
// B200, GB200 NVL72 per GPU, HGX B300, GB300 NVL72 per GPU). Sheets give sizes in "GB" of 2^30.
// MI300X: AMD's data sheet. No training row of it is fitted or compared: large products reach what
// AMD measures as most (708 and 1,273 TFLOP/s: rocm.blogs.amd.com, "Measuring Max-Achievable FLOPs,
// part 2"), an upper bound, and the rest is as on H100.
constexpr double mi300x_bf16_gemm = 708 / 1307.4, mi300x_fp8_gemm = 1273 / 2614.9;

GpuSpec mi300x() {
  Calibration bf16 = fitted_bf16, fp8 = fitted_fp8;
  bf16.gemm = mi300x_bf16_gemm;
  fp8.gemm = mi300x_fp8_gemm;
  return {.name = "mi300x",
          .bf16_flops = 1307.4e12,
          .fp8_flops = 2614.9e12,
          .memory_bytes_per_s = 5.3e12,
          .memory_bytes = 192 * gib,
          .multiprocessors = 304,
          .bf16 = bf16,
          .bf16_of_2025 = bf16,
          .fp8 = fp8};
}

std::array<GpuSpec, 8> table() {
  const auto gpu = [](std::string name, double bf16, double fp8, double bandwidth, double size,
                      std::uint32_t multiprocessors, double gemm = 0) {
    Calibration of_2025 = fitted_fp8;
    if (gemm > 0) {
      of_2025.gemm = gemm;
      of_2025.tp_overlap = blackwell_tp_overlap;
    }
    Calibration bf16_of_2025 = of_2025;
    bf16_of_2025.grouped = 1;
    return GpuSpec{.name = std::move(name),
                   .bf16_flops = bf16,
                   .fp8_flops = fp8,
                   .memory_bytes_per_s = bandwidth,
                   .memory_bytes = size * gib,
                   .multiprocessors = multiprocessors,
                   .bf16 = fitted_bf16,
                   .bf16_of_2025 = bf16_of_2025,
                   .fp8 = of_2025};
  };
  return {gpu("a100", 312e12, 0, 2.039e12, 80, 108),
          gpu("h100", 989.4e12, 1978.9e12, 3.35e12, 80, 132),
          gpu("h200", 989.4e12, 1978.9e12, 4.8e12, 141, 132),
          gpu("b200", 2250e12, 4500e12, 7.7e12, 180, 148, b200_gemm),
          gpu("gb200", 2500e12, 5000e12, 8e12, 186, 148, b200_gemm),
          gpu("b300", 2250e12, 4500e12, 8e12, 270, 148, b200_gemm),
          gpu("gb300", 2500e12, 5000e12, 8e12, 278, 148, gb300_gemm),
          mi300x()};
}

}  // namespace

std::vector<std::string> gpu_names() {
  std::vector<std::string> names;
  for (const GpuSpec& gpu : table()) names.push_back(gpu.name);
  return names;
}

Result<GpuSpec> gpu_by_name(const Token& name) {
  for (GpuSpec& gpu : table())
    if (gpu.name == name.text) return std::move(gpu);
  const std::vector<std::string> names = gpu_names();
  return fail(Errc::unknown, name.where,
              fmt::format("unknown GPU {}{}", quote(name.text), did_you_mean(name.text, names)),
              fmt::format("choose one of: {}", fmt::join(names, ", ")));
}

}  // namespace weft::workload
