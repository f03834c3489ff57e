#include "workload/parallel/stages.hpp"

namespace weft::workload {

std::vector<ChunkLayers> split_layers(const TransformerSpec& spec, std::uint32_t pp,
                                      std::uint32_t vp) {
  const std::uint64_t parts = std::uint64_t{pp} * vp;
  if (parts == 0 || parts > std::uint64_t{spec.layers} + 2) return {};
  const auto n = static_cast<std::uint32_t>(parts);
  const std::uint32_t most = (spec.layers + n - 1) / n;
  std::vector<std::uint32_t> sizes(n, most);
  // From the two ends inwards: last, first, last but one, second, ...
  const std::uint32_t surplus = most * n - spec.layers;
  for (std::uint32_t i = 0; i < surplus; ++i) --sizes[i % 2 == 0 ? n - 1 - i / 2 : i / 2];

  std::vector<ChunkLayers> chunks(n);
  std::uint32_t next = 0;
  for (std::uint32_t part = 0; part < n; ++part) {
    const std::uint32_t stage = part % pp;
    const std::uint32_t v = part / pp;
    chunks[std::size_t{stage} * vp + v] = {.first = next, .count = sizes[part]};
    next += sizes[part];
  }
  using Ends = ChunkLayers::Ends;
  chunks.front().ends = n == 1 ? Ends::both : Ends::embedding;
  if (n > 1) chunks.back().ends = Ends::head;
  chunks.back().prediction = spec.prediction_layers;
  return chunks;
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
