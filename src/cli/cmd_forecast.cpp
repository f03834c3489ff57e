#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/file.hpp"
#include "cli/cli.hpp"
#include "cli/commands.hpp"
#include "observe/forecast/forecast.hpp"

namespace weft::cli {
namespace {

namespace forecast = observe::forecast;

struct ForecastArgs {
  std::string path;
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
  fmt::print("{}{}", common.json ? to_json(result) : to_table(result), common.json ? "\n" : "");
  return {};
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
  c.add_flag("--keep-outages", args.keep_outages, "What looks like an outage is demand, too");
}

}  // namespace weft::cli
