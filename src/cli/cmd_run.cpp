#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/file.hpp"
#include "base/parallel.hpp"
#include "cli/cli.hpp"
#include "cli/commands.hpp"
#include "plan/report/report.hpp"
#include "plan/run/run.hpp"

namespace weft::cli {
namespace {

struct RunArgs {
  std::string scenario;
  std::string out;  // directory; empty: none
};

int run_command(const Common& common, const RunArgs& args) {
  const auto options = common.load_options();
  if (!options) return report(options.error());
  const auto file = model::load_scenario(args.scenario, *options);
  if (!file) return report(file.error());
  return run_and_report(common, *file, args.out);
}

}  // namespace

int run_and_report(const Common& common, const model::ScenarioFile& file, const std::string& out) {
  if (!out.empty())
    if (const Status usable = plan::report::check_directory(out); !usable) {
      report(usable.error());
      return work_failed;
    }
  const auto outcome = plan::run_scenario(file, {.command = common.command,
                                                 .progress = common.progress(),
                                                 .threads = threads_or_all(common.threads)});
  if (!outcome) return report(outcome.error());
  if (common.json) {
    const auto json = plan::report::json_text(*outcome);
    if (!json) return report(json.error());
    fmt::print("{}", *json);
  } else {
    fmt::print("{}", plan::report::terminal_text(*outcome));
  }
  if (!out.empty()) {
    if (const Status written = plan::report::write_report(*outcome, out); !written) {
      report(written.error());
      return work_failed;
    }
    if (!plan::report::page_is_interactive())
      fmt::print(stderr, "weft: note: {}\n", plan::report::page_is_plain);
    if (!common.json)
      fmt::print("\nReport: {0}/report.html  Data: {0}/report.json  Trace: {0}/trace.json.gz\n",
                 out);
  }
  return plan::has_unfinished(*outcome) || plan::has_lossless_drops(*outcome) ? work_failed : done;
}

void add_run(Commands& commands) {
  const auto [c, args] =
      commands.add<RunArgs>("run", "Simulate a scenario and compare its variants", run_command);
  c.add_option("scenario", args.scenario, "YAML file")->required();
  c.add_option("-o,--out", args.out, "Directory for report.json, report.html and trace.json.gz");
}

}  // namespace weft::cli
