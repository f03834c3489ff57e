#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <utility>

#include "base/file.hpp"
#include "base/parallel.hpp"
#include "base/text.hpp"
#include "cli/cli.hpp"
#include "cli/commands.hpp"
#include "observe/straggler/kernels.hpp"
#include "plan/report/report.hpp"
#include "plan/run/run.hpp"

namespace weft::cli {
namespace {

struct RunArgs {
  std::string scenario;
  std::string out;  // directory; empty: none
  std::vector<std::string> recorded;
};

namespace straggler = observe::straggler;

struct Recorded {
  std::vector<model::VariantOutcome> traces;  // spans alone
  straggler::KernelTimes times;               // the mean over the files
};

Result<Recorded> read_recorded(const std::vector<std::string>& files) {
  Recorded out;
  const auto count = static_cast<double>(files.size());
  for (const std::string& path : files) {
    WEFT_TRY(std::string content, read_file(path));
    if (content.starts_with("\x1f\x8b")) {
      WEFT_TRY(content, gunzip(content, path));
    }
    WEFT_TRY(const straggler::KernelTrace trace, straggler::read_kernels(content, path));
    const straggler::KernelTimes times = times_of(trace);
    out.times.step_s += times.step_s / count;
    out.times.compute_s += times.compute_s / count;
    out.times.exposed_s += times.exposed_s / count;
    out.times.idle_s += times.idle_s / count;
    double first = HUGE_VAL;
    for (const straggler::Kernel& k : trace.kernels) first = std::min(first, k.start_s);
    auto& spans = out.traces.emplace_back().spans;
    out.traces.back().name = "recorded: " + path;
    for (const straggler::Kernel& k : trace.kernels)
      spans.push_back({.name = k.name,
                       .category = k.is_communication ? "communication" : "compute",
                       .track = fmt::format("GPU {} / stream {}", k.device, k.stream),
                       .start_s = k.start_s - first,
                       .duration_s = k.end_s - k.start_s,
                       .args = {}});
  }
  return out;
}

// Jobs of the first variant beside what was recorded, a step and GPU.
std::string recorded_table(const model::Outcome& outcome, const straggler::KernelTimes& recorded) {
  Table table({{"job", Table::Align::left},
               {"of a step", Table::Align::left},
               {"recorded"},
               {"predicted"},
               {"difference"}});
  for (const model::JobOutcome& job : outcome.variants.front().jobs) {
    if (!job.training) continue;
    const model::TrainingOutcome& ours = *job.training;
    double exposed = 0;
    for (const double seconds : ours.exposed_s) exposed += seconds;
    std::string name = job.name;
    const auto add = [&](const char* what, double theirs, double mine) {
      table.add({std::exchange(name, ""), what, human_seconds(theirs), human_seconds(mine),
                 theirs > 0 ? fmt::format("{:+.1f} %", 100 * (mine / theirs - 1)) : "-"});
    };
    add("all of it", recorded.step_s, ours.step_time_s);
    add("compute", recorded.compute_s, ours.compute_s);
    add("communication that nothing hides", recorded.exposed_s, exposed);
    add("nothing runs", recorded.idle_s, ours.idle_s);
  }
  return table.row_count() == 0 ? "" : table.text();
}

int run_command(const Common& common, const RunArgs& args) {
  const auto options = common.load_options();
  if (!options) return report(options.error());
  const auto file = model::load_scenario(args.scenario, *options);
  if (!file) return report(file.error());
  return run_and_report(common, *file, args.out, args.recorded);
}

}  // namespace

int run_and_report(const Common& common, const model::ScenarioFile& file, const std::string& out,
                   const std::vector<std::string>& recorded_files) {
  const auto recorded = read_recorded(recorded_files);
  if (!recorded) return report(recorded.error());
  if (!out.empty())
    if (const Status usable = plan::report::check_directory(out); !usable) {
      report(usable.error());
      return work_failed;
    }
  const auto outcome = plan::run_scenario(file, {.command = common.command,
                                                 .progress = common.progress(),
                                                 .threads = threads_or_all(common.threads),
                                                 .maps = !out.empty()});
  if (!outcome) return report(outcome.error());
  if (common.json) {
    const auto json = plan::report::json_text(*outcome);
    if (!json) return report(json.error());
    fmt::print("{}", *json);
  } else {
    fmt::print("{}", plan::report::terminal_text(*outcome));
    if (!recorded->traces.empty()) fmt::print("\n{}", recorded_table(*outcome, recorded->times));
  }
  if (!out.empty()) {
    if (const Status written = plan::report::write_report(*outcome, out, recorded->traces);
        !written) {
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
  c.add_option("--recorded", args.recorded,
               "Trace of PyTorch's profiler, of a rank each: printed and traced beside the first "
               "variant");
}

}  // namespace weft::cli
