// Which layers each virtual pipeline stage holds.
#pragma once

#include <cstdint>
#include <vector>

#include "workload/parallel/model_spec.hpp"
#include "workload/parallel/plan.hpp"

namespace weft::workload {

struct ChunkLayers {
  std::uint32_t first = 0, count = 0;
  std::uint32_t prediction = 0;  // layers of multi-token prediction, each with a head of its own
  enum class Ends : std::uint8_t { none, embedding, head, both } ends = Ends::none;
  bool has_embedding() const { return ends == Ends::embedding || ends == Ends::both; }
  bool has_head() const { return ends == Ends::head || ends == Ends::both; }
};

// By stage, then by virtual stage; chunk v of stage s is virtual stage v PP + s. Every virtual
// stage holds ceil(layers / virtual stages) layers, and where that is too many, the last and the
// first have one fewer, then their neighbours: Llama 3 405B has 126 = 128 - 2 layers for this
// reason. At least one layer stays, except in the first and the last when layers = virtual stages -
// 1 or - 2. Layers of multi-token prediction stand alone with the head on the last of several
// virtual stages, as in the recipes for DeepSeek-V3 ("Et|(tt|)*30mL"), where the others then have
// at least one layer each. Empty where the layers do not suffice.
std::vector<ChunkLayers> split_layers(const TransformerSpec& spec, std::uint32_t pp,
                                      std::uint32_t vp);
// As the plan's layout says, where it has one; empty where that is for other virtual stages.
std::vector<ChunkLayers> split_layers(const TransformerSpec& spec, const TrainingPlan& plan);

// Parameters that one rank holds of a chunk: `shared` is spread over TP, `experts` over EP.
struct HeldParameters {
  double shared = 0, experts = 0;
  double all() const { return shared + experts; }
};
HeldParameters held_parameters(const TransformerSpec& spec, const TrainingPlan& plan,
                               const ChunkLayers& chunk);

}  // namespace weft::workload
