// Published training speeds, as facts with their citations and conventions.
#pragma once

#include <array>
#include <string_view>

namespace weft::test {

// What a row's number is: tokens/s/GPU, TFLOP/s/GPU in a convention of counting, or seconds a step.
enum class Unit : std::uint8_t { tokens, tflops_full, tflops_causal, seconds };

enum class Source : std::uint8_t {
  megatron,          // README of NVIDIA/Megatron-LM, H100 table, BF16, 4,096 tokens; full attention
  megatron_scaling,  // the same README's strong-scaling plot of 177B, read to 1 %
  llama3,            // P-39: Grattafiori et al. 2024, table 4; convention unstated, taken as causal
  examples,          // Megatron-LM examples/llama, FP8
  // NVIDIA-NeMo/Megatron-Bridge, docs/performance-summary-archive.md, by container. What the tables
  // do not say (dispatcher, overlap, recomputation, graphs, layout) is in the repository's
  // performance recipes. Experts are loaded evenly, no token is dropped.
  bridge_2509,
  bridge_2511,
  bridge_2602,
  bridge_2604,
  bridge_2606,
  bridge_skills,  // the same repository, skills/: one change at a time (overlap, recomputation)
  model_zoo,      // yanring/Megatron-MoE-ModelZoo, best_practice/; routing forced to balance
};

enum class Use : std::uint8_t { fitted, held_out, reported };  // reported: no bar

struct TrainingRow {
  std::string_view name, model;
  Source source;
  std::string_view gpu;
  std::uint32_t gpus, tp, cp, pp, vp, ep;
  std::uint64_t batch;
  std::uint32_t sequence;
  std::uint32_t micro_batch;  // 0: not published, the largest of 4, 2 and 1 that fits 72 GB
  double value;
  Unit unit;
  std::string_view precision;
  Use use;
  std::string_view more = {};  // other keys of the job
};

using enum Use;
using enum Source;
// Megatron's rows do not say VP: layers / PP where there is a pipeline.
inline constexpr std::array training_rows = std::to_array<TrainingRow>({
    {"Megatron 1.7B", "megatron-1.7b", megatron, "h100", 48, 1, 1, 1, 1, 1, 192, 4096, 0, 408.8,
     Unit::tflops_full, "bf16", fitted},
    {"Megatron 7.1B", "megatron-7.1b", megatron, "h100", 96, 2, 1, 1, 1, 1, 192, 4096, 0, 465.9,
     Unit::tflops_full, "bf16", held_out},
    {"Megatron 16B", "megatron-16b", megatron, "h100", 192, 4, 1, 1, 1, 1, 192, 4096, 0, 489.1,
     Unit::tflops_full, "bf16", held_out},
    {"Megatron 32B", "megatron-32b", megatron, "h100", 384, 8, 1, 1, 1, 1, 192, 4096, 0, 459.6,
     Unit::tflops_full, "bf16", fitted},
    {"Megatron 70B", "megatron-70b", megatron, "h100", 768, 8, 1, 2, 42, 1, 384, 4096, 0, 419.7,
     Unit::tflops_full, "bf16", held_out},
    {"Megatron 177B", "megatron-177b", megatron, "h100", 2304, 8, 1, 6, 16, 1, 1152, 4096, 0, 432.8,
     Unit::tflops_full, "bf16", fitted},
    {"177B on 96", "megatron-177b", megatron_scaling, "h100", 96, 8, 1, 6, 16, 1, 1152, 4096, 0,
     458, Unit::tflops_full, "bf16", held_out},
    {"177B on 144", "megatron-177b", megatron_scaling, "h100", 144, 8, 1, 6, 16, 1, 1152, 4096, 0,
     458, Unit::tflops_full, "bf16", held_out},
    {"177B on 288", "megatron-177b", megatron_scaling, "h100", 288, 8, 1, 6, 16, 1, 1152, 4096, 0,
     455, Unit::tflops_full, "bf16", held_out},
    {"177B on 576", "megatron-177b", megatron_scaling, "h100", 576, 8, 1, 6, 16, 1, 1152, 4096, 0,
     453, Unit::tflops_full, "bf16", held_out},
    {"177B on 1,152", "megatron-177b", megatron_scaling, "h100", 1152, 8, 1, 6, 16, 1, 1152, 4096,
     0, 446, Unit::tflops_full, "bf16", held_out},
    {"177B on 2,304", "megatron-177b", megatron_scaling, "h100", 2304, 8, 1, 6, 16, 1, 1152, 4096,
     0, 433, Unit::tflops_full, "bf16", held_out},
    {"177B on 3,072", "megatron-177b", megatron_scaling, "h100", 3072, 8, 1, 6, 16, 1, 1152, 4096,
     0, 423, Unit::tflops_full, "bf16", held_out},
    {"177B on 4,608", "megatron-177b", megatron_scaling, "h100", 4608, 8, 1, 6, 16, 1, 1152, 4096,
     0, 412, Unit::tflops_full, "bf16", held_out},
    {"Llama 3 405B on 8,192", "llama3-405b", llama3, "h100", 8192, 8, 1, 16, 8, 1, 2048, 8192, 1,
     430, Unit::tflops_causal, "bf16", held_out},
    {"Llama 3 405B on 16,384", "llama3-405b", llama3, "h100", 16384, 8, 1, 16, 8, 1, 2048, 8192, 1,
     400, Unit::tflops_causal, "bf16", held_out},
    {"Llama 3 8B, CP 2", "llama3-8b", examples, "h100", 8, 1, 2, 1, 1, 1, 128, 8192, 1, 13812,
     Unit::tokens, "fp8", fitted},
    {"Llama 3 70B", "llama3-70b", examples, "h100", 64, 4, 1, 8, 5, 1, 128, 8192, 1, 1621,
     Unit::tokens, "fp8", fitted},
    {"Llama 3 70B", "llama3-70b", bridge_2509, "h100", 64, 4, 1, 8, 5, 1, 128, 8192, 1, 1619,
     Unit::tokens, "fp8", fitted},
    {"Llama 3 8B, FSDP", "llama3-8b", bridge_2511, "h100", 8, 1, 1, 1, 1, 1, 128, 8192, 1, 14451,
     Unit::tokens, "fp8", fitted, "zero: 3"},
    {"Llama 3 70B", "llama3-70b", bridge_2511, "h100", 64, 4, 1, 8, 5, 1, 128, 8192, 1, 1602,
     Unit::tokens, "fp8", fitted},
    {"Llama 3.1 405B", "llama3-405b", bridge_2511, "h100", 1024, 8, 2, 8, 8, 1, 512, 8192, 1, 292,
     Unit::tokens, "fp8", fitted},
    {"Llama 3 8B, FSDP", "llama3-8b", bridge_2509, "h100", 8, 1, 1, 1, 1, 1, 128, 8192, 1, 14079,
     Unit::tokens, "fp8", fitted, "zero: 3"},
    {"Llama 3.1 405B", "llama3-405b", bridge_2509, "h100", 1024, 8, 2, 8, 8, 1, 512, 8192, 1, 302,
     Unit::tokens, "fp8", fitted},
    {"Llama 3 70B", "llama3-70b", bridge_2602, "h100", 64, 4, 1, 8, 5, 1, 256, 8192, 1, 1621,
     Unit::tokens, "fp8", fitted},
    {"Llama 3 70B", "llama3-70b", bridge_2604, "h100", 64, 4, 1, 8, 5, 1, 256, 8192, 1, 1664,
     Unit::tokens, "fp8", fitted},
    {"Llama 3.1 405B", "llama3-405b", bridge_2602, "h100", 1024, 8, 2, 8, 8, 1, 1536, 8192, 1, 311,
     Unit::tokens, "fp8", fitted},
    {"Llama 3.1 405B", "llama3-405b", bridge_2604, "h100", 1024, 8, 2, 8, 8, 1, 1536, 8192, 1, 328,
     Unit::tokens, "fp8", fitted},
    {"Llama 3 70B, SFT", "llama3-70b", bridge_2606, "h100", 32, 4, 1, 4, 5, 1, 32, 4096, 1, 1638,
     Unit::tokens, "fp8", fitted},
    {"Llama 3 8B", "llama3-8b", bridge_2509, "b200", 8, 1, 1, 1, 1, 1, 128, 8192, 2, 29994,
     Unit::tokens, "fp8", fitted},
    {"Llama 3 8B", "llama3-8b", bridge_2511, "b200", 8, 1, 1, 1, 1, 1, 128, 8192, 2, 30624,
     Unit::tokens, "fp8", fitted},
    {"Llama 3.1 405B", "llama3-405b", bridge_2509, "b200", 128, 4, 2, 8, 8, 1, 64, 8192, 1, 664,
     Unit::tokens, "fp8", fitted},
    {"Llama 3.1 405B", "llama3-405b", bridge_2511, "b200", 128, 4, 2, 8, 8, 1, 64, 8192, 1, 661,
     Unit::tokens, "fp8", fitted},
    {"Llama 3 8B", "llama3-8b", bridge_2511, "gb200", 8, 1, 1, 1, 1, 1, 128, 8192, 2, 31508,
     Unit::tokens, "fp8", fitted},
    {"Llama 3 8B", "llama3-8b", bridge_2511, "gb300", 8, 1, 1, 1, 1, 1, 128, 8192, 2, 37556,
     Unit::tokens, "fp8", fitted},
    {"Llama 3.1 405B", "llama3-405b", bridge_2511, "gb200", 256, 4, 1, 16, 4, 1, 1536, 8192, 1, 813,
     Unit::tokens, "fp8", fitted},
    {"Llama 3.1 405B", "llama3-405b", bridge_2511, "gb300", 256, 2, 2, 8, 4, 1, 1536, 8192, 1, 999,
     Unit::tokens, "fp8", fitted},
    {"Llama 3.1 405B", "llama3-405b", bridge_2604, "gb300", 256, 4, 1, 8, 4, 1, 1536, 8192, 1, 1024,
     Unit::tokens, "fp8", fitted},
    {"Llama 3.1 405B", "llama3-405b", bridge_2604, "gb200", 256, 4, 1, 16, 4, 1, 1536, 8192, 1, 864,
     Unit::tokens, "fp8", reported},
    {"Llama 3 70B, SFT", "llama3-70b", bridge_2606, "gb200", 32, 1, 1, 8, 10, 1, 32, 4096, 1, 3864,
     Unit::tokens, "fp8", reported},
    {"Llama 3 70B, SFT", "llama3-70b", bridge_2606, "gb300", 32, 1, 1, 2, 20, 1, 32, 4096, 1, 4819,
     Unit::tokens, "fp8", reported},
    {"Qwen3 235B", "qwen3-235b-a22b", bridge_2511, "h100", 256, 2, 1, 8, 4, 32, 2048, 4096, 1, 1575,
     Unit::tokens, "fp8", fitted, "recompute: none, overlap: {ep: on}"},
    {"Qwen3 235B", "qwen3-235b-a22b", bridge_2604, "h100", 256, 2, 1, 8, 4, 32, 8192, 4096, 1, 1712,
     Unit::tokens, "fp8", fitted, "recompute: none, overlap: {ep: on}"},
    {"DeepSeek-V3", "deepseek-v3", bridge_2509, "h100", 1024, 2, 1, 8, 4, 64, 8192, 4096, 1, 1297,
     Unit::tokens, "fp8", fitted,
     "dispatcher: deepep, recompute: [mla_up_proj, mlp], overlap: {ep: on, dp_reduce: false}, "
     "layout: 'Et|(tt|)*30mL'"},
    {"Qwen3 235B", "qwen3-235b-a22b", model_zoo, "h100", 256, 2, 1, 8, 4, 32, 2048, 4096, 1, 19.7,
     Unit::seconds, "bf16", fitted, "dispatcher: deepep, recompute: [layernorm, act]"},
    {"Qwen3 235B, overlap", "qwen3-235b-a22b", model_zoo, "h100", 256, 2, 1, 8, 4, 32, 2048, 4096,
     1, 17.6, Unit::seconds, "bf16", fitted,
     "dispatcher: deepep, recompute: [layernorm, act], overlap: {ep: on}"},
    {"Qwen3 235B, overlap, graphs", "qwen3-235b-a22b", model_zoo, "h100", 256, 2, 1, 8, 4, 32, 2048,
     4096, 1, 320, Unit::tflops_causal, "bf16", fitted,
     "dispatcher: deepep, recompute: [layernorm, moe_act], overlap: {ep: on}, cuda_graphs: true"},
    {"Qwen3 235B, EP in a host", "qwen3-235b-a22b", model_zoo, "h100", 256, 2, 1, 32, 3, 8, 2048,
     4096, 1, 24.2, Unit::seconds, "bf16", fitted, "recompute: [layernorm, act]"},
    {"Qwen3 235B, TP 4", "qwen3-235b-a22b", model_zoo, "h100", 256, 4, 1, 8, 4, 8, 2048, 4096, 1,
     29.0, Unit::seconds, "bf16", fitted, "dispatcher: deepep, recompute: none"},
    {"Qwen3 235B, 16k", "qwen3-235b-a22b", model_zoo, "h100", 256, 4, 1, 8, 4, 8, 256, 16384, 1,
     295, Unit::tflops_causal, "bf16", fitted, "dispatcher: deepep, recompute: [layernorm, moe]"},
    {"Qwen3 235B, 32k", "qwen3-235b-a22b", model_zoo, "h100", 256, 4, 2, 8, 4, 8, 256, 32768, 1,
     335, Unit::tflops_causal, "bf16", fitted, "dispatcher: deepep, recompute: [layernorm, moe]"},
    {"Qwen3 235B, 64k", "qwen3-235b-a22b", model_zoo, "h100", 256, 4, 4, 8, 4, 8, 256, 65536, 1,
     368, Unit::tflops_causal, "bf16", fitted, "dispatcher: deepep, recompute: [layernorm, moe]"},
    {"Qwen3 235B, 128k", "qwen3-235b-a22b", model_zoo, "h100", 256, 4, 8, 8, 4, 8, 256, 131072, 1,
     389, Unit::tflops_causal, "bf16", fitted, "dispatcher: deepep, recompute: [layernorm, moe]"},
    {"Qwen3 30B, HybridEP", "qwen3-30b-a3b", bridge_skills, "h100", 16, 1, 1, 1, 1, 16, 1024, 4096,
     1, 24.714, Unit::seconds, "bf16", fitted,
     "dispatcher: hybridep, recompute: none, cuda_graphs: true"},
    {"Qwen3 30B, HybridEP, overlap", "qwen3-30b-a3b", bridge_skills, "h100", 16, 1, 1, 1, 1, 16,
     1024, 4096, 1, 20.992, Unit::seconds, "bf16", fitted,
     "dispatcher: hybridep, recompute: none, cuda_graphs: true, overlap: {ep: on}"},
    {"Qwen3 30B, all-to-all", "qwen3-30b-a3b", bridge_skills, "h100", 16, 1, 1, 1, 1, 16, 1024,
     4096, 1, 41.25, Unit::seconds, "bf16", fitted, "recompute: none"},
    {"Qwen3 30B, all-to-all, overlap", "qwen3-30b-a3b", bridge_skills, "h100", 16, 1, 1, 1, 1, 16,
     1024, 4096, 1, 31.31, Unit::seconds, "bf16", fitted, "recompute: none, overlap: {ep: on}"},
    {"Qwen3 30B", "qwen3-30b-a3b", bridge_2606, "h100", 16, 1, 1, 1, 1, 16, 1024, 4096, 1, 8826,
     Unit::tokens, "fp8", fitted, "dispatcher: hybridep, recompute: none, cuda_graphs: true"},
    {"Qwen3 30B", "qwen3-30b-a3b", bridge_2604, "h100", 16, 1, 1, 1, 1, 16, 1024, 4096, 1, 8960,
     Unit::tokens, "fp8", fitted, "dispatcher: hybridep, recompute: none, cuda_graphs: true"},
    {"GPT-OSS 120B", "gpt-oss-120b", bridge_2604, "h100", 64, 1, 1, 4, 1, 8, 1280, 4096, 1, 5824,
     Unit::tokens, "bf16", fitted, "recompute: [layernorm, moe_act]"},
    {"GPT-OSS 120B", "gpt-oss-120b", bridge_2602, "h100", 64, 1, 1, 4, 1, 8, 1280, 4096, 1, 5993,
     Unit::tokens, "bf16", fitted, "recompute: [layernorm, moe_act]"},
    {"Mixtral 8x22B", "mixtral-8x22b", model_zoo, "h100", 128, 2, 1, 8, 7, 8, 256, 4096, 1, 465,
     Unit::tflops_causal, "bf16", fitted, "recompute: none"},
    {"Mixtral 8x22B", "mixtral-8x22b", model_zoo, "h100", 128, 2, 1, 8, 7, 8, 256, 4096, 1, 560,
     Unit::tflops_causal, "fp8", fitted, "recompute: none"},
    {"Moonlight 16B", "moonlight-16b-a3b", bridge_skills, "h100", 8, 2, 1, 1, 1, 8, 4, 4096, 1,
     0.45718, Unit::seconds, "bf16", fitted, "recompute: none"},
    {"Moonlight 16B, core_attn", "moonlight-16b-a3b", bridge_skills, "h100", 8, 2, 1, 1, 1, 8, 4,
     4096, 1, 0.4748, Unit::seconds, "bf16", fitted, "recompute: [core_attn]"},
    {"Moonlight 16B, mla_up_proj", "moonlight-16b-a3b", bridge_skills, "h100", 8, 2, 1, 1, 1, 8, 4,
     4096, 1, 0.48089, Unit::seconds, "bf16", fitted, "recompute: [mla_up_proj]"},
    {"Moonlight 16B, mla_up_proj, mlp", "moonlight-16b-a3b", bridge_skills, "h100", 8, 2, 1, 1, 1,
     8, 4, 4096, 1, 0.49673, Unit::seconds, "bf16", fitted, "recompute: [mla_up_proj, mlp]"},
    {"Moonlight 16B, moe_act", "moonlight-16b-a3b", bridge_skills, "h100", 8, 2, 1, 1, 1, 8, 4,
     4096, 1, 0.46626, Unit::seconds, "bf16", fitted, "recompute: [moe_act]"},
    {"Moonlight 16B, layernorm, moe_act", "moonlight-16b-a3b", bridge_skills, "h100", 8, 2, 1, 1, 1,
     8, 4, 4096, 1, 0.50653, Unit::seconds, "bf16", fitted, "recompute: [layernorm, moe_act]"},
    {"Qwen3 30B, HybridEP, tuned", "qwen3-30b-a3b", bridge_skills, "h100", 16, 1, 1, 1, 1, 16, 1024,
     4096, 1, 20.147, Unit::seconds, "bf16", held_out,
     "dispatcher: hybridep, recompute: none, cuda_graphs: true, overlap: {ep: on}"},
    {"Qwen3 235B", "qwen3-235b-a22b", bridge_2602, "h100", 256, 2, 1, 8, 4, 32, 8192, 4096, 1, 1633,
     Unit::tokens, "fp8", held_out, "recompute: none, overlap: {ep: on}"},
    {"Qwen3 235B, FSDP", "qwen3-235b-a22b", model_zoo, "h100", 256, 2, 1, 1, 1, 8, 2048, 4096, 4,
     17.6, Unit::seconds, "bf16", held_out, "zero: 3, dispatcher: deepep, recompute: full"},
    {"Qwen3 30B", "qwen3-30b-a3b", bridge_2604, "b200", 8, 1, 1, 1, 1, 8, 512, 4096, 4, 27136,
     Unit::tokens, "fp8", reported, "dispatcher: hybridep, recompute: none, cuda_graphs: true"},
    {"Qwen3 235B", "qwen3-235b-a22b", bridge_2604, "b200", 256, 1, 1, 8, 1, 8, 8192, 4096, 1, 3776,
     Unit::tokens, "fp8", reported, "dispatcher: hybridep, recompute: none"},
    {"DeepSeek-V3", "deepseek-v3", bridge_2604, "b200", 256, 1, 1, 16, 1, 8, 4096, 4096, 1, 2815,
     Unit::tokens, "fp8", reported, "recompute: [mla_up_proj]"},
    {"Qwen3 30B", "qwen3-30b-a3b", bridge_2606, "b300", 8, 1, 1, 1, 1, 8, 512, 4096, 8, 40769,
     Unit::tokens, "fp8", reported, "dispatcher: hybridep, recompute: none, cuda_graphs: true"},
});

}  // namespace weft::test
