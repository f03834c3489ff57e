// weft regions: which region runs which job, and which data is copied where for that.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/file.hpp"
#include "cli/cli.hpp"
#include "cli/commands.hpp"
#include "plan/regions/regions.hpp"

namespace weft::cli {
namespace {

namespace regions = plan::regions;

struct RegionsArgs {
  std::string file, copies, demands, transfers;
  double effort = 1;
};

Status run_regions(const Common& common, const RegionsArgs& args) {
  WEFT_TRY(const std::string text, read_file(args.file));
  WEFT_TRY(const regions::Problem problem, regions::read_problem(text, args.file));
  WEFT_TRY(
      const regions::Plan plan,
      regions::plan_regions(problem, {.effort = args.effort, .seed = common.seed.value_or(1)}));
  if (!args.copies.empty())
    WEFT_TRY_STATUS(write_file(args.copies, regions::copies_csv(problem, plan)));
  if (!args.transfers.empty())
    WEFT_TRY_STATUS(write_file(args.transfers, regions::transfers_csv(problem, plan)));
  if (!args.demands.empty()) {
    const auto replication = args.transfers.empty() ? regions::Replication::as_demands
                                                    : regions::Replication::as_transfers;
    WEFT_TRY_STATUS(write_file(
        args.demands, regions::demands_csv(regions::traffic_of(problem, plan), replication)));
  }
  fmt::print("{}",
             common.json ? regions::to_json(problem, plan) : regions::to_table(problem, plan));
  return {};
}

}  // namespace

void add_regions(Commands& commands) {
  const auto [c, args] = commands.add<RegionsArgs>(
      "regions", "Which region runs which job, and which data is copied for that", run_regions);
  c.add_option("file", args.file, "YAML file with regions:, data: and jobs:")->required();
  c.add_option("--copies", args.copies, "CSV file for the copies to make");
  c.add_option("--write-demands", args.demands,
               "CSV file for the traffic between sites by hour, class and cause");
  c.add_option("--write-transfers", args.transfers,
               "CSV file for the copies due in a day, which are in no --write-demands then");
  c.add_option("--effort", args.effort, "Search so many times as long")
      ->check(CLI::Range(0.01, 1000.0));
}

}  // namespace weft::cli
