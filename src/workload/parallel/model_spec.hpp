// What is trained: the shape of a transformer or of a recommendation model.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/config.hpp"

namespace weft::workload {

// A decoder-only transformer. Sizes are elements.
struct TransformerSpec {
  std::string name;
  std::uint32_t layers = 0, hidden = 0, ffn = 0, heads = 0, kv_heads = 0, head_size = 0;
  std::uint32_t vocabulary = 0;
  std::uint32_t sequence = 0;  // tokens it is usually trained with, where a plan does not say
  enum class Ffn : std::uint8_t { plain, gated } kind = Ffn::plain;  // 2 or 3 matrices (SwiGLU)
  bool tied_embeddings = false;
  // Multi-head latent attention (DeepSeek): ranks of the compressed query and key-value; 0: none.
  // Then a head's query and key have head_size + rope_size elements, its value has value_size.
  std::uint32_t query_rank = 0, kv_rank = 0, rope_size = 0, value_size = 0;
  // Mixture of experts; experts = 0: dense. Shared experts are as wide as the others.
  std::uint32_t experts = 0, experts_per_token = 0, expert_ffn = 0, shared_experts = 0;
  // Experts in equal groups, of which a token may use some only (DeepSeek-V3: 4 of 8).
  std::uint32_t expert_groups = 1, groups_per_token = 1;
  std::uint32_t dense_layers = 0;       // leading layers without experts
  std::uint32_t prediction_layers = 0;  // multi-token prediction (DeepSeek-V3)

  bool latent() const { return kv_rank > 0; }
  bool has_experts(std::uint32_t layer) const { return experts > 0 && layer >= dense_layers; }
  std::uint32_t query_size() const { return head_size + rope_size; }  // of one head
  std::uint32_t head_value_size() const { return latent() ? value_size : head_size; }
  // Matrices of a feed-forward block.
  std::uint32_t ffn_matrices() const { return kind == Ffn::gated ? 3 : 2; }

  // Elements of one layer's attention matrices, of one feed-forward block of the given width.
  double attention_parameters() const;
  double ffn_parameters(std::uint32_t width) const;
  // Of one layer, norms and router included: what all ranks of a data-parallel group hold, and what
  // is spread over expert parallelism.
  double shared_parameters(std::uint32_t layer) const;
  double expert_parameters(std::uint32_t layer) const;
  double embedding_parameters() const;  // of one of the (one or two) embedding matrices

  // Without the layers of multi-token prediction, as published totals count; no biases.
  double parameters() const;         // all
  double active_parameters() const;  // that one token uses
};

// Embedding tables spread over all ranks (AlltoAll both ways) and dense layers that all ranks hold
// (AllReduce), after Naumov et al., "Deep learning recommendation model for personalization and
// recommendation systems", arXiv 1906.00091.
struct RecommendationSpec {
  std::string name;
  std::uint64_t tables = 0, embedding_size = 0;
  std::uint32_t pooled_lookups = 1;  // per table and sample
  std::uint64_t rows_per_table = 1'000'000;
  std::vector<std::uint32_t> bottom, top;  // widths of the dense layers, input first

  // Width of what enters `top`: pairwise products of the tables' vectors and bottom's output.
  std::uint64_t interaction_size() const;
  double dense_parameters() const;
  double embedding_parameters() const;
};

using ModelSpec = std::variant<TransformerSpec, RecommendationSpec>;
const std::string& name_of(const ModelSpec& model);

// FLOPs of training one token, forward and backward (three times the forward). Recomputation is
// never counted. causal: each token attends to half of the sequence on average. full: to all of it,
// as Megatron-LM counted before March 2025. six_n: 6 per active parameter, attention left out.
// causal and full leave out the input embedding, which is a look-up, and count multi-token
// prediction. Units: FLOP per token. From: Narayanan et al., SC 2021, appendix; docs/
// training-model.md has the arithmetic.
enum class FlopConvention : std::uint8_t { causal, full, six_n };
double flops_per_token(const TransformerSpec& spec, std::uint32_t sequence, FlopConvention count);
// Per sample; multiplications of the dense layers and of the pairwise products.
double flops_per_sample(const RecommendationSpec& spec);

// Names of presets: exact published shapes, see docs/training-model.md.
std::vector<std::string> model_names();
// Fails: Errc::unknown with the nearest name.
Result<ModelSpec> model_by_name(const Token& name);

// `model: llama3-405b`, or a map with the shape. A map may start from a preset (`base:`), and says
// `kind: transformer` (default) or `recommendation`.
// Fails: Errc::unknown, Errc::value; all errors at once. Sizes are bounded so that no product
// overflows.
Result<ModelSpec> read_model(const Config& value);

}  // namespace weft::workload
