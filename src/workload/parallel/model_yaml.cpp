// `model:` of a job: the name of a preset, or a map.
#include <fmt/format.h>

#include <array>

#include "workload/parallel/model_spec.hpp"

namespace weft::workload {
namespace {

// Sizes beyond these are slips of the pen; within them every product is exact in a double or close.
constexpr std::int64_t size_most = 1 << 24;
constexpr std::int64_t layers_most = 10'000;
constexpr std::int64_t rows_most = std::int64_t{1} << 40;

void read_size(Reader& reader, std::string_view key, std::uint32_t& field, std::int64_t least,
               std::int64_t most = size_most) {
  // 0 in the preset (or none) means that the key is required when it must be positive.
  const bool given = field > 0 || least == 0;
  const std::optional<std::int64_t> fallback =
      given ? std::optional(std::int64_t{field}) : std::nullopt;
  field = static_cast<std::uint32_t>(reader.count(key, fallback, least, most));
}

void read_attention(Reader& reader, TransformerSpec& spec) {
  read_size(reader, "heads", spec.heads, 1);
  if (spec.kv_heads == 0) spec.kv_heads = spec.heads;
  read_size(reader, "kv_heads", spec.kv_heads, 1);
  if (spec.head_size == 0 && spec.heads > 0) spec.head_size = spec.hidden / spec.heads;
  read_size(reader, "head_size", spec.head_size, 1);
  read_size(reader, "query_rank", spec.query_rank, 0);
  read_size(reader, "kv_rank", spec.kv_rank, 0);
  read_size(reader, "rope_size", spec.rope_size, 0);
  read_size(reader, "value_size", spec.value_size, 0);
}

void read_experts(Reader& reader, TransformerSpec& spec) {
  read_size(reader, "experts", spec.experts, 0, 1 << 16);
  read_size(reader, "experts_per_token", spec.experts_per_token, 0, 1 << 16);
  read_size(reader, "expert_ffn", spec.expert_ffn, 0);
  read_size(reader, "shared_experts", spec.shared_experts, 0, 1 << 10);
  read_size(reader, "expert_groups", spec.expert_groups, 1);
  read_size(reader, "groups_per_token", spec.groups_per_token, 1);
  read_size(reader, "dense_layers", spec.dense_layers, 0, layers_most);
  read_size(reader, "prediction_layers", spec.prediction_layers, 0, 16);
}

void check_attention(Reader& reader, const TransformerSpec& spec) {
  if (spec.heads > 0 && spec.kv_heads > 0 && spec.heads % spec.kv_heads != 0)
    reader.error(
        Errc::value, reader.where("kv_heads"),
        fmt::format("{} heads do not divide into {} key-value heads", spec.heads, spec.kv_heads),
        "use a divisor of heads");
  const bool any = spec.query_rank + spec.rope_size + spec.value_size > 0;
  if (spec.latent() ? spec.value_size == 0 : any)
    reader.error(
        Errc::value, reader.where("kv_rank"),
        "latent attention needs kv_rank and value_size (query_rank and rope_size may be 0)",
        "set both, or none of the four");
}

void check_experts(Reader& reader, const TransformerSpec& spec) {
  if (spec.experts == 0) {
    if (spec.experts_per_token + spec.expert_ffn + spec.shared_experts > 0)
      reader.error(Errc::value, reader.where("experts"),
                   "experts_per_token, expert_ffn and shared_experts need experts",
                   "set experts, or remove these keys");
    return;
  }
  if (spec.experts_per_token == 0 || spec.experts_per_token > spec.experts)
    reader.error(
        Errc::value, reader.where("experts_per_token"),
        fmt::format("a token cannot use {} of {} experts", spec.experts_per_token, spec.experts),
        fmt::format("give 1 to {}", spec.experts));
  if (spec.expert_ffn == 0)
    reader.error(Errc::value, reader.where("expert_ffn"), "experts need a width", "set expert_ffn");
  if (spec.experts % spec.expert_groups != 0)
    reader.error(Errc::value, reader.where("expert_groups"),
                 fmt::format("{} experts / {} expert_groups leaves a remainder of {}", spec.experts,
                             spec.expert_groups, spec.experts % spec.expert_groups),
                 fmt::format("choose expert_groups so that it divides {}", spec.experts));
  else if (spec.groups_per_token > spec.expert_groups ||
           spec.experts / spec.expert_groups * spec.groups_per_token < spec.experts_per_token)
    reader.error(Errc::value, reader.where("groups_per_token"),
                 fmt::format("{} of {} groups of {} experts do not hold {} experts per token",
                             spec.groups_per_token, spec.expert_groups,
                             spec.experts / spec.expert_groups, spec.experts_per_token),
                 "give enough groups_per_token, at most expert_groups");
  if (spec.dense_layers > spec.layers)
    reader.error(Errc::value, reader.where("dense_layers"),
                 fmt::format("{} of {} layers cannot be dense", spec.dense_layers, spec.layers),
                 fmt::format("give at most {}", spec.layers));
}

TransformerSpec read_transformer(Reader& reader, TransformerSpec spec) {
  static const std::array<std::string, 2> ffn_kinds{"plain", "gated"};
  read_size(reader, "layers", spec.layers, 1, layers_most);
  read_size(reader, "hidden", spec.hidden, 1);
  if (spec.ffn == 0) spec.ffn = 4 * spec.hidden;
  read_size(reader, "ffn", spec.ffn, 1);
  read_attention(reader, spec);
  read_size(reader, "vocabulary", spec.vocabulary, 1);
  if (spec.sequence == 0) spec.sequence = 4096;
  read_size(reader, "sequence", spec.sequence, 1);
  spec.kind = static_cast<TransformerSpec::Ffn>(
      reader.choice("ffn_kind", ffn_kinds, static_cast<std::size_t>(spec.kind)));
  spec.tied_embeddings = reader.flag("tied_embeddings", spec.tied_embeddings);
  read_experts(reader, spec);
  check_attention(reader, spec);
  check_experts(reader, spec);
  return spec;
}

std::vector<std::uint32_t> read_widths(Reader& reader, std::string_view key,
                                       std::vector<std::uint32_t> fallback) {
  const std::vector<Token> tokens = reader.texts(key);
  if (tokens.size() > 64)
    reader.error(Errc::value, reader.where(key), "more than 64 dense layers", "use fewer");
  if (tokens.empty()) return fallback;
  std::vector<std::uint32_t> widths;
  for (const Token& token : tokens) {
    const auto width = parse_count(token);
    if (!width)
      reader.error(width.error());
    else if (*width < 1 || *width > size_most)
      reader.error(Errc::value, token.where, fmt::format("{} is not a width", *width),
                   fmt::format("give 1 to {}", size_most));
    else
      widths.push_back(static_cast<std::uint32_t>(*width));
  }
  return widths;
}

RecommendationSpec read_recommendation(Reader& reader, RecommendationSpec spec) {
  const auto known = [](std::uint64_t value) {
    return value > 0 ? std::optional(static_cast<std::int64_t>(value)) : std::nullopt;
  };
  spec.tables = static_cast<std::uint64_t>(reader.count("tables", known(spec.tables), 1, 1 << 16));
  spec.embedding_size = static_cast<std::uint64_t>(
      reader.count("embedding_size", known(spec.embedding_size), 1, 1 << 16));
  spec.rows_per_table = static_cast<std::uint64_t>(
      reader.count("rows_per_table", known(spec.rows_per_table), 1, rows_most));
  read_size(reader, "pooled_lookups", spec.pooled_lookups, 1);
  spec.bottom = read_widths(reader, "bottom", std::move(spec.bottom));
  spec.top = read_widths(reader, "top", std::move(spec.top));
  if (spec.bottom.empty() || spec.top.empty())
    reader.error(Errc::value, reader.where(), "a recommendation model needs dense layers",
                 "give bottom and top as lists of widths");
  return spec;
}

Result<ModelSpec> read_map(const Config& value) {
  static const std::array<std::string, 2> kinds{"transformer", "recommendation"};
  Errors errors;
  Reader reader(value, "model", errors);
  ModelSpec start = TransformerSpec{};
  const bool based = reader.has("base");
  if (based) {
    const std::string base = reader.text("base", std::nullopt);
    WEFT_TRY(start, model_by_name({base, reader.where("base")}));
  }
  const std::size_t kind = reader.choice("kind", kinds, start.index());
  if (!based && kind == 1) start = RecommendationSpec{};
  if (kind != start.index())
    return fail(Errc::value, reader.where("kind"), "the base model is of another kind",
                "remove kind");
  std::visit([&](auto& spec) { spec.name = reader.text("name", based ? spec.name : "own model"); },
             start);
  if (auto* transformer = std::get_if<TransformerSpec>(&start))
    start = read_transformer(reader, std::move(*transformer));
  else
    start = read_recommendation(reader, std::move(std::get<RecommendationSpec>(start)));
  reader.finish();
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  return start;
}

}  // namespace

Result<ModelSpec> read_model(const Config& value) {
  if (value.kind == Config::Kind::scalar) return model_by_name(token_of(value));
  if (value.kind == Config::Kind::map) return read_map(value);
  return fail(Errc::value, value.where, "a model is a name or a map",
              "write e.g. model: llama3-70b, or model: {layers: 32, hidden: 4096, ...}");
}

}  // namespace weft::workload
