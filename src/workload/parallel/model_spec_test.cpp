#include "workload/parallel/model_spec.hpp"

#include <doctest/doctest.h>

#include "base/test_approx.hpp"
#include "workload/parallel/test_kit.hpp"

namespace weft::workload {
namespace {

using testing::preset;

Result<ModelSpec> read_spec(std::string_view yaml) {
  const auto config = parse_yaml(yaml, "m.yaml");
  REQUIRE_MESSAGE(config.has_value(), yaml);
  return read_model(*config->find("model"));
}

TEST_CASE("parameters are the published totals") {
  struct Total {
    const char* name;
    double all, active, tolerance;
  };
  const Total totals[] = {
      {"llama-7b", 6.74e9, 6.74e9, 1e-3},        {"llama-65b", 65.3e9, 65.3e9, 2e-3},
      {"llama3-8b", 8.03e9, 8.03e9, 1e-3},       {"llama3-70b", 70.55e9, 70.55e9, 1e-3},
      {"llama3-405b", 405.85e9, 405.85e9, 1e-3}, {"gpt3-175b", 174.6e9, 174.6e9, 1e-3},
      {"megatron-1.7b", 1.7e9, 1.7e9, 0.03},     {"megatron-7.1b", 7.1e9, 7.1e9, 0.01},
      {"megatron-16b", 16e9, 16e9, 0.01},        {"megatron-32b", 31.5e9, 31.5e9, 0.01},
      {"megatron-70b", 70e9, 70e9, 0.01},        {"megatron-177b", 177e9, 177e9, 0.01},
      {"qwen3-235b-a22b", 235e9, 22e9, 0.01},    {"deepseek-v3", 671e9, 37e9, 0.02}};
  for (const Total& total : totals) {
    CAPTURE(total.name);
    const TransformerSpec spec = preset(total.name);
    CHECK(spec.parameters() == approx(total.all).epsilon(total.tolerance));
    CHECK(spec.active_parameters() == approx(total.active).epsilon(total.tolerance));
  }
}

// GFLOP per token of Llama 3 405B at 8,192 tokens: 2,435 (6 N), 2,524 (causal), 2,625 (full).
TEST_CASE("conventions of counting FLOPs") {
  const TransformerSpec spec = preset("llama3-405b");
  const auto giga = [&](FlopConvention count) { return flops_per_token(spec, 8192, count) / 1e9; };
  CHECK(giga(FlopConvention::six_n) == approx(2435).epsilon(1e-3));
  CHECK(giga(FlopConvention::causal) == approx(2524).epsilon(1e-3));
  CHECK(giga(FlopConvention::full) == approx(2625).epsilon(1e-3));
}

// Narayanan et al., SC 2021: 72 L h^2 (1 + s / 6h + V / 12 L h) per token, attention in full.
TEST_CASE("full FLOPs of a GPT are Megatron's closed form") {
  for (const char* name : {"megatron-1.7b", "megatron-32b", "megatron-177b"}) {
    const TransformerSpec spec = preset(name);
    const double l = spec.layers;
    const double h = spec.hidden;
    const double closed = 72 * l * h * h * (1 + 4096 / (6 * h) + spec.vocabulary / (12 * l * h));
    // Norms have parameters too, and no product: 1e-4 of the whole.
    CHECK(flops_per_token(spec, 4096, FlopConvention::full) == approx(closed).epsilon(1e-3));
  }
}

// Megatron-Bridge's rows: 338 TFLOP/s at 1,297 tokens/s, 233 at 1,575; 744 at 14,451, 719 at 1,602.
TEST_CASE("causal FLOPs fit published pairs of TFLOP/s and tokens/s") {
  const auto tera = [](const char* name, std::uint32_t sequence, double tokens) {
    return flops_per_token(preset(name), sequence, FlopConvention::causal) * tokens / 1e12;
  };
  CHECK(tera("deepseek-v3", 4096, 1297) == approx(338).epsilon(0.005));
  CHECK(tera("qwen3-235b-a22b", 4096, 1575) == approx(233).epsilon(0.005));
  CHECK(tera("llama3-8b", 8192, 14451) == approx(744).epsilon(0.005));
  CHECK(tera("llama3-70b", 8192, 1602) == approx(719).epsilon(0.005));
}

TEST_CASE("own models from a map") {
  const auto own = read_spec(
      "model: {layers: 2, hidden: 64, heads: 4, vocabulary: 100, sequence: 128, ffn_kind: gated}");
  REQUIRE(own.has_value());
  const auto& spec = std::get<TransformerSpec>(*own);
  CHECK(spec.ffn == 256);
  CHECK(spec.kv_heads == 4);
  CHECK(spec.head_size == 16);
  // Per layer: 4 h^2 + 3 h 256 + 2 h norms; two embeddings and the last norm.
  CHECK(spec.parameters() == 2 * (4 * 64 * 64 + 3 * 64 * 256 + 2 * 64) + 2 * 100 * 64 + 64);

  const auto based = read_spec("model: {base: llama3-8b, layers: 16, name: half}");
  REQUIRE(based.has_value());
  CHECK(std::get<TransformerSpec>(*based).layers == 16);
  CHECK(std::get<TransformerSpec>(*based).kv_heads == 8);
  CHECK(name_of(*based) == "half");
}

TEST_CASE("a map that repeats a preset is the preset") {
  const auto spec = read_spec(
      "model: {layers: 61, hidden: 7168, ffn: 18432, ffn_kind: gated, heads: 128, head_size: 128, "
      "query_rank: 1536, kv_rank: 512, rope_size: 64, value_size: 128, vocabulary: 129280, "
      "experts: 256, experts_per_token: 8, expert_ffn: 2048, shared_experts: 1, dense_layers: 3, "
      "prediction_layers: 1}");
  REQUIRE(spec.has_value());
  CHECK(std::get<TransformerSpec>(*spec).parameters() == preset("deepseek-v3").parameters());
}

TEST_CASE("recommendation models") {
  const auto spec = read_spec(
      "model: {kind: recommendation, tables: 3, embedding_size: 4, rows_per_table: 10, "
      "bottom: [5, 4], top: [8, 1]}");
  REQUIRE(spec.has_value());
  const auto& model = std::get<RecommendationSpec>(*spec);
  CHECK(model.interaction_size() == 6 + 4);  // 4 vectors have 6 pairs
  CHECK(model.dense_parameters() == 5 * 4 + 10 * 8 + 8 * 1);
  CHECK(model.embedding_parameters() == 3 * 4 * 10);
  CHECK(flops_per_sample(model) == 6 * (108 + 6 * 4));
  CHECK(read_spec("model: dlrm").has_value());
}

TEST_CASE("what a model cannot be, all at once") {
  const auto unknown = read_spec("model: llama3-450b");
  REQUIRE(!unknown.has_value());
  CHECK(unknown.error().code == Errc::unknown);
  CHECK(unknown.error().text().find("did you mean \"llama3-405b\"") != std::string::npos);
  CHECK(unknown.error().where.text() == "m.yaml:1:8");

  const auto bad = read_spec(
      "model: {layers: 0, hidden: 64, heads: 6, kv_heads: 4, vocabulary: 1, experts: 4, "
      "experts_per_token: 5, expert_ffn: 8, rope_size: 3, colour: 1}");
  REQUIRE(!bad.has_value());
  const std::string text = bad.error().text();
  for (const char* part : {"0 is not within", "6 heads do not divide into 4", "5 of 4 experts",
                           "kv_rank and value_size", "unknown key \"colour\""})
    CHECK_MESSAGE(text.find(part) != std::string::npos, part);

  for (const char* yaml :
       {"model: {}", "model: [1]", "model:", "model: {base: nothing}", "model: {kind: car}",
        "model: {base: dlrm, kind: transformer}", "model: {layers: 99999999999999999999}",
        "model: {layers: 2, hidden: 1e30, heads: 1, vocabulary: 1}",
        "model: {kind: recommendation, tables: 1, embedding_size: 1}",
        "model: {base: dlrm, top: [0, nan]}"})
    CHECK_MESSAGE(!read_spec(yaml).has_value(), yaml);
}

}  // namespace
}  // namespace weft::workload
