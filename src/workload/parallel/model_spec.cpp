#include "workload/parallel/model_spec.hpp"

#include <array>

namespace weft::workload {
namespace {

using Ffn = TransformerSpec::Ffn;

// Plain multi-head attention and a plain feed-forward block of 4 h, as GPT-2 and GPT-3.
TransformerSpec gpt(std::string name, std::uint32_t layers, std::uint32_t hidden,
                    std::uint32_t heads) {
  return {.name = std::move(name),
          .layers = layers,
          .hidden = hidden,
          .ffn = 4 * hidden,
          .heads = heads,
          .kv_heads = heads,
          .head_size = hidden / heads,
          .vocabulary = 131'072,
          .sequence = 4096};
}

struct LlamaShape {
  std::uint32_t layers, hidden, ffn, heads, kv_heads;
};

TransformerSpec llama(std::string name, const LlamaShape& shape, std::uint32_t vocabulary,
                      std::uint32_t sequence) {
  return {.name = std::move(name),
          .layers = shape.layers,
          .hidden = shape.hidden,
          .ffn = shape.ffn,
          .heads = shape.heads,
          .kv_heads = shape.kv_heads,
          .head_size = 128,
          .vocabulary = vocabulary,
          .sequence = sequence,
          .kind = Ffn::gated};
}

TransformerSpec gpt3() {
  TransformerSpec spec = gpt("gpt3-175b", 96, 12'288, 96);
  spec.vocabulary = 50'257;
  spec.sequence = 2048;
  spec.tied_embeddings = true;
  return spec;
}

struct MixtureShape {
  std::uint32_t experts, per_token, width;
};

TransformerSpec mixture(TransformerSpec spec, const MixtureShape& shape) {
  spec.experts = shape.experts;
  spec.experts_per_token = shape.per_token;
  spec.expert_ffn = shape.width;
  return spec;
}

TransformerSpec qwen3() {
  return mixture(llama("qwen3-235b-a22b", {94, 4096, 12'288, 64, 4}, 151'936, 4096),
                 {128, 8, 1536});
}

// Attention over a window of 128 tokens in every other layer is not modelled.
TransformerSpec gpt_oss() {
  TransformerSpec spec = llama("gpt-oss-120b", {36, 2880, 2880, 64, 8}, 201'088, 4096);
  spec.head_size = 64;
  return mixture(std::move(spec), {128, 4, 2880});
}

TransformerSpec moonlight() {
  TransformerSpec spec = llama("moonlight-16b-a3b", {27, 2048, 11'264, 16, 16}, 163'840, 4096);
  spec.kv_rank = 512;
  spec.rope_size = 64;
  spec.value_size = 128;
  spec.shared_experts = 2;
  spec.dense_layers = 1;
  return mixture(std::move(spec), {64, 6, 1408});
}

TransformerSpec deepseek_v3() {
  TransformerSpec spec = llama("deepseek-v3", {61, 7168, 18'432, 128, 128}, 129'280, 4096);
  spec.query_rank = 1536;
  spec.kv_rank = 512;
  spec.rope_size = 64;
  spec.value_size = 128;
  spec.experts = 256;
  spec.experts_per_token = 8;
  spec.expert_ffn = 2048;
  spec.expert_groups = 8;
  spec.groups_per_token = 4;
  spec.shared_experts = 1;
  spec.dense_layers = 3;
  spec.prediction_layers = 1;
  return spec;
}

// MLPerf's DLRM-DCNv2 has 26 tables of 128 and these widths (without its cross layers).
RecommendationSpec dlrm() {
  return {.name = "dlrm",
          .tables = 26,
          .embedding_size = 128,
          .pooled_lookups = 8,
          .rows_per_table = 7'000'000,
          .bottom = {13, 512, 256, 128},
          .top = {1024, 1024, 512, 256, 1}};
}

// Sources: Grattafiori et al., "The Llama 3 herd of models", table 3; Touvron et al. 2023, table 2;
// Brown et al. 2020, table 2.1; Megatron-LM's README (H100 table); DeepSeek-AI, "DeepSeek-V3
// technical report", 4.2; published configurations of Qwen3, Mixtral 8x22B v0.3, GPT-OSS-120B and
// Moonlight-16B-A3B.
std::vector<ModelSpec> presets() {
  return {llama("llama-7b", {32, 4096, 11'008, 32, 32}, 32'000, 2048),
          llama("llama-65b", {80, 8192, 22'016, 64, 64}, 32'000, 2048),
          llama("llama3-8b", {32, 4096, 14'336, 32, 8}, 128'256, 8192),
          llama("llama3-70b", {80, 8192, 28'672, 64, 8}, 128'256, 8192),
          llama("llama3-405b", {126, 16'384, 53'248, 128, 8}, 128'256, 8192),
          gpt3(),
          gpt("megatron-1.7b", 24, 2048, 16),
          gpt("megatron-7.1b", 30, 4096, 32),
          gpt("megatron-16b", 32, 6144, 48),
          gpt("megatron-32b", 48, 7168, 56),
          gpt("megatron-70b", 84, 8192, 64),
          gpt("megatron-177b", 96, 12'288, 96),
          qwen3(),
          mixture(llama("qwen3-30b-a3b", {48, 2048, 6144, 32, 4}, 151'936, 4096), {128, 8, 768}),
          mixture(llama("mixtral-8x22b", {56, 6144, 16'384, 48, 8}, 32'768, 4096), {8, 2, 16'384}),
          gpt_oss(),
          moonlight(),
          deepseek_v3(),
          dlrm()};
}

double layers_of(std::span<const std::uint32_t> widths) {
  double sum = 0;
  for (std::size_t i = 1; i < widths.size(); ++i) sum += double{1} * widths[i - 1] * widths[i];
  return sum;
}

// Elements of the matrices that one token meets in a layer.
double active_layer_parameters(const TransformerSpec& spec, std::uint32_t layer) {
  double routed = 0;
  if (spec.has_experts(layer))
    routed = spec.experts_per_token * spec.ffn_parameters(spec.expert_ffn);
  return spec.shared_parameters(layer) + routed;
}

// Forward FLOPs of the products of queries, keys and values, per token and layer.
double attention_flops(const TransformerSpec& spec, std::uint32_t sequence, FlopConvention count) {
  const double keys = count == FlopConvention::full ? sequence : 0.5 * sequence;
  return 2.0 * keys * spec.heads * (spec.query_size() + spec.head_value_size());
}

}  // namespace

double TransformerSpec::attention_parameters() const {
  const double h = hidden;
  if (!latent()) return 2 * h * heads * head_size + 2 * h * kv_heads * head_size;
  const double query_out = double{1} * heads * query_size();
  const double query = query_rank > 0 ? query_rank * (h + query_out) : h * query_out;
  const double key_value =
      h * (kv_rank + rope_size) + double{1} * kv_rank * heads * (head_size + value_size);
  return query + key_value + double{1} * heads * value_size * h;
}

double TransformerSpec::ffn_parameters(std::uint32_t width) const {
  return double{1} * ffn_matrices() * hidden * width;
}

double TransformerSpec::shared_parameters(std::uint32_t layer) const {
  const double norms = 2.0 * hidden + (latent() ? query_rank + kv_rank : 0);
  const double common = attention_parameters() + norms;
  if (!has_experts(layer)) return common + ffn_parameters(ffn);
  return common + shared_experts * ffn_parameters(expert_ffn) + double{1} * hidden * experts;
}

double TransformerSpec::expert_parameters(std::uint32_t layer) const {
  return has_experts(layer) ? experts * ffn_parameters(expert_ffn) : 0;
}

double TransformerSpec::embedding_parameters() const { return double{1} * vocabulary * hidden; }

double TransformerSpec::parameters() const {
  double sum = (tied_embeddings ? 1 : 2) * embedding_parameters() + hidden;
  for (std::uint32_t layer = 0; layer < layers; ++layer)
    sum += shared_parameters(layer) + expert_parameters(layer);
  return sum;
}

double TransformerSpec::active_parameters() const {
  double sum = (tied_embeddings ? 1 : 2) * embedding_parameters() + hidden;
  for (std::uint32_t layer = 0; layer < layers; ++layer)
    sum += active_layer_parameters(*this, layer);
  return sum;
}

std::uint64_t RecommendationSpec::interaction_size() const {
  const std::uint64_t vectors = tables + 1;
  return vectors * (vectors - 1) / 2 + (bottom.empty() ? 0 : bottom.back());
}

double RecommendationSpec::dense_parameters() const {
  const double joint = top.empty() ? 0 : static_cast<double>(interaction_size()) * top.front();
  return layers_of(bottom) + joint + layers_of(top);
}

double RecommendationSpec::embedding_parameters() const {
  return static_cast<double>(tables) * static_cast<double>(embedding_size) *
         static_cast<double>(rows_per_table);
}

const std::string& name_of(const ModelSpec& model) {
  return std::visit([](const auto& spec) -> const std::string& { return spec.name; }, model);
}

double flops_per_token(const TransformerSpec& spec, std::uint32_t sequence, FlopConvention count) {
  if (count == FlopConvention::six_n) return 6 * spec.active_parameters();
  const double attention = 3 * attention_flops(spec, sequence, count);
  double sum = 6 * spec.embedding_parameters();  // the head
  for (std::uint32_t layer = 0; layer < spec.layers; ++layer)
    sum += 6 * active_layer_parameters(spec, layer) + attention;
  // A prediction layer: a whole layer, the joining of two hidden states, and the head once more.
  const double predicted = 6 * (active_layer_parameters(spec, spec.layers) +
                                2.0 * spec.hidden * spec.hidden + spec.embedding_parameters());
  return sum + spec.prediction_layers * (predicted + attention);
}

double flops_per_sample(const RecommendationSpec& spec) {
  const auto vectors = static_cast<double>(spec.tables + 1);
  const double products = vectors * (vectors - 1) / 2 * static_cast<double>(spec.embedding_size);
  return 6 * (spec.dense_parameters() + products);
}

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const ModelSpec& model : presets()) names.push_back(name_of(model));
  return names;
}

Result<ModelSpec> model_by_name(const Token& name) {
  for (ModelSpec& model : presets())
    if (name_of(model) == name.text) return std::move(model);
  const std::vector<std::string> names = model_names();
  return fail(Errc::unknown, name.where, "unknown model " + quote(name.text),
              "use a preset (llama3-8b, llama3-70b, ...) or describe your own with a map" +
                  did_you_mean(name.text, names));
}

}  // namespace weft::workload
