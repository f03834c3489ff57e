#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/parallel.hpp"
#include "cli/cli.hpp"
#include "cli/commands.hpp"
#include "plan/run/setup.hpp"
#include "plan/spares/plan.hpp"

namespace weft::cli {
namespace {

namespace spares = plan::spares;

struct SparesArgs {
  std::string scenario;
  double years = 0;
};

constexpr double default_years = 1000;  // where the closed form does not hold

Status run_spares(const Common& common, const SparesArgs& args) {
  WEFT_TRY(const auto options, common.load_options({"name", "fabric", "seed", "spares"}));
  WEFT_TRY(const auto file, model::load_scenario(args.scenario, options));
  const model::Scenario& scenario = file.variants.front();
  WEFT_TRY(const plan::Setup setup, plan::read_setup(scenario));
  Errors errors;
  const spares::Outages outages =
      spares::read_outages(setup.fabric, scenario.section("spares"), errors);
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  std::optional<spares::Simulated> simulated;
  if (args.years > 0 || outages.needs_simulation())
    simulated = spares::simulate(outages, {.years = args.years > 0 ? args.years : default_years,
                                           .seed = scenario.seed,
                                           .threads = threads_or_all(common.threads)});
  const spares::SparePlan plan = spares::plan_spares(outages, std::move(simulated));
  fmt::print("{}", common.json ? spares::to_json(plan) : spares::to_table(plan));
  return {};
}

}  // namespace

void add_spares(Commands& commands) {
  const auto [c, args] =
      commands.add<SparesArgs>("spares", "How many spare hosts, and in which zones", run_spares);
  c.add_option("scenario", args.scenario, "YAML file with fabric: and spares:")->required();
  c.add_option("--years", args.years, "Years to simulate beside the closed form")
      ->check(CLI::Range(0.1, 1e6));
}

}  // namespace weft::cli
