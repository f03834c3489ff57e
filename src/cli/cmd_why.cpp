#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>

#include "base/json_text.hpp"
#include "base/parallel.hpp"
#include "cli/cli.hpp"
#include "cli/commands.hpp"
#include "plan/report/finding.hpp"
#include "plan/why/why.hpp"

namespace weft::cli {
namespace {

struct WhyArgs {
  std::string scenario, variant;
};

void print_why(const plan::why::Answer& answer) {
  for (const std::string& finding : answer.findings) fmt::print("{}.\n", finding);
  std::vector<Table::Head> heads{{"job", Table::Align::left}, {"time"}};
  for (const auto& gain : answer.gains) heads.push_back({gain.name});
  Table table(heads);
  for (std::size_t j = 0; j < answer.base.jobs.size(); ++j) {
    const double time = plan::report::time_of(answer.base.jobs[j]);
    std::vector<std::string> cells{answer.base.jobs[j].name,
                                   std::isnan(time) ? "-" : human_seconds(time)};
    for (const auto& gain : answer.gains)
      cells.push_back(std::isnan(gain.speed[j]) ? "-" : fmt::format("{:.2f}x", gain.speed[j]));
    table.add(std::move(cells));
  }
  fmt::print("\n{}\n", table.text());
  for (const auto& gain : answer.gains) fmt::print("{}: {}\n", gain.name, gain.keys);
}

void print_why_json(const plan::why::Answer& answer) {
  JsonList jobs, gains;
  for (std::size_t j = 0; j < answer.base.jobs.size(); ++j)
    jobs.add(JsonObject()
                 .add("name", answer.base.jobs[j].name)
                 .add("seconds", plan::report::time_of(answer.base.jobs[j]))
                 .add("finding", answer.findings[j]));
  for (const auto& gain : answer.gains)
    gains.add(JsonObject().add("name", gain.name).add("keys", gain.keys).add("speed", gain.speed));
  fmt::print(
      "{}\n",
      JsonObject().add("variant", answer.base.name).add("jobs", jobs).add("with", gains).text());
}

int why_command(const Common& common, const WhyArgs& args) {
  const auto options = common.load_options();
  if (!options) return report(options.error());
  const auto file = model::load_scenario(args.scenario, *options);
  if (!file) return report(file.error());
  const auto chosen = choose_variant(*file, args.variant);
  if (!chosen) return report(chosen.error());
  return why_and_report(common, **chosen);
}

}  // namespace

int why_and_report(const Common& common, const model::Scenario& scenario) {
  const auto answer = plan::why::explain(scenario, {.command = common.command,
                                                    .progress = common.progress(),
                                                    .threads = threads_or_all(common.threads)});
  if (!answer) return report(answer.error());
  if (common.json)
    print_why_json(*answer);
  else
    print_why(*answer);
  return done;
}

void add_why(Commands& commands) {
  const auto [command, args] = commands.add<WhyArgs>(
      "why", "What does a scenario wait for, and what would help?", why_command);
  command.add_option("scenario", args.scenario, "Scenario file")->required();
  command.add_option("--variant", args.variant, "Variant of compare: (the first)");
}

}  // namespace weft::cli
