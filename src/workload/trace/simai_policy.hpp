// In which order a policy of SimAI's text format runs the passes of its layers.
#pragma once

#include <cstdint>

#include "workload/trace/simai_file.hpp"
#include "workload/trace/simai_grid.hpp"

namespace weft::workload {

struct SimaiRules {
  // Forward of all layers comes first; then, from the last layer to the first, the gradients.
  enum class Order : std::uint8_t {
    input_gradient_first,
    weight_gradient_first,
    forward_only,
    layer_by_layer,  // all passes of a layer, then the next
  } order = Order::input_gradient_first;
  // Whether a layer's weight gradient waits for the exchange of its input gradient.
  enum class InputGradient : std::uint8_t {
    before_weight_gradient,
    beside_weight_gradient
  } input_gradient = InputGradient::before_weight_gradient;
  // Groups of collectives without suffix.
  SimaiGroup model_group = SimaiGroup::tp;  // forward and input gradient
  SimaiGroup data_group = SimaiGroup::dp;   // weight gradient
  // Recommendation models: the embeddings' all-to-all runs beside the layers up to
  // DLRM_LAST_BOTTOM_LAYER, and backwards beside those below it.
  bool embedding_exchange = false;
  // All ranks are one group: nothing but data-parallel, or nothing but model-parallel.
  enum class Ranks : std::uint8_t { hybrid, all_data, all_model } ranks = Ranks::hybrid;
};

SimaiRules simai_rules(SimaiPolicy policy);

}  // namespace weft::workload
