#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/file.hpp"
#include "base/parallel.hpp"
#include "cli/cli.hpp"
#include "cli/commands.hpp"
#include "model/formats/build_fabric.hpp"
#include "plan/design/bill.hpp"
#include "plan/run/run.hpp"
#include "plan/sweep/sweep.hpp"

namespace weft::cli {
namespace {

struct SweepArgs {
  std::string scenario;
  std::string csv;     // file; empty: none
  std::string prices;  // file; empty: none
};

Result<plan::SweepCost> cost_of(const model::Scenario& variant, const plan::Prices& prices) {
  WEFT_TRY(const model::Fabric fabric, model::build_fabric(variant.section("fabric")));
  WEFT_TRY(const plan::Bill bill, plan::bill_of(fabric, prices));
  return plan::SweepCost{bill.price, bill.watts};
}

int sweep_command(const Common& common, const SweepArgs& args) {
  const auto options = common.load_options();
  if (!options) return report(options.error());
  const auto file = model::load_scenario(args.scenario, *options);
  if (!file) return report(file.error());
  const auto points = plan::sweep_points(*file);
  if (!points) return report(points.error());
  plan::Prices prices;
  plan::PriceVariant price;
  if (!args.prices.empty()) {
    auto table = plan::load_prices(args.prices);
    if (!table) return report(table.error());
    prices = *std::move(table);
    price = [&](const model::Scenario& variant) { return cost_of(variant, prices); };
  }

  const std::uint32_t threads = threads_or_all(common.threads);
  Progress progress("sweep", static_cast<double>(points->size()), common.progress());
  const auto run = [&](const model::ScenarioFile& point) {
    return plan::run_scenario(point, {.command = common.command});
  };
  plan::SweepResult result = plan::run_sweep(*points, run, threads, progress, price);
  result.currency = prices.currency;
  progress.finish();
  fmt::print("{}", common.json ? plan::to_json(result) : plan::to_table(result));
  if (!args.csv.empty())
    if (const Status written = write_file(args.csv, plan::to_csv(result)); !written) {
      report(written.error());
      return work_failed;
    }
  return result.failed_points == 0 ? done : work_failed;
}

}  // namespace

void add_sweep(Commands& commands) {
  const auto [c, args] = commands.add<SweepArgs>(
      "sweep", "Run a scenario for every combination of its sweep: keys", sweep_command);
  c.add_option("scenario", args.scenario, "YAML file with sweep:")->required();
  c.add_option("--csv", args.csv, "CSV file for the rows");
  c.add_option("--prices", args.prices, "Price table: cost, power and the Pareto front");
}

}  // namespace weft::cli
