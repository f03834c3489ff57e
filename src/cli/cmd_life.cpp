#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>

#include "base/file.hpp"
#include "base/parallel.hpp"
#include "cli/cli.hpp"
#include "cli/commands.hpp"
#include "model/scenario/scenario.hpp"
#include "plan/life/report.hpp"
#include "plan/report/report.hpp"

namespace weft::cli {
namespace {

namespace life = plan::life;

struct LifeArgs {
  std::string scenario, page;
};

Status run_life(const Common& common, const LifeArgs& args) {
  WEFT_TRY(const auto options, common.load_options({"name", "seed", "life"}));
  WEFT_TRY(const auto file, model::load_scenario(args.scenario, options));
  const model::Scenario& scenario = file.variants.front();
  if (scenario.section("life").kind == Config::Kind::null)
    return fail(Errc::parse, scenario.root.where, "\"life:\" is missing",
                "add one, as in scenarios/life-llama3.yaml");
  Errors errors;
  const life::LifePlan plan = life::read_life(scenario.section("life"), errors);
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  WEFT_TRY(const life::LifeReport report,
           life::make_report(plan, {scenario.seed, threads_or_all(common.threads)}));
  if (!args.page.empty())
    WEFT_TRY_STATUS(write_file(
        args.page,
        plan::report::page_text({.title = std::filesystem::path(args.scenario).stem().string(),
                                 .command = "life",
                                 .table = life::to_table(report),
                                 .data = {{"life-data", life::to_json(report)}}})));
  fmt::print("{}", common.json ? life::to_json(report) : life::to_table(report));
  return {};
}

}  // namespace

void add_life(Commands& commands) {
  const auto [c, args] = commands.add<LifeArgs>(
      "life", "Goodput of a job over weeks, and what would change it", run_life);
  c.add_option("scenario", args.scenario, "YAML file with life:")->required();
  c.add_option("--page", args.page, "HTML file: a waterfall from all time to goodput, what-ifs");
}

}  // namespace weft::cli
