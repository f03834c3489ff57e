#include "workload/parallel/stages.hpp"

namespace weft::workload {

namespace {

// By virtual stage.
std::vector<StageContents> balanced(const TransformerSpec& spec, std::uint32_t n) {
  const bool apart = spec.prediction_layers > 0 && n > 1 && n - 1 <= spec.layers;
  const std::uint32_t parts = apart ? n - 1 : n;
  const std::uint32_t most = (spec.layers + parts - 1) / parts;
  std::vector<StageContents> stages(n);
  for (std::uint32_t part = 0; part < parts; ++part) stages[part].layers = most;
  // From the two ends inwards: last, first, last but one, second, ...; the last is no end where the
  // head stands apart.
  const std::uint32_t surplus = most * parts - spec.layers;
  for (std::uint32_t i = 0; i < surplus; ++i) {
    const bool from_first = (i % 2 == 0) == apart;
    --stages[from_first ? (i + (apart ? 1 : 0)) / 2 : parts - 1 - i / 2].layers;
  }
  stages.front().embedding = true;
  stages.back().head = true;
  stages.back().prediction = spec.prediction_layers;
  return stages;
}

std::vector<ChunkLayers> chunks_of(const std::vector<StageContents>& stages, std::uint32_t pp,
                                   std::uint32_t vp) {
  using Ends = ChunkLayers::Ends;
  std::vector<ChunkLayers> chunks(stages.size());
  std::uint32_t next = 0;
  for (std::uint32_t part = 0; part < stages.size(); ++part) {
    const StageContents& stage = stages[part];
    ChunkLayers& chunk = chunks[std::size_t{part % pp} * vp + part / pp];
    chunk = {.first = next, .count = stage.layers, .prediction = stage.prediction};
    if (stage.embedding)
      chunk.ends = stage.head ? Ends::both : Ends::embedding;
    else if (stage.head)
      chunk.ends = Ends::head;
    next += stage.layers;
  }
  return chunks;
}

}  // namespace

std::vector<ChunkLayers> split_layers(const TransformerSpec& spec, std::uint32_t pp,
                                      std::uint32_t vp) {
  const std::uint64_t parts = std::uint64_t{pp} * vp;
  if (parts == 0 || parts > std::uint64_t{spec.layers} + 2) return {};
  return chunks_of(balanced(spec, static_cast<std::uint32_t>(parts)), pp, vp);
}

std::vector<ChunkLayers> split_layers(const TransformerSpec& spec, const TrainingPlan& plan) {
  if (plan.layout.empty()) return split_layers(spec, plan.pp, plan.vp);
  if (plan.layout.size() != std::uint64_t{plan.pp} * plan.vp) return {};
  return chunks_of(plan.layout, plan.pp, plan.vp);
}

HeldParameters held_parameters(const TransformerSpec& spec, const TrainingPlan& plan,
                               const ChunkLayers& chunk) {
  HeldParameters held;
  const auto add_layer = [&](std::uint32_t layer) {
    held.shared += spec.shared_parameters(layer) / plan.tp;
    held.experts += spec.expert_parameters(layer) / plan.ep;
  };
  for (std::uint32_t i = 0; i < chunk.count; ++i) add_layer(chunk.first + i);
  for (std::uint32_t i = 0; i < chunk.prediction; ++i) {
    add_layer(spec.layers);
    held.shared += 2.0 * spec.hidden * spec.hidden / plan.tp;
  }
  // One stage that has both ends of a model with tied embeddings holds them once.
  const int matrices = chunk.ends == ChunkLayers::Ends::both && !spec.tied_embeddings ? 2 : 1;
  if (chunk.ends != ChunkLayers::Ends::none)
    held.shared += matrices * spec.embedding_parameters() / plan.tp;
  return held;
}

}  // namespace weft::workload
