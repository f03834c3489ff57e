// The plan's part of a job in a scenario.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <utility>

#include "workload/parallel/memory.hpp"
#include "workload/parallel/plan.hpp"

namespace weft::workload {
namespace {

// No dimension is larger; products of four then fit 64 bits after the check of gpus().
constexpr std::int64_t dimension_most = 1 << 22;
constexpr std::int64_t batch_most = std::int64_t{1} << 40;

std::uint32_t read_dimension(Reader& reader, std::string_view key) {
  return static_cast<std::uint32_t>(reader.count(key, 1, 1, dimension_most));
}

// dp is what is left of the GPUs; an error says why nothing is.
void derive_dp(Reader& reader, TrainingPlan& plan, std::uint64_t gpus) {
  const std::uint64_t others = plan.gpus();  // dp is still 1
  if (gpus % others != 0)
    return reader.error(
        Errc::infeasible, reader.where(),
        fmt::format("{} GPUs / (tp {} x cp {} x pp {} = {}) leaves a remainder of {}", gpus,
                    plan.tp, plan.cp, plan.pp, others, gpus % others),
        fmt::format("use a multiple of {} GPUs", others));
  plan.dp = static_cast<std::uint32_t>(gpus / others);
}

void check_product(Reader& reader, const TrainingPlan& plan, std::uint64_t gpus) {
  if (plan.gpus() == gpus) return;
  reader.error(Errc::infeasible, reader.where(),
               fmt::format("tp {} x cp {} x pp {} x dp {} = {} ranks, but the job has {} GPUs",
                           plan.tp, plan.cp, plan.pp, plan.dp, plan.gpus(), gpus),
               "make the product equal to the number of GPUs, or omit dp");
}

void read_parallel(Reader& job, TrainingPlan& plan, std::optional<std::uint64_t> gpus,
                   Errors& errors) {
  static const Config empty = Config::map();
  const Config* section = job.child("parallel");
  Reader reader(section != nullptr ? *section : empty, "parallel", errors);
  plan.tp = read_dimension(reader, "tp");
  plan.cp = read_dimension(reader, "cp");
  plan.pp = read_dimension(reader, "pp");
  plan.vp = read_dimension(reader, "vp");
  plan.ep = read_dimension(reader, "ep");
  const bool dp_given = reader.has("dp");
  const std::uint32_t dp = read_dimension(reader, "dp");
  if (dp_given || !gpus)
    plan.dp = dp;
  else
    derive_dp(reader, plan, *gpus);
  if (reader.has("order")) {
    const std::string order = reader.text("order", "");
    if (auto parsed = model::RankGrid::parse_order({order, reader.where("order")}))
      plan.order = *parsed;
    else
      reader.error(std::move(parsed).error());
  }
  reader.finish();
  if (plan.gpus() > std::numeric_limits<std::uint32_t>::max())
    reader.error(Errc::infeasible, reader.where(),
                 fmt::format("tp x cp x pp x dp = {} ranks are more than 2^32", plan.gpus()),
                 "choose smaller dimensions");
  else if (dp_given && gpus)
    check_product(reader, plan, *gpus);
}

void read_batch(Reader& job, TrainingPlan& plan) {
  if (job.has("batch") && job.has("batch_tokens"))
    return job.error(Errc::value, job.where("batch"),
                     "batch and batch_tokens are mutually exclusive", "keep one of them");
  if (!job.has("batch_tokens")) {
    plan.batch = static_cast<std::uint64_t>(job.count("batch", std::nullopt, 1, batch_most));
    return;
  }
  const std::int64_t tokens = job.count("batch_tokens", std::nullopt, 1, batch_most);
  if (tokens % plan.sequence != 0)
    job.error(Errc::infeasible, job.where("batch_tokens"),
              fmt::format("{} tokens / sequences of {} leaves a remainder of {}", tokens,
                          plan.sequence, tokens % plan.sequence),
              fmt::format("choose a multiple of {}", plan.sequence));
  plan.batch = static_cast<std::uint64_t>(tokens) / plan.sequence;
}

Overlap::Timing read_timing(Reader& reader, std::string_view key, Overlap::Timing fallback) {
  const bool on = reader.flag(key, fallback == Overlap::Timing::overlapped);
  return on ? Overlap::Timing::overlapped : Overlap::Timing::serial;
}

void read_overlap(Reader& job, TrainingPlan& plan, Errors& errors) {
  const Config* section = job.child("overlap");
  if (section == nullptr) return;
  Reader reader(*section, "overlap", errors);
  Overlap& overlap = plan.overlap;
  if (reader.has("tp")) overlap.tp = reader.number("tp", std::nullopt, 0, 1);
  overlap.cp = reader.number("cp", overlap.cp, 0, 1);
  const Config* exchange = reader.child("ep");
  const bool scalar = exchange != nullptr && exchange->kind == Config::Kind::scalar;
  if (scalar && (exchange->text == "on" || exchange->text == "true"))
    overlap.ep = Overlap::exchange_on;
  else if (scalar && (exchange->text == "off" || exchange->text == "false"))
    overlap.ep = 0;
  else
    overlap.ep = reader.number("ep", overlap.ep, 0, 1);
  overlap.dp_gather = read_timing(reader, "dp_gather", overlap.dp_gather);
  overlap.dp_reduce = read_timing(reader, "dp_reduce", overlap.dp_reduce);
  reader.finish();
}

constexpr std::array<std::pair<std::string_view, Recompute>, 3> recompute_words{
    {{"none", Recompute::none}, {"selective", Recompute::selective}, {"full", Recompute::full}}};
constexpr std::array<std::pair<std::string_view, Recompute::Module>, 10> recompute_modules{
    {{"layernorm", Recompute::layernorm},
     {"norm", Recompute::layernorm},
     {"act", Recompute::activation},
     {"moe_act", Recompute::moe_act},
     {"mla_up_proj", Recompute::mla_up_proj},
     {"core_attn", Recompute::core_attn},
     {"mlp", Recompute::mlp},
     {"moe", Recompute::moe},
     {"shared_experts", Recompute::shared_experts},
     {"full", Recompute::whole_layer}}};

void unknown_module(Reader& job, const Token& token) {
  std::vector<std::string> names;
  for (const auto& [name, value] : recompute_words) names.emplace_back(name);
  for (const auto& [name, value] : recompute_modules)
    if (name != "full") names.emplace_back(name);
  job.error(
      Errc::unknown, token.where,
      fmt::format("unknown recompute {}{}", quote(token.text), did_you_mean(token.text, names)),
      fmt::format("choose one of none, selective and full, or a list of: {}",
                  fmt::join(std::span(names).subspan(recompute_words.size()), ", ")));
}

// One word for all, or modules.
void read_recompute(Reader& job, TrainingPlan& plan) {
  const Config* given = job.child("recompute");
  if (given == nullptr || given->kind == Config::Kind::null) return;
  const std::vector<Token> tokens = job.texts("recompute");
  if (given->kind == Config::Kind::scalar && tokens.size() == 1)
    for (const auto& [name, value] : recompute_words)
      if (tokens[0].text == name) {
        plan.recompute = value;
        return;
      }
  plan.recompute = Recompute::none;
  for (const Token& token : tokens) {
    const auto found =
        std::ranges::find(recompute_modules, token.text, [](const auto& m) { return m.first; });
    if (found == recompute_modules.end())
      unknown_module(job, token);
    else
      plan.recompute.add(found->second);
  }
}

void read_numerics(Reader& job, TrainingPlan& plan) {
  static const std::array<std::string, 2> precisions{"bf16", "fp8"};
  static const std::array<std::string, 2> eras{"2024", "2025"};
  static const std::array<std::string, 3> dispatchers{"alltoall", "deepep", "hybridep"};
  plan.precision = static_cast<Precision>(job.choice("precision", precisions, 0));
  plan.zero = static_cast<ZeroStage>(job.count("zero", std::to_underlying(plan.zero), 0, 3));
  plan.software =
      static_cast<Software>(job.choice("software", eras, std::to_underlying(plan.software)));
  plan.dispatcher = static_cast<Dispatcher>(job.choice("dispatcher", dispatchers, 0));
  if (job.flag("cuda_graphs", false)) plan.cuda_graphs = CudaGraphs::on;
  read_recompute(job, plan);
}

void read_layout(Reader& job, TrainingPlan& plan) {
  if (!job.has("layout")) return;
  const std::string text = job.text("layout", "");
  auto layout = parse_layout({text, job.where("layout")});
  if (layout)
    plan.layout = *std::move(layout);
  else
    job.error(std::move(layout).error());
}

// Keys that mean nothing without experts.
void check_mixture_keys(Reader& job, const ModelSpec& model) {
  const auto* transformer = std::get_if<TransformerSpec>(&model);
  if (transformer != nullptr && transformer->experts > 0) return;
  for (const std::string_view key : {"dispatcher", "cuda_graphs"})
    if (job.has(key))
      job.error(Errc::infeasible, job.where(key),
                fmt::format("{} has no effect on a model without experts", key),
                fmt::format("remove {}", key));
}

// Returns whether the size is to be found once everything else is known.
bool read_micro_batch(Reader& job, TrainingPlan& plan) {
  const Config* value = job.child("micro_batch");
  if (value != nullptr && value->kind == Config::Kind::scalar && value->text == "auto") return true;
  plan.micro_batch = static_cast<std::uint32_t>(job.count("micro_batch", 1, 1, 1 << 22));
  return false;
}

// The plan's keys alone, so that whatever they hold can be told from the job's other errors.
Config own_keys(Reader& job) {
  Config own = Config::map(job.where());
  for (const std::string_view key : plan_keys)
    if (const Config* value = job.child(key))
      own.fields.push_back({std::string(key), value->where, *value});
  return own;
}

TrainingPlan read_keys(Reader& keys, Errors& errors, const ModelSpec& model, const GpuSpec& gpu,
                       std::optional<std::uint64_t> gpus) {
  TrainingPlan plan;
  const auto* transformer = std::get_if<TransformerSpec>(&model);
  if (transformer != nullptr && transformer->experts > 0) mixture_defaults(plan);
  const std::int64_t usual = transformer != nullptr ? transformer->sequence : 1;
  const bool automatic = read_micro_batch(keys, plan);
  plan.sequence = static_cast<std::uint32_t>(keys.count("sequence", usual, 1, 1 << 24));
  read_parallel(keys, plan, gpus, errors);
  read_batch(keys, plan);
  read_numerics(keys, plan);
  read_overlap(keys, plan, errors);
  read_layout(keys, plan);
  check_mixture_keys(keys, model);
  if (!errors.empty()) return plan;
  if (automatic && transformer != nullptr)
    plan.micro_batch = largest_micro_batch(*transformer, plan);
  // A recommendation model takes its share of the batch at once.
  if (transformer == nullptr && (automatic || !keys.has("micro_batch")))
    plan.micro_batch = static_cast<std::uint32_t>(
        std::clamp<std::uint64_t>(plan.batch / std::max(plan.dp, 1u), 1, UINT32_MAX));
  errors = check_plan(model, plan, gpu);
  for (Error& error : errors) error.where = keys.where("parallel");
  return plan;
}

}  // namespace

std::optional<TrainingPlan> read_plan(Reader& job, const ModelSpec& model, const GpuSpec& gpu,
                                      std::optional<std::uint64_t> gpus) {
  const Config own = own_keys(job);
  Errors errors;
  Reader keys(own, "job", errors);
  const TrainingPlan plan = read_keys(keys, errors, model, gpu, gpus);
  if (errors.empty()) return plan;
  for (Error& error : errors) job.error(std::move(error));
  return std::nullopt;
}

}  // namespace weft::workload
