// Memory of one GPU during a training step.
#pragma once

#include <cstdint>

#include "workload/parallel/model_spec.hpp"
#include "workload/parallel/plan.hpp"

namespace weft::workload {

// Bytes on the fullest GPU.
struct MemoryUse {
  std::uint32_t stage = 0;  // the fullest pipeline stage
  double parameters = 0, gradients = 0, optimizer = 0, activations = 0;
  double total() const { return parameters + gradients + optimizer + activations; }
};

// What the CUDA context, NCCL's buffers and the allocator's holes take of a GPU: plans may use the
// rest.
inline constexpr double memory_reserve_bytes = 4e9;
// Largest model state and activations for which micro_batch: auto takes a size.
inline constexpr double memory_auto_bytes = 72e9;

// Parameters 2 B (bf16; in fp8 two one-byte copies, one transposed), gradients and their FP32 sum
// by plan.gradient_bytes(), Adam 12 B (FP32 copy and two moments), shared out by plan.zero over
// DP CP ranks (experts: over TP CP DP / EP). Activations of the micro-batches that 1F1B, or its
// interleaved form, holds at once; logits of the last stage. The plan's dimensions must divide as
// check_plan wants. Cost: O(layers). From: Korthikanti et al., arXiv 2205.05198, extended by gated
// feed-forward blocks, grouped queries, FlashAttention and experts; docs/training-model.md.
MemoryUse memory_use(const TransformerSpec& spec, const TrainingPlan& plan);
MemoryUse memory_use(const RecommendationSpec& spec, const TrainingPlan& plan);

// Stored by one layer for one micro-batch on one rank.
double activation_bytes(const TransformerSpec& spec, const TrainingPlan& plan, std::uint32_t layer);

// The largest of 4, 2 and 1 with which the plan needs at most memory_auto_bytes, and the batch and
// the pipeline's schedule divide; 1 where none does.
std::uint32_t largest_micro_batch(const TransformerSpec& spec, TrainingPlan plan);

}  // namespace weft::workload
