#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>

#include "base/file.hpp"
#include "cli/cli.hpp"
#include "cli/commands.hpp"
#include "observe/forecast/forecast.hpp"
#include "plan/report/report.hpp"

namespace weft::cli {
namespace {

namespace forecast = observe::forecast;

struct ForecastArgs {
  std::string path, page;
  forecast::Options options;
  double percent = 95;
  bool keep_outages = false;
};

Status run_forecast(const Common& common, const ForecastArgs& args) {
  WEFT_TRY(std::string text, read_file(args.path));
  if (text.starts_with("\x1f\x8b")) {
    WEFT_TRY(text, gunzip(text, args.path));
  }
  WEFT_TRY(const forecast::Series series, forecast::read_series(text, args.path));
  forecast::Options options = args.options;
  options.level = args.percent / 100;
  if (args.keep_outages) options.outages = forecast::Options::Outages::kept;
  WEFT_TRY(const auto result, forecast::predict(series, options, args.path));
  const std::string json = to_json(result), table = to_table(result);
  fmt::print("{}{}", common.json ? json : table, common.json ? "\n" : "");
  if (args.page.empty()) return {};
  // A whole season before it, so that both are seen.
  const std::size_t season = result.seasons.empty() ? 0 : result.seasons.back();
  const std::size_t before = std::max(season, 2 * options.horizon);
  return write_file(
      args.page,
      plan::report::page_text(
          {.title = std::filesystem::path(args.path).stem().string(),
           .command = "forecast",
           .table = table,
           .data = {{"forecast-data", json}, {"forecast-history", history_json(series, before)}}}));
}

}  // namespace

void add_forecast(Commands& commands) {
  const auto [c, args] = commands.add<ForecastArgs>(
      "forecast", "What will this series be, and within which limits?", run_forecast);
  c.add_option("series", args.path, "CSV with time, value and, optionally, event; also gzipped")
      ->required();
  c.add_option("--horizon", args.options.horizon, "Steps ahead")->check(CLI::Range(1, 100000));
  c.add_option("--season", args.options.seasons, "Seasons in steps, e.g. 24,168")
      ->delimiter(',')
      ->check(CLI::Range(2, 1000000));
  c.add_option("--level", args.percent, "Percent of the values that the interval is to hold")
      ->check(CLI::Range(1.0, 99.9));
  c.add_option("--page", args.page, "HTML file: the series, its forecast and interval");
  c.add_flag("--keep-outages", args.keep_outages, "What looks like an outage is demand, too");
}

}  // namespace weft::cli
