#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/file.hpp"
#include "base/parallel.hpp"
#include "cli/cli.hpp"
#include "cli/commands.hpp"
#include "plan/failures/failures.hpp"
#include "plan/report/report.hpp"

namespace weft::cli {
namespace {

struct FailuresArgs {
  std::string scenario, variant, csv, page;
  std::uint32_t samples = 20;
  bool pairs = false, hosts = false;
};

Status run_failures(const Common& common, const FailuresArgs& args) {
  WEFT_TRY(const model::LoadOptions options, common.load_options());
  WEFT_TRY(const model::ScenarioFile file, model::load_scenario(args.scenario, options));
  WEFT_TRY(const model::Scenario* scenario, choose_variant(file, args.variant));
  WEFT_TRY(const plan::failures::Result result,
           plan::failures::run(*scenario, {.samples = args.samples,
                                           .pairs = args.pairs,
                                           .hosts = args.hosts,
                                           .seed = scenario->seed,
                                           .threads = threads_or_all(common.threads),
                                           .progress = common.progress()}));
  const std::string json = plan::failures::to_json(result),
                    table = plan::failures::to_table(result);
  fmt::print("{}", common.json ? json : table);
  if (!args.csv.empty()) WEFT_TRY_STATUS(write_file(args.csv, plan::failures::to_csv(result)));
  if (args.page.empty()) return {};
  return write_file(args.page, plan::report::page_text({.title = result.scenario,
                                                        .command = "failures",
                                                        .table = table,
                                                        .data = {{"failures-data", json}}}));
}

}  // namespace

void add_failures(Commands& commands) {
  const auto [c, args] = commands.add<FailuresArgs>(
      "failures", "What does each failure of the fabric do to the jobs?", run_failures);
  c.add_option("scenario", args.scenario, "Scenario file")->required();
  c.add_option("--variant", args.variant, "Variant of compare: (the first)");
  c.add_option("--samples", args.samples, "Failures of a role, or pair of roles, to run (20)")
      ->check(CLI::Range(1u, 1'000'000u));
  c.add_flag("--pairs", args.pairs, "Two failures at a time as well");
  c.add_flag("--hosts", args.hosts, "Hosts too");
  c.add_option("--csv", args.csv, "CSV file: a line for each run and job");
  c.add_option("--page", args.page, "HTML file: every run as a dot");
}

}  // namespace weft::cli
