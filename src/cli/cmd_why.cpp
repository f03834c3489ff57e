#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>

#include "base/json_text.hpp"
#include "base/parallel.hpp"
#include "base/percent.hpp"
#include "base/plural.hpp"
#include "cli/cli.hpp"
#include "cli/commands.hpp"
#include "model/work/outcome.hpp"
#include "plan/why/why.hpp"

namespace weft::cli {
namespace {

struct WhyArgs {
  std::string scenario, variant;
};

// What a job's communication on the critical path waited for, largest first; nothing where the
// engine does not know.
std::vector<std::pair<std::string, double>> waits_of(const model::JobOutcome& job) {
  if (!job.training || !job.training->link_waits) return {};
  const model::LinkWaits& waits = *job.training->link_waits;
  std::vector<std::pair<std::string, double>> out;
  for (const auto& [link, seconds] : waits.links) out.emplace_back(link, seconds);
  if (waits.other_links > 0)
    out.emplace_back(counted(waits.other_links, "other link"), waits.other_links_s);
  for (const auto& [what, seconds] : {std::pair{"latency of paths and software", waits.latency_s},
                                      {"pace of the library", waits.library_s},
                                      {"no path", waits.no_path_s},
                                      {"folded into compute", waits.folded_s}})
    if (seconds > 0) out.emplace_back(what, seconds);
  return out;
}

void print_waits(const plan::why::Answer& answer) {
  using Align = Table::Align;
  Table table({{"job", Align::left}, {"critical path waits for", Align::left}, {"time"}, {"step"}});
  for (const model::JobOutcome& job : answer.base.jobs)
    for (const auto& [what, seconds] : waits_of(job))
      table.add({job.name, what, human_seconds(seconds),
                 percent(seconds / job.training->step_time_s, 1)});
  if (table.row_count() > 0) fmt::print("\n{}", table.text());
}

void print_why(const plan::why::Answer& answer) {
  for (const std::string& finding : answer.findings) fmt::print("{}.\n", finding);
  print_waits(answer);
  std::vector<Table::Head> heads{{"job", Table::Align::left}, {"time"}};
  for (const auto& gain : answer.gains) heads.push_back({gain.name});
  Table table(heads);
  for (std::size_t j = 0; j < answer.base.jobs.size(); ++j) {
    const double time = model::time_of(answer.base.jobs[j]);
    std::vector<std::string> cells{answer.base.jobs[j].name,
                                   std::isnan(time) ? "-" : human_seconds(time)};
    for (const auto& gain : answer.gains)
      cells.push_back(std::isnan(gain.speed[j]) ? "-" : fmt::format("{:.2f}x", gain.speed[j]));
    table.add(std::move(cells));
  }
  fmt::print("\n{}\n", table.text());
  for (const auto& gain : answer.gains) fmt::print("{}: {}\n", gain.name, gain.keys);
  if (answer.base.estimate) fmt::print("\nnote: {}\n", to_text(*answer.base.estimate));
}

JsonObject waits_json(const model::LinkWaits& waits) {
  JsonList links;
  for (const auto& [link, seconds] : waits.links)
    links.add(JsonObject().add("link", link).add("seconds", seconds));
  return JsonObject()
      .add("links", links)
      .add("other_links", waits.other_links)
      .add("other_links_s", waits.other_links_s)
      .add("latency_s", waits.latency_s)
      .add("library_s", waits.library_s)
      .add("no_path_s", waits.no_path_s)
      .add("folded_s", waits.folded_s);
}

void print_why_json(const plan::why::Answer& answer) {
  JsonList jobs, gains;
  for (std::size_t j = 0; j < answer.base.jobs.size(); ++j) {
    const model::JobOutcome& job = answer.base.jobs[j];
    JsonObject row;
    row.add("name", job.name)
        .add("seconds", model::time_of(job))
        .add("finding", answer.findings[j]);
    if (job.training && job.training->link_waits)
      row.add("critical_path_waits", waits_json(*job.training->link_waits));
    jobs.add(row);
  }
  for (const auto& gain : answer.gains)
    gains.add(JsonObject().add("name", gain.name).add("keys", gain.keys).add("speed", gain.speed));
  fmt::print("{}\n", JsonObject()
                         .add("variant", answer.base.name)
                         .add("jobs", jobs)
                         .add("with", gains)
                         .add_if("estimate", answer.base.estimate)
                         .text());
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
