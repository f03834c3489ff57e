// Published training speeds on H100, as facts with their citations and conventions.
#pragma once

#include <array>
#include <string_view>

#include "workload/parallel/model_spec.hpp"
#include "workload/parallel/plan.hpp"

namespace weft::test {

using workload::FlopConvention;
using workload::Precision;
using workload::ZeroStage;

// What a row's number is: tokens/s/GPU, or TFLOP/s/GPU in a convention of counting.
enum class Unit : std::uint8_t { tokens, tflops_full, tflops_causal };

enum class Source : std::uint8_t {
  megatron,          // README of NVIDIA/Megatron-LM, H100 table, BF16, 4,096 tokens; full attention
  megatron_scaling,  // the same README's strong-scaling plot of 177B, read to 1 %
  llama3,            // P-39: Grattafiori et al. 2024, table 4; convention unstated, taken as causal
  examples,          // Megatron-LM examples/llama, FP8
  bridge_2509,       // Megatron-Bridge 25.09 performance summary, FP8
  bridge_2511,       // the same, 25.11
};

enum class Use : std::uint8_t { fitted, held_out, reported };  // reported: no bar

struct TrainingRow {
  std::string_view name, model;
  Source source;
  std::uint32_t gpus, tp, cp, pp, vp, ep;
  std::uint64_t batch;
  std::uint32_t sequence;
  std::uint32_t micro_batch;  // 0: not published, the largest of 4, 2 and 1 that fits 72 GB
  double value;
  Unit unit;
  Precision precision;
  Use use;
  ZeroStage zero = ZeroStage::optimizer;
};

using enum Use;
using enum Source;
// Megatron's rows do not say VP: layers / PP where there is a pipeline.
inline constexpr std::array training_rows = std::to_array<TrainingRow>({
    {"Megatron 1.7B", "megatron-1.7b", megatron, 48, 1, 1, 1, 1, 1, 192, 4096, 0, 408.8,
     Unit::tflops_full, Precision::bf16, fitted},
    {"Megatron 7.1B", "megatron-7.1b", megatron, 96, 2, 1, 1, 1, 1, 192, 4096, 0, 465.9,
     Unit::tflops_full, Precision::bf16, held_out},
    {"Megatron 16B", "megatron-16b", megatron, 192, 4, 1, 1, 1, 1, 192, 4096, 0, 489.1,
     Unit::tflops_full, Precision::bf16, held_out},
    {"Megatron 32B", "megatron-32b", megatron, 384, 8, 1, 1, 1, 1, 192, 4096, 0, 459.6,
     Unit::tflops_full, Precision::bf16, fitted},
    {"Megatron 70B", "megatron-70b", megatron, 768, 8, 1, 2, 42, 1, 384, 4096, 0, 419.7,
     Unit::tflops_full, Precision::bf16, held_out},
    {"Megatron 177B", "megatron-177b", megatron, 2304, 8, 1, 6, 16, 1, 1152, 4096, 0, 432.8,
     Unit::tflops_full, Precision::bf16, fitted},
    {"177B on 96", "megatron-177b", megatron_scaling, 96, 8, 1, 6, 16, 1, 1152, 4096, 0, 458,
     Unit::tflops_full, Precision::bf16, held_out},
    {"177B on 144", "megatron-177b", megatron_scaling, 144, 8, 1, 6, 16, 1, 1152, 4096, 0, 458,
     Unit::tflops_full, Precision::bf16, held_out},
    {"177B on 288", "megatron-177b", megatron_scaling, 288, 8, 1, 6, 16, 1, 1152, 4096, 0, 455,
     Unit::tflops_full, Precision::bf16, held_out},
    {"177B on 576", "megatron-177b", megatron_scaling, 576, 8, 1, 6, 16, 1, 1152, 4096, 0, 453,
     Unit::tflops_full, Precision::bf16, held_out},
    {"177B on 1,152", "megatron-177b", megatron_scaling, 1152, 8, 1, 6, 16, 1, 1152, 4096, 0, 446,
     Unit::tflops_full, Precision::bf16, held_out},
    {"177B on 2,304", "megatron-177b", megatron_scaling, 2304, 8, 1, 6, 16, 1, 1152, 4096, 0, 433,
     Unit::tflops_full, Precision::bf16, held_out},
    {"177B on 3,072", "megatron-177b", megatron_scaling, 3072, 8, 1, 6, 16, 1, 1152, 4096, 0, 423,
     Unit::tflops_full, Precision::bf16, held_out},
    {"177B on 4,608", "megatron-177b", megatron_scaling, 4608, 8, 1, 6, 16, 1, 1152, 4096, 0, 412,
     Unit::tflops_full, Precision::bf16, held_out},
    {"Llama 3 405B on 8,192", "llama3-405b", llama3, 8192, 8, 1, 16, 8, 1, 2048, 8192, 1, 430,
     Unit::tflops_causal, Precision::bf16, held_out},
    {"Llama 3 405B on 16,384", "llama3-405b", llama3, 16384, 8, 1, 16, 8, 1, 2048, 8192, 1, 400,
     Unit::tflops_causal, Precision::bf16, held_out},
    {"Llama 3 8B, CP 2", "llama3-8b", examples, 8, 1, 2, 1, 1, 1, 128, 8192, 1, 13812, Unit::tokens,
     Precision::fp8, held_out},
    {"Llama 3 70B", "llama3-70b", examples, 64, 4, 1, 8, 5, 1, 128, 8192, 1, 1621, Unit::tokens,
     Precision::fp8, held_out},
    {"Llama 3 70B", "llama3-70b", bridge_2509, 64, 4, 1, 8, 5, 1, 128, 8192, 1, 1619, Unit::tokens,
     Precision::fp8, held_out},
    {"Llama 3 8B, FSDP", "llama3-8b", bridge_2511, 8, 1, 1, 1, 1, 1, 128, 8192, 1, 14451,
     Unit::tokens, Precision::fp8, fitted, ZeroStage::parameters},
    {"Llama 3 70B", "llama3-70b", bridge_2511, 64, 4, 1, 8, 5, 1, 128, 8192, 1, 1602, Unit::tokens,
     Precision::fp8, fitted},
    {"Llama 3.1 405B", "llama3-405b", bridge_2511, 1024, 8, 2, 8, 8, 1, 512, 8192, 1, 292,
     Unit::tokens, Precision::fp8, fitted},
    {"Qwen3 235B-A22B", "qwen3-235b-a22b", bridge_2511, 256, 2, 1, 8, 4, 32, 2048, 4096, 1, 1575,
     Unit::tokens, Precision::fp8, reported},
    {"DeepSeek-V3", "deepseek-v3", bridge_2509, 1024, 2, 1, 8, 4, 64, 8192, 4096, 1, 1297,
     Unit::tokens, Precision::fp8, reported},
});

}  // namespace weft::test
