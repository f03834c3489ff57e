// The order in which a pipeline stage works: 1F1B and its interleaved form.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.hpp"

namespace weft::workload {

struct PipelineShape {
  std::uint32_t stages = 1;
  std::uint32_t virtual_stages = 1;  // per stage; 1: plain 1F1B
  std::uint32_t microbatches = 1;
};

// Units of all stages together that a step may have.
inline constexpr std::uint64_t pipeline_units_max = 4'000'000;

// Forward or backward of one chunk (virtual stage `chunk` of this stage) for one micro-batch.
struct Unit {
  enum class Pass : std::uint8_t { forward, backward };
  Pass pass;
  std::uint32_t chunk;
  std::uint32_t microbatch;
  friend bool operator==(const Unit&, const Unit&) = default;
};

// Every unit of `stage` once, in the order in which the stage runs them. Units of one chunk and
// pass come in the order of micro-batches. All stages together never wait in a circle.
// Interleaving takes micro-batches in groups, each group through all chunks in turn. Groups are of
// `stages` where that divides the micro-batches. Otherwise we make as many groups of `stages` or
// more as there can be, equal but for one micro-batch, larger ones first.
// A single stage takes one micro-batch after another through all chunks and back.
// Fails: Errc::value on a size of 0, or a stage that does not exist; Errc::infeasible beyond
// pipeline_units_max. Cost: O(virtual stages * microbatches).
// From: Narayanan et al., "Efficient large-scale language model training on GPU clusters using
// Megatron-LM", SC 2021, 2.2. There the stages divide the micro-batches; uneven groups are ours.
Result<std::vector<Unit>> pipeline_order(const PipelineShape& shape, std::uint32_t stage);

// Idle time over working time of an ideal step: equal chunks, free communication. (PP - 1) / (V *
// M) without interleaving or with M >= PP. Interleaved micro-batches that are fewer than the stages
// leave each stage idle between its chunks as well: (PP - 1 + (V - 1) (PP - M)) / (V * M).
double pipeline_bubble(const PipelineShape& shape);

}  // namespace weft::workload
