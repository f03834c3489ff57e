// A sweep as table, CSV and JSON: one list of columns for all three.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/csv.hpp"
#include "plan/sweep/sweep.hpp"

namespace weft::plan {
namespace {

enum class Shown : std::uint8_t { jobs, not_in_table, training, serving, priced };

struct Column {
  const char* head;  // of the table
  const char* name;  // of CSV and JSON
  double scale;      // of the table
  std::optional<double> (*value)(const SweepRow& row);
  Shown shown = Shown::jobs;
};

// A price table adds iterations a second per million of price and per MW.
std::optional<double> rate_per(const SweepRow& row, std::optional<double> what) {
  if (!row.time_s || !what || *row.time_s * *what <= 0) return std::nullopt;
  return 1e6 / (*row.time_s * *what);
}

using Row = const SweepRow&;
constexpr std::array<Column, 21> columns{{
    {"time ms", "time_s", 1e3, [](Row r) { return r.time_s; }},
    {"", "algbw_GBps", 1, [](Row r) { return r.algbw_gbyte_s; }, Shown::not_in_table},
    {"busbw GB/s", "busbw_GBps", 1, [](Row r) { return r.busbw_gbyte_s; }},
    {"", "roofline_s", 1, [](Row r) { return r.roofline_s; }, Shown::not_in_table},
    {"x roofline", "ratio", 1, [](Row r) { return r.ratio; }},
    {"worst MMR", "worst_mmr", 1, [](Row r) { return r.worst_mmr; }},
    {"MFU %", "mfu", 100, [](Row r) { return r.mfu; }, Shown::training},
    {"TFLOP/s/GPU", "tflops_per_gpu", 1, [](Row r) { return r.tflops_per_gpu; }, Shown::training},
    {"tokens/s/GPU", "tokens_per_s_per_gpu", 1, [](Row r) { return r.tokens_per_s_per_gpu; },
     Shown::training},
    {"bubble %", "bubble", 100, [](Row r) { return r.bubble; }, Shown::training},
    {"TTFT p99 ms", "ttft_p99_s", 1e3, [](Row r) { return r.ttft_p99_s; }, Shown::serving},
    {"TPOT p99 ms", "tpot_p99_s", 1e3, [](Row r) { return r.tpot_p99_s; }, Shown::serving},
    {"e2e p99 ms", "e2e_p99_s", 1e3, [](Row r) { return r.e2e_p99_s; }, Shown::serving},
    {"output tokens/s", "output_tokens_per_s", 1, [](Row r) { return r.output_tokens_per_s; },
     Shown::serving},
    {"goodput/s", "goodput_per_s", 1, [](Row r) { return r.goodput_per_s; }, Shown::serving},
    {"kept %", "kept", 100, [](Row r) { return r.kept; }, Shown::serving},
    {"cost/M tokens", "token_cost", 1, [](Row r) { return r.token_cost; }, Shown::serving},
    {"cost", "cost", 1, [](Row r) { return r.price; }, Shown::priced},
    {"kW", "watts", 1e-3, [](Row r) { return r.watts; }, Shown::priced},
    {"1/s per M", "per_s_per_million", 1, [](Row r) { return rate_per(r, r.price); },
     Shown::priced},
    {"1/s per MW", "per_s_per_mw", 1, [](Row r) { return rate_per(r, r.watts); }, Shown::priced},
}};

bool is_training(const SweepRow& row) {
  return row.mfu || row.tflops_per_gpu || row.tokens_per_s_per_gpu || row.bubble;
}

bool is_serving(const SweepRow& row) { return row.ttft_p99_s.has_value(); }

std::string shown(std::optional<double> value, double scale) {
  return value ? fmt::format("{:.4g}", *value * scale) : "-";
}
const char* front_text(const SweepRow& row) {
  return row.is_best ? "best" : row.on_front ? "front" : "";
}

}  // namespace

std::string to_table(const SweepResult& result) {
  using enum Table::Align;
  const bool priced = !result.currency.empty();
  const bool training = std::ranges::any_of(result.rows, is_training);
  const bool serving = std::ranges::any_of(result.rows, is_serving);
  const bool jobs = !serving || !std::ranges::all_of(result.rows, is_serving);
  const auto has = [&](const Column& column) {
    return (column.shown == Shown::jobs && jobs) || (column.shown == Shown::training && training) ||
           (column.shown == Shown::serving && serving) || (column.shown == Shown::priced && priced);
  };
  std::vector<Table::Head> heads;
  for (const std::string& key : result.keys) heads.push_back({key, right});
  for (const char* name : {"variant", "job"}) heads.push_back({name, left});
  for (const Column& column : columns)
    if (has(column)) heads.push_back({column.head, right});
  if (priced) heads.push_back({"Pareto, " + result.currency, left});
  Table table(heads);
  for (const SweepRow& row : result.rows) {
    std::vector<std::string> cells = row.values;
    cells.push_back(row.variant);
    const std::string_view gap = row.job.empty() ? "" : " ";
    cells.push_back(row.error.empty() ? row.job
                                      : fmt::format("{}{}failed: {}", row.job, gap, row.error));
    for (const Column& column : columns)
      if (has(column)) cells.push_back(shown(column.value(row), column.scale));
    if (priced) cells.push_back(front_text(row));
    table.add(std::move(cells));
  }
  return table.text();
}

std::string csv_head(const std::vector<std::string>& keys, bool priced) {
  std::string out;
  for (const std::string& key : keys) out += csv_cell(key) + ",";
  out += "variant,job,";
  for (const Column& column : columns)
    if (column.shown != Shown::priced || priced) out += fmt::format("{},", column.name);
  return out + (priced ? "pareto,error\n" : "error\n");
}

std::string csv_row(const SweepRow& row, bool priced) {
  std::string out;
  for (const std::string& value : row.values) out += csv_cell(value) + ",";
  out += fmt::format("{},{},", csv_cell(row.variant), csv_cell(row.job));
  for (const Column& column : columns) {
    if (column.shown == Shown::priced && !priced) continue;
    const std::optional<double> value = column.value(row);
    out += value ? fmt::format("{},", *value) : ",";
  }
  if (priced) out += fmt::format("{},", front_text(row));
  return out + csv_cell(row.error) + "\n";
}

std::string to_csv(const SweepResult& result) {
  const bool priced = !result.currency.empty();
  std::string out = csv_head(result.keys, priced);
  for (const SweepRow& row : result.rows) out += csv_row(row, priced);
  return out;
}

std::string to_json(const SweepResult& result) {
  using Json = nlohmann::ordered_json;
  Json rows = Json::array();
  for (const SweepRow& row : result.rows) {
    Json point = Json::object();
    for (std::size_t k = 0; k < result.keys.size(); ++k) point[result.keys[k]] = row.values[k];
    Json entry{{"point", std::move(point)}};
    if (!row.error.empty()) entry["error"] = row.error;
    if (!row.variant.empty()) {
      entry["variant"] = row.variant;
      entry["job"] = row.job;
      for (const Column& column : columns) {
        const bool is_of_kind = column.shown == Shown::priced     ? row.price.has_value()
                                : column.shown == Shown::serving  ? is_serving(row)
                                : column.shown == Shown::training ? is_training(row)
                                                                  : !is_serving(row);
        if (!is_of_kind) continue;
        const std::optional<double> value = column.value(row);
        entry[column.name] = value ? Json(*value) : Json();
      }
      if (row.price) entry["pareto"] = front_text(row);
    }
    rows.push_back(std::move(entry));
  }
  Json out{{"keys", result.keys}, {"rows", rows}, {"failed_points", result.failed_points}};
  if (!result.work_keys.empty()) out["work_keys"] = result.work_keys;
  if (!result.currency.empty()) out["currency"] = result.currency;
  if (!result.missing_points.empty()) out["missing_points"] = result.missing_points;
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace weft::plan
