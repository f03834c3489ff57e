// A sweep as table, CSV and JSON: one list of columns for all three.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <ranges>

#include "base/csv.hpp"
#include "base/line_plot.hpp"
#include "base/plural.hpp"
#include "base/text.hpp"
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

// A price table adds iterations a second per price and per watt.
std::optional<double> rate_per(const SweepRow& row, std::optional<double> what) {
  if (!row.time_s || !what || *row.time_s * *what <= 0) return std::nullopt;
  return 1 / (*row.time_s * *what);
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
    {"1/s per M", "per_s_per_cost", 1e6, [](Row r) { return rate_per(r, r.price); }, Shown::priced},
    {"1/s per MW", "per_s_per_watt", 1e6, [](Row r) { return rate_per(r, r.watts); },
     Shown::priced},
}};

bool is_training(const SweepRow& row) {
  return row.mfu || row.tflops_per_gpu || row.tokens_per_s_per_gpu || row.bubble;
}

bool is_serving(const SweepRow& row) { return row.ttft_p99_s.has_value(); }

std::string shown(std::optional<double> value, double scale) {
  if (!value) return "-";
  const double number = *value * scale;
  const bool is_long = std::abs(number) >= 9999.5 && std::abs(number) < 1e15;
  return is_long ? fmt::format("{:.0f}", number) : fmt::format("{:.4g}", number);
}
const char* front_text(const SweepRow& row) {
  return row.is_best ? "best" : row.on_front ? "front" : "";
}

// "4", "16" -> 4, 16; also with one unit behind all of them.
struct Numbers {
  std::vector<double> values;
  std::string unit;
};
std::optional<Numbers> numbers_of(const std::vector<std::string>& values) {
  Numbers out;
  for (const std::string& value : values) {
    const std::size_t digits = std::min(value.size(), value.find_first_not_of("0123456789."));
    const auto number = parse_number({std::string_view(value).substr(0, digits), {}});
    const std::string_view unit = trim(std::string_view(value).substr(digits));
    if (!number || (!out.values.empty() && unit != out.unit)) return std::nullopt;
    out.unit = unit;
    out.values.push_back(*number);
  }
  return out;
}

bool spans_decades(const std::vector<double>& values) {
  const auto [least, most] = std::ranges::minmax(values);
  return least > 0 && most / least > 20;
}

const Column* named_column(std::string_view name) {
  return std::ranges::find(columns, name, [](const Column& c) { return std::string_view(c.name); });
}

bool is_drawn(const SweepRow& row, const Column& column) {
  return row.error.empty() && column.value(row).has_value();
}

// The column that is drawn: one that some row has.
Result<const Column*> plotted(const SweepResult& result, std::string_view given) {
  const auto has_value = [&](std::string_view name) {
    const Column* const column = named_column(name);
    return std::ranges::any_of(result.rows,
                               [&](const SweepRow& row) { return is_drawn(row, *column); });
  };
  if (!given.empty() && has_value(given)) return named_column(given);
  if (!given.empty())
    return fail(Errc::value, {"--show", 0, 0}, fmt::format("no row has a value of {}", given),
                "choose a column of the table");
  for (const std::string_view name : {"goodput_per_s", "ttft_p99_s", "time_s"})
    if (has_value(name)) return named_column(name);
  return fail(Errc::value, {"--svg", 0, 0}, "no row has a value to draw", "see its errors");
}

// "channels" of "transport.cts.channels", where no other key ends alike.
std::string_view short_key(const std::vector<std::string>& keys, std::size_t k) {
  const std::string_view own = split(keys[k], '.').back();
  for (std::size_t other = 0; other < keys.size(); ++other)
    if (other != k && split(keys[other], '.').back() == own) return keys[k];
  return own;
}

std::string line_name(const SweepResult& result, const SweepRow& row, std::size_t without,
                      bool variants, bool jobs) {
  std::vector<std::string> parts;
  if (variants) parts.push_back(row.variant);
  if (jobs) parts.push_back(row.job);
  for (std::size_t k = 0; k < result.keys.size(); ++k)
    if (k != without)
      parts.push_back(fmt::format("{} {}", short_key(result.keys, k), row.values[k]));
  return parts.empty() ? row.job : fmt::format("{}", fmt::join(parts, ", "));
}

// Whether rows with a value have several of these.
bool differ(const std::vector<const SweepRow*>& rows, std::string SweepRow::* name) {
  return std::ranges::any_of(rows, [&](const SweepRow* r) { return r->*name != rows[0]->*name; });
}

}  // namespace

Status check_plot(const std::vector<std::string>& keys, const SweepPlot& plot) {
  const auto names = columns | std::views::transform(&Column::name);
  if (!plot.column.empty() && named_column(plot.column) == columns.end())
    return fail(Errc::unknown, {"--show", 0, 0},
                fmt::format("no column is called {}", quote(plot.column)),
                fmt::format("choose one of: {}", fmt::join(names, ", ")));
  if (!plot.key.empty() && std::ranges::find(keys, plot.key) == keys.end())
    return fail(Errc::unknown, {"--over", 0, 0}, fmt::format("{} is not swept", quote(plot.key)),
                fmt::format("the keys are {}", fmt::join(keys, ", ")));
  return {};
}

Result<std::string> to_svg(const SweepResult& result, const SweepPlot& plot) {
  WEFT_TRY_STATUS(check_plot(result.keys, plot));
  WEFT_TRY(const Column* const column, plotted(result, plot.column));
  const std::size_t key = plot.key.empty()
                              ? 0
                              : static_cast<std::size_t>(std::ranges::find(result.keys, plot.key) -
                                                         result.keys.begin());
  std::vector<const SweepRow*> rows;
  std::vector<std::string> values;
  for (const SweepRow& row : result.rows) {
    if (!is_drawn(row, *column)) continue;
    rows.push_back(&row);
    if (std::ranges::find(values, row.values[key]) == values.end())
      values.push_back(row.values[key]);
  }
  const auto numbers = numbers_of(values);
  const std::string_view title = *column->head != '\0' ? column->head : column->name;
  LinePlot out{.x_title = result.keys[key], .y_title = std::string(title), .lines = {}};
  if (!numbers) {
    out.places = values;
  } else {
    out.log_x = spans_decades(numbers->values);
    if (!numbers->unit.empty()) out.x_title += ", " + numbers->unit;
  }
  const bool variants = differ(rows, &SweepRow::variant), jobs = differ(rows, &SweepRow::job);
  for (const SweepRow* row : rows) {
    const std::string name = line_name(result, *row, key, variants, jobs);
    auto line = std::ranges::find(out.lines, name, &LinePlot::Line::name);
    if (line == out.lines.end()) line = out.lines.insert(line, {name, {}});
    const auto at =
        static_cast<std::size_t>(std::ranges::find(values, row->values[key]) - values.begin());
    const double y = *column->value(*row) * column->scale;
    line->points.push_back(
        {.x = numbers ? numbers->values[at] : static_cast<double>(at),
         .y = y,
         .title = fmt::format("{} {}: {:.4g}", result.keys[key], values[at], y)});
  }
  std::vector<double> drawn;
  for (LinePlot::Line& line : out.lines) {
    if (numbers) std::ranges::stable_sort(line.points, {}, &LinePlot::Point::x);
    for (const LinePlot::Point& point : line.points) drawn.push_back(point.y);
  }
  out.log_y = spans_decades(drawn);
  return to_svg(out);
}

namespace {

// Errors by cause, below the table: "failed: fabric.spines=0, job a (and 1 more row): ...".
std::string failures_of(const SweepResult& result) {
  struct Cause {
    const SweepRow* first;
    std::size_t rows;
  };
  std::vector<Cause> causes;
  for (const SweepRow& row : result.rows) {
    if (row.error.empty()) continue;
    const auto known =
        std::ranges::find(causes, row.error, [](const Cause& c) { return c.first->error; });
    if (known != causes.end()) ++known->rows;
    if (known == causes.end()) causes.push_back({&row, 1});
  }
  std::string out;
  for (const auto& [first, rows] : causes) {
    std::string point;
    const auto add = [&](std::string_view name, std::string_view value, char between) {
      if (!value.empty())
        point += fmt::format("{}{}{}{}", point.empty() ? "" : ", ", name, between, value);
    };
    for (std::size_t key = 0; key < result.keys.size(); ++key)
      add(result.keys[key], first->values[key], '=');
    add("variant", first->variant, ' ');
    add("job", first->job, ' ');
    if (rows > 1) point += fmt::format(" (and {})", counted(rows - 1, "more row"));
    out += fmt::format("failed: {}: {}\n", point, first->error);
  }
  return out.empty() ? out : "\n" + out;
}

}  // namespace

std::string to_table(const SweepResult& result) {
  using enum Table::Align;
  const bool priced = !result.currency.empty();
  const bool training = std::ranges::any_of(result.rows, is_training);
  const bool serving = std::ranges::any_of(result.rows, is_serving);
  const auto has_value = [&](const Column& column) {
    return std::ranges::any_of(result.rows,
                               [&](const SweepRow& row) { return column.value(row).has_value(); });
  };
  const bool jobs = !serving || !std::ranges::all_of(result.rows, is_serving);
  const auto has = [&](const Column& column) {
    return (column.shown == Shown::jobs && jobs) || (column.shown == Shown::training && training) ||
           (column.shown == Shown::serving && has_value(column)) ||
           (column.shown == Shown::priced && priced);
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
    cells.push_back(row.error.empty() ? row.job : fmt::format("{}{}failed", row.job, gap));
    for (const Column& column : columns)
      if (has(column)) cells.push_back(shown(column.value(row), column.scale));
    if (priced) cells.push_back(front_text(row));
    table.add(std::move(cells));
  }
  const auto estimates = std::ranges::count_if(
      result.rows, [](const SweepRow& row) { return row.estimate.has_value(); });
  return table.text() + failures_of(result) +
         (estimates > 0 ? fmt::format("\nnote: times of {} are estimates from a part of the work "
                                      "(engine.estimate)\n",
                                      counted(static_cast<std::size_t>(estimates), "row"))
                        : "");
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
      if (row.estimate)
        entry["estimate"] = {{"share", row.estimate->share}, {"spread", row.estimate->spread}};
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
