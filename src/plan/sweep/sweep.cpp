#include "plan/sweep/sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <mutex>
#include <optional>
#include <tuple>

#include "base/check.hpp"
#include "base/parallel.hpp"
#include "base/whole_number.hpp"
#include "model/formats/build_fabric.hpp"
#include "plan/design/bill.hpp"
#include "plan/infer/infer.hpp"

namespace weft::plan {
namespace {

struct Axis {
  std::string key;
  std::vector<Config> values;
};

std::string as_written(const Config& value) {
  if (value.kind == Config::Kind::scalar) return value.text;
  std::string text = to_yaml(value);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

Result<std::vector<Axis>> read_axes(const Config& sweep) {
  if (sweep.kind != Config::Kind::map || sweep.fields.empty())
    return fail(Errc::parse, sweep.where, "\"sweep:\" has no keys",
                "add e.g. sweep: {routing.qps: [1, 4, 16]}");
  std::vector<Axis> axes;
  std::size_t points = 1;
  for (const Config::Field& field : sweep.fields) {
    if (field.value.kind != Config::Kind::list || field.value.items.empty())
      return fail(Errc::parse, field.value.where,
                  fmt::format("sweep of \"{}\" needs a list with at least one value", field.key),
                  "write e.g. [16, 18, 32]");
    axes.push_back({field.key, field.value.items});
    if (points > sweep_points_max / field.value.items.size())
      return fail(Errc::value, field.where,
                  fmt::format("the sweep has more than {} points", sweep_points_max),
                  "shorten its lists");
    points *= field.value.items.size();
  }
  return axes;
}

std::string one_line(const Error& error) {
  std::string text = error.text();
  std::ranges::replace(text, '\n', ' ');
  return text;
}

std::optional<double> known(double value) {
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::vector<SweepRow> with_values(const SweepPoint& point, Result<std::vector<SweepRow>> rows) {
  if (!rows) rows = {{.error = one_line(rows.error())}};
  for (SweepRow& row : *rows)
    for (const auto& [key, value] : point.values) row.values.push_back(value);
  return *std::move(rows);
}

double p99_of(const InferReport& report, std::string_view name) {
  return std::ranges::find(report.latencies, name, &Latency::name)->ours.p99;
}

SweepRow row_of_service(const std::string& variant, const InferReport& report) {
  SweepRow out{
      .variant = variant,
      .job = "inference",
      .ttft_p99_s = known(p99_of(report, "ttft")),
      .tpot_p99_s = known(p99_of(report, "tpot")),
      .e2e_p99_s = known(p99_of(report, "e2e")),
      .output_tokens_per_s = known(static_cast<double>(report.output_tokens) / report.end_s),
      .goodput_per_s = report.goodput,
      .token_cost = report.cost_per_million_output_tokens};
  if (!report.objectives.empty()) out.kept = report.kept();
  if (report.unfinished > 0)
    out.error =
        fmt::format("{} requests never ended: {}", report.unfinished, report.why_unfinished);
  return out;
}

// Prices each variant once.
void add_costs(const SweepPoint& point, const PriceVariant& price, std::vector<SweepRow>& rows) {
  for (const model::Scenario& variant : point.scenario.variants) {
    const auto cost = price(variant);
    for (SweepRow& row : rows) {
      if (row.variant != variant.name) continue;
      if (cost)
        row.price = cost->price, row.watts = cost->watts;
      else if (row.error.empty())
        row.error = one_line(cost.error());
    }
  }
}

// Time, price and power: less is better.
using Merit = std::tuple<double, double, double>;
Merit merit(const SweepRow& row) { return {*row.time_s, *row.price, *row.watts}; }
bool beats(const Merit& a, const Merit& b) {
  return a != b && std::get<0>(a) <= std::get<0>(b) && std::get<1>(a) <= std::get<1>(b) &&
         std::get<2>(a) <= std::get<2>(b);
}

// In order of merits a row is beaten by earlier ones only, and then by one of the front.
void mark_front(std::vector<SweepRow*> rows) {
  std::ranges::stable_sort(rows, {}, [](const SweepRow* row) { return merit(*row); });
  std::vector<SweepRow*> front;
  SweepRow* best = nullptr;
  const auto price_of_rate = [](const SweepRow* row) { return *row->time_s * *row->price; };
  for (SweepRow* row : rows) {
    if (std::ranges::any_of(front, [&](SweepRow* f) { return beats(merit(*f), merit(*row)); }))
      continue;
    row->on_front = true;
    front.push_back(row);
    if (best == nullptr || price_of_rate(row) < price_of_rate(best)) best = row;
  }
  if (best != nullptr) best->is_best = true;
}

void mark_fronts(std::vector<SweepRow>& rows, const std::vector<bool>& is_work) {
  std::map<std::vector<std::string>, std::vector<SweepRow*>> of_work;
  for (SweepRow& row : rows) {
    if (!row.error.empty() || !row.price || !row.watts || row.time_s.value_or(0) <= 0) continue;
    std::vector<std::string> work{row.job};
    for (std::size_t k = 0; k < is_work.size(); ++k)
      if (is_work[k]) work.push_back(row.values[k]);
    of_work[work].push_back(&row);
  }
  for (const auto& [work, same] : of_work) mark_front(same);
}

}  // namespace

Result<std::vector<SweepPoint>> sweep_points(const model::ScenarioFile& file) {
  if (file.sweep.kind == Config::Kind::null)
    return fail(Errc::parse, file.variants.front().root.where,
                "the scenario has no \"sweep:\" keys", "add e.g. sweep: {routing.qps: [1, 4, 16]}");
  WEFT_TRY(const std::vector<Axis> axes, read_axes(file.sweep));
  std::vector<SweepPoint> points;
  std::vector<std::size_t> at(axes.size(), 0);
  for (;;) {
    SweepPoint point{.scenario = file};
    for (std::size_t a = 0; a < axes.size(); ++a) {
      const Config& value = axes[a].values[at[a]];
      point.values.emplace_back(axes[a].key, as_written(value));
      for (model::Scenario& variant : point.scenario.variants)
        WEFT_TRY_STATUS(variant.set(axes[a].key, value));
    }
    points.push_back(std::move(point));
    std::size_t a = axes.size();
    while (a > 0 && ++at[a - 1] == axes[a - 1].values.size()) at[--a] = 0;
    if (a == 0) return points;
  }
}

std::vector<SweepRow> rows_of_run(const model::Outcome& outcome) {
  std::vector<SweepRow> rows;
  for (const model::VariantOutcome& variant : outcome.variants) {
    double worst = model::no_number;
    for (const model::TierOutcome& tier : variant.tiers) worst = std::fmax(worst, tier.mmr);
    for (const model::JobOutcome& job : variant.jobs) {
      SweepRow& row = rows.emplace_back(
          SweepRow{.variant = variant.name,
                   .job = job.name,
                   .time_s = known(model::time_of(job)),
                   .algbw_gbyte_s = known(job.algbw_gbyte_s),
                   .busbw_gbyte_s = known(job.busbw_gbyte_s),
                   .roofline_s = known(job.roofline_s),
                   .ratio = known(job.ratio),
                   .worst_mmr = known(worst),
                   .estimate = variant.estimate,
                   .error = job.unfinished ? model::to_text(*job.unfinished) : ""});
      if (!job.training) continue;
      row.mfu = known(job.training->mfu);
      row.tflops_per_gpu = known(job.training->tflops_per_gpu);
      row.tokens_per_s_per_gpu = known(job.training->tokens_per_s_per_gpu);
      row.bubble = known(job.training->bubble);
    }
  }
  return rows;
}

Result<std::vector<SweepRow>> run_services(const model::ScenarioFile& file) {
  std::vector<SweepRow> rows;
  for (const model::Scenario& variant : file.variants) {
    WEFT_TRY(const InferReport report, infer(variant));
    rows.push_back(row_of_service(variant.name, report));
    for (const JobBeside& job : report.jobs) {
      SweepRow& row = rows.emplace_back(SweepRow{.variant = variant.name, .job = job.name});
      double sum = 0;
      for (const double step : job.steps_s) sum += step;
      if (!job.steps_s.empty()) row.time_s = sum / static_cast<double>(job.steps_s.size());
    }
  }
  return rows;
}

RunPoint run_or_serve(std::function<Result<model::Outcome>(const model::ScenarioFile&)> run) {
  return [run = std::move(run)](const model::ScenarioFile& file) -> Result<std::vector<SweepRow>> {
    if (file.variants.front().section("inference").kind != Config::Kind::null)
      return run_services(file);
    WEFT_TRY(const model::Outcome outcome, run(file));
    return rows_of_run(outcome);
  };
}

bool changes_work(std::string_view key) {
  const std::vector<std::string_view> parts = split(key, '.');
  if (parts.front() == "seed" || key.starts_with("inference.requests")) return true;
  constexpr std::array<std::string_view, 6> design{"parallel", "place",  "algorithm",
                                                   "overlap",  "layout", "recompute"};
  return parts.front() == "jobs" && parts.size() > 2 &&
         std::ranges::find(design, parts[2]) == design.end();
}

Result<SweepCost> cost_of(const Config& section, const Prices& prices) {
  WEFT_TRY(const model::Fabric fabric, model::build_fabric(section));
  WEFT_TRY(const Bill bill, bill_of(fabric, prices));
  return SweepCost{bill.price, bill.watts};
}

Result<SweepShard> read_shard(const std::string& text) {
  const std::size_t slash = text.find('/');
  const auto number = whole_number<std::uint32_t>(text.substr(0, slash));
  const auto of = slash == std::string::npos
                      ? std::nullopt
                      : whole_number<std::uint32_t>(std::string_view(text).substr(slash + 1));
  if (!number || !of || *number < 1 || *number > *of)
    return fail(Errc::parse, {"--shard", 0, 0},
                fmt::format("\"{}\" is not a part of a sweep", text),
                "write K/N with K from 1 to N, e.g. 3/8");
  return SweepShard{*number, *of};
}

void run_points(const std::vector<SweepPoint>& points, const RunPoint& run,
                const SweepOptions& options, PointRows& rows) {
  WEFT_CHECK(rows.size() == points.size());
  std::vector<std::size_t> left;
  for (std::size_t i = 0; i < points.size(); ++i)
    if (!rows[i] && options.shard.has(i)) left.push_back(i);
  std::mutex mutex;
  std::size_t done = 0;
  Progress progress("sweep", static_cast<double>(left.size()), options.progress);
  parallel_for(left.size(), options.threads, [&](std::size_t at) {
    if (options.is_stopped && options.is_stopped()) return;
    const SweepPoint& point = points[left[at]];
    std::vector<SweepRow> of_point = with_values(point, run(point.scenario));
    if (options.price) add_costs(point, options.price, of_point);
    const std::lock_guard lock(mutex);
    rows[left[at]] = std::move(of_point);
    if (options.point_ended) options.point_ended(left[at], rows);
    progress.update(static_cast<double>(++done));
  });
  progress.finish();
}

SweepResult sweep_result(std::vector<std::string> keys, const PointRows& rows,
                         std::string currency) {
  SweepResult out{.keys = std::move(keys), .currency = std::move(currency)};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i]) {
      out.missing_points.push_back(i);
      continue;
    }
    if (std::ranges::any_of(*rows[i], [](const SweepRow& row) { return !row.error.empty(); }))
      ++out.failed_points;
    out.rows.insert(out.rows.end(), rows[i]->begin(), rows[i]->end());
  }
  std::vector<bool> is_work;
  for (const std::string& key : out.keys) {
    is_work.push_back(changes_work(key));
    if (is_work.back()) out.work_keys.push_back(key);
  }
  mark_fronts(out.rows, is_work);
  return out;
}

}  // namespace weft::plan
