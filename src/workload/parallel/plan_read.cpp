// The plan's part of a job in a scenario.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
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
  const std::string order = reader.text("order", "tp-cp-pp-dp");
  if (auto parsed = model::RankGrid::parse_order({order, reader.where("order")}))
    plan.order = *parsed;
  else
    reader.error(std::move(parsed).error());
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
  overlap.ep = reader.number("ep", overlap.ep, 0, 1);
  overlap.dp_gather = read_timing(reader, "dp_gather", overlap.dp_gather);
  overlap.dp_reduce = read_timing(reader, "dp_reduce", overlap.dp_reduce);
  reader.finish();
}

void read_numerics(Reader& job, TrainingPlan& plan) {
  static const std::array<std::string, 2> precisions{"bf16", "fp8"};
  static const std::array<std::string, 3> recomputes{"none", "selective", "full"};
  plan.precision = static_cast<Precision>(job.choice("precision", precisions, 0));
  plan.zero = static_cast<ZeroStage>(job.count("zero", std::to_underlying(plan.zero), 0, 3));
  plan.recompute = static_cast<Recompute>(
      job.choice("recompute", recomputes, std::to_underlying(plan.recompute)));
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
  const std::int64_t usual = transformer != nullptr ? transformer->sequence : 1;
  const bool automatic = read_micro_batch(keys, plan);
  plan.sequence = static_cast<std::uint32_t>(keys.count("sequence", usual, 1, 1 << 24));
  read_parallel(keys, plan, gpus, errors);
  read_batch(keys, plan);
  read_numerics(keys, plan);
  read_overlap(keys, plan, errors);
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
