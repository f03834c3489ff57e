#include "plan/sweep/sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/csv.hpp"
#include "base/parallel.hpp"

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

std::vector<SweepRow> rows_of(const SweepPoint& point, const Result<model::Outcome>& outcome) {
  std::vector<std::string> values;
  for (const auto& [key, value] : point.values) values.push_back(value);
  if (!outcome) {
    SweepRow row{.values = values};
    row.error = one_line(outcome.error());
    return {row};
  }
  std::vector<SweepRow> rows;
  for (const model::VariantOutcome& variant : outcome->variants) {
    double worst = model::no_number;
    for (const model::TierOutcome& tier : variant.tiers) worst = std::fmax(worst, tier.mmr);
    for (const model::JobOutcome& job : variant.jobs)
      rows.push_back({values, variant.name, job, worst,
                      job.unfinished ? model::to_text(*job.unfinished) : ""});
  }
  return rows;
}

// Prices each variant once.
void add_costs(const SweepPoint& point, const PriceVariant& price, std::vector<SweepRow>& rows) {
  for (const model::Scenario& variant : point.scenario.variants) {
    const auto cost = price(variant);
    for (SweepRow& row : rows) {
      if (row.variant != variant.name) continue;
      if (cost)
        row.cost = *cost;
      else if (row.error.empty())
        row.error = one_line(cost.error());
    }
  }
}

// Time, price and power: less is better.
using Merit = std::tuple<double, double, double>;
Merit merit(const SweepRow& row) { return {row.job.time_mean_s, row.cost->price, row.cost->watts}; }
bool beats(const Merit& a, const Merit& b) {
  return a != b && std::get<0>(a) <= std::get<0>(b) && std::get<1>(a) <= std::get<1>(b) &&
         std::get<2>(a) <= std::get<2>(b);
}

// In order of merits a row is beaten by earlier ones only, and then by one of the front.
void mark_front(std::vector<SweepRow*> rows) {
  std::ranges::stable_sort(rows, {}, [](const SweepRow* row) { return merit(*row); });
  std::vector<SweepRow*> front;
  SweepRow* best = nullptr;
  const auto price_of_rate = [](const SweepRow* row) {
    return row->job.time_mean_s * row->cost->price;
  };
  for (SweepRow* row : rows) {
    if (std::ranges::any_of(front, [&](SweepRow* f) { return beats(merit(*f), merit(*row)); }))
      continue;
    row->on_front = true;
    front.push_back(row);
    if (best == nullptr || price_of_rate(row) < price_of_rate(best)) best = row;
  }
  if (best != nullptr) best->is_best = true;
}

void mark_fronts(std::vector<SweepRow>& rows) {
  std::map<std::string, std::vector<SweepRow*>> jobs;
  for (SweepRow& row : rows)
    if (row.error.empty() && row.cost && row.job.time_mean_s > 0)
      jobs[row.job.name].push_back(&row);
  for (const auto& [name, of_job] : jobs) mark_front(of_job);
}

std::string number(double value) { return std::isnan(value) ? "" : fmt::format("{}", value); }
std::string shown(double value, double scale) {
  return std::isnan(value) ? "-" : fmt::format("{:.4g}", value * scale);
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

SweepResult run_sweep(const std::vector<SweepPoint>& points, const RunPoint& run,
                      std::uint32_t threads, Progress& progress, const PriceVariant& price) {
  std::vector<std::vector<SweepRow>> rows(points.size());
  std::atomic<std::size_t> failed{0};
  std::size_t done = 0;
  std::mutex progress_mutex;
  parallel_for(points.size(), threads, [&](std::size_t i) {
    const Result<model::Outcome> outcome = run(points[i].scenario);
    rows[i] = rows_of(points[i], outcome);
    if (price) add_costs(points[i], price, rows[i]);
    if (std::ranges::any_of(rows[i], [](const SweepRow& row) { return !row.error.empty(); }))
      ++failed;
    const std::lock_guard lock(progress_mutex);
    progress.update(static_cast<double>(++done));
  });
  SweepResult out;
  if (!points.empty())
    for (const auto& [key, value] : points.front().values) out.keys.push_back(key);
  for (std::vector<SweepRow>& list : rows)
    for (SweepRow& row : list) out.rows.push_back(std::move(row));
  out.failed_points = failed;
  mark_fronts(out.rows);
  return out;
}

namespace {

// What training jobs have beside others; shown where a sweep has such jobs.
struct TrainingColumn {
  const char* head;  // of the table
  const char* name;  // of CSV and JSON
  double scale;      // of the table
  double model::TrainingOutcome::* value;
};
constexpr std::array<TrainingColumn, 4> training_columns{{
    {"MFU %", "mfu", 100, &model::TrainingOutcome::mfu},
    {"TFLOP/s/GPU", "tflops_per_gpu", 1, &model::TrainingOutcome::tflops_per_gpu},
    {"tokens/s/GPU", "tokens_per_s_per_gpu", 1, &model::TrainingOutcome::tokens_per_s_per_gpu},
    {"bubble %", "bubble", 100, &model::TrainingOutcome::bubble},
}};

bool has_training(const SweepResult& result) {
  return std::ranges::any_of(result.rows,
                             [](const SweepRow& row) { return row.job.training.has_value(); });
}

double training_value(const SweepRow& row, const TrainingColumn& column) {
  return row.job.training ? (*row.job.training).*column.value : model::no_number;
}

// What a price table adds: iterations a second per million of price and per MW, and the front.
struct CostColumn {
  const char* head;  // of the table
  const char* name;  // of CSV and JSON
  double scale;      // of the table
  double (*value)(const SweepRow& row);
};
constexpr std::array<CostColumn, 4> cost_columns{{
    {"cost", "cost", 1, [](const SweepRow& row) { return row.cost->price; }},
    {"kW", "watts", 1e-3, [](const SweepRow& row) { return row.cost->watts; }},
    {"1/s per M", "per_s_per_million", 1,
     [](const SweepRow& row) { return 1e6 / (row.job.time_mean_s * row.cost->price); }},
    {"1/s per MW", "per_s_per_mw", 1,
     [](const SweepRow& row) { return 1e6 / (row.job.time_mean_s * row.cost->watts); }},
}};
double cost_value(const SweepRow& row, const CostColumn& column) {
  const double value = row.cost ? column.value(row) : model::no_number;
  return std::isfinite(value) ? value : model::no_number;
}
const char* front_text(const SweepRow& row) {
  return row.is_best ? "best" : row.on_front ? "front" : "";
}

}  // namespace

std::string to_table(const SweepResult& result) {
  using enum Table::Align;
  std::vector<Table::Head> heads;
  for (const std::string& key : result.keys) heads.push_back({key, right});
  for (const char* name : {"variant", "job"}) heads.push_back({name, left});
  for (const char* name : {"time ms", "busbw GB/s", "x roofline", "worst MMR"})
    heads.push_back({name, right});
  const bool training = has_training(result);
  if (training)
    for (const TrainingColumn& column : training_columns) heads.push_back({column.head, right});
  const bool priced = !result.currency.empty();
  if (priced) {
    for (const CostColumn& column : cost_columns) heads.push_back({column.head, right});
    heads.push_back({"Pareto, " + result.currency, left});
  }
  Table table(heads);
  for (const SweepRow& row : result.rows) {
    std::vector<std::string> cells = row.values;
    cells.push_back(row.variant);
    const std::string_view gap = row.job.name.empty() ? "" : " ";
    cells.push_back(row.error.empty()
                        ? row.job.name
                        : fmt::format("{}{}failed: {}", row.job.name, gap, row.error));
    cells.push_back(shown(row.job.time_mean_s, 1e3));
    cells.push_back(shown(row.job.busbw_gbyte_s, 1));
    cells.push_back(shown(row.job.ratio, 1));
    cells.push_back(shown(row.worst_mmr, 1));
    if (training)
      for (const TrainingColumn& column : training_columns)
        cells.push_back(shown(training_value(row, column), column.scale));
    if (priced) {
      for (const CostColumn& column : cost_columns)
        cells.push_back(shown(cost_value(row, column), column.scale));
      cells.push_back(front_text(row));
    }
    table.add(std::move(cells));
  }
  return table.text();
}

std::string to_csv(const SweepResult& result) {
  std::string out;
  for (const std::string& key : result.keys) out += csv_cell(key) + ",";
  const bool training = has_training(result);
  out += "variant,job,time_s,algbw_GBps,busbw_GBps,roofline_s,ratio,worst_mmr,";
  if (training)
    for (const TrainingColumn& column : training_columns) out += fmt::format("{},", column.name);
  const bool priced = !result.currency.empty();
  if (priced) {
    for (const CostColumn& column : cost_columns) out += fmt::format("{},", column.name);
    out += "pareto,";
  }
  out += "error\n";
  for (const SweepRow& row : result.rows) {
    for (const std::string& value : row.values) out += csv_cell(value) + ",";
    out += fmt::format("{},{},{},{},{},{},{},{},", csv_cell(row.variant), csv_cell(row.job.name),
                       number(row.job.time_mean_s), number(row.job.algbw_gbyte_s),
                       number(row.job.busbw_gbyte_s), number(row.job.roofline_s),
                       number(row.job.ratio), number(row.worst_mmr));
    if (training)
      for (const TrainingColumn& column : training_columns)
        out += fmt::format("{},", number(training_value(row, column)));
    if (priced) {
      for (const CostColumn& column : cost_columns)
        out += fmt::format("{},", number(cost_value(row, column)));
      out += fmt::format("{},", front_text(row));
    }
    out += csv_cell(row.error) + "\n";
  }
  return out;
}

std::string to_json(const SweepResult& result) {
  using Json = nlohmann::ordered_json;
  const auto value = [](double x) { return std::isnan(x) ? Json() : Json(x); };
  Json rows = Json::array();
  for (const SweepRow& row : result.rows) {
    Json point = Json::object();
    for (std::size_t k = 0; k < result.keys.size(); ++k) point[result.keys[k]] = row.values[k];
    Json entry{{"point", std::move(point)}};
    if (!row.error.empty()) entry["error"] = row.error;
    if (!row.variant.empty()) {
      entry["variant"] = row.variant;
      entry["job"] = row.job.name;
      entry["time_s"] = value(row.job.time_mean_s);
      entry["algbw_GBps"] = value(row.job.algbw_gbyte_s);
      entry["busbw_GBps"] = value(row.job.busbw_gbyte_s);
      entry["roofline_s"] = value(row.job.roofline_s);
      entry["ratio"] = value(row.job.ratio);
      entry["worst_mmr"] = value(row.worst_mmr);
      if (row.job.training)
        for (const TrainingColumn& column : training_columns)
          entry[column.name] = value(training_value(row, column));
      if (row.cost) {
        for (const CostColumn& column : cost_columns)
          entry[column.name] = value(cost_value(row, column));
        entry["pareto"] = front_text(row);
      }
    }
    rows.push_back(std::move(entry));
  }
  Json out{{"keys", result.keys}, {"rows", rows}, {"failed_points", result.failed_points}};
  if (!result.currency.empty()) out["currency"] = result.currency;
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace weft::plan
