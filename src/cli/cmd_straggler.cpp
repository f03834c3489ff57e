#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "base/json_text.hpp"
#include "base/plural.hpp"
#include "base/text.hpp"
#include "cli/cli.hpp"
#include "cli/commands.hpp"
#include "observe/straggler/what_if.hpp"

namespace weft::cli {
namespace {

namespace straggler = observe::straggler;

struct StragglerArgs {
  std::string path, ideal;
};

constexpr int found_cause = 1;  // exit status
constexpr std::size_t workers_shown = 16;

// Slowdown by worker: replicas down, stages across; the slowest ones where that would not fit.
std::string workers_text(const straggler::Timeline& t, const straggler::Report& r) {
  const bool fits = t.replicas.size() <= 64 && t.stage_count <= 12;
  std::vector<Table::Head> heads{{"replica"}};
  if (!fits) {
    heads.insert(heads.end(), {{"stage"}, {"slowdown"}});
    Table table(heads);
    for (std::size_t i = 0; i < std::min(workers_shown, r.workers.size()); ++i)
      table.add({fmt::format("{}", t.replicas[r.workers[i].replica]),
                 fmt::format("{}", r.workers[i].stage),
                 fmt::format("{:.3f}", r.workers[i].slowdown)});
    return fmt::format("{}({} of {} workers)\n", table.text(), table.row_count(), r.workers.size());
  }
  for (std::uint32_t p = 0; p < t.stage_count; ++p) heads.push_back({fmt::format("stage {}", p)});
  Table table(heads);
  for (std::size_t replica = 0; replica < t.replicas.size(); ++replica) {
    std::vector<std::string> cells(1 + t.stage_count);
    cells[0] = fmt::format("{}", t.replicas[replica]);
    for (const auto& w : r.workers)
      if (w.replica == replica) cells[1 + w.stage] = fmt::format("{:.3f}", w.slowdown);
    table.add(std::move(cells));
  }
  return table.text();
}

void print_straggler_report(const straggler::Timeline& t, const straggler::Report& r) {
  fmt::print("{} of {} and {}, {} a step\n\n", counted(t.steps.size(), "step"),
             counted(t.replicas.size(), "replica"), counted(t.stage_count, "stage"),
             counted(t.replicas.size() * t.ops.size(), "operation"));
  fmt::print("step {:.3f} s, {:.3f} s without stragglers: slowdown {:.4f}\n", r.actual_s, r.ideal_s,
             r.slowdown());
  fmt::print("cause: {}: {}\n\n", to_text(r.cause), meaning(r.cause));
  fmt::print("{:5.1f} % of the loss goes with the slowest {} of {} workers\n",
             100 * r.slowest_share, r.slowest_count, r.workers.size());
  fmt::print("{:5.1f} % of the loss goes with the last stage\n", 100 * r.last_stage_share);
  fmt::print("backward computes of a worker spread by {:.1f} %, correlation of stages {:.2f}\n\n",
             100 * r.spread, r.correlation);
  fmt::print("slowdown by worker\n{}\n", workers_text(t, r));
  Table kinds({{"operation", Table::Align::left}, {"typical"}, {"slowdown"}});
  for (std::size_t k = 0; k < straggler::kind_count; ++k)
    if (r.by_kind[k] > 0)
      kinds.add({std::string(to_text(static_cast<straggler::Kind>(k))),
                 fmt::format("{:.3f} ms", 1e3 * r.typical_s[k]),
                 fmt::format("{:.3f}", r.by_kind[k])});
  fmt::print("{}", kinds.text());
  for (const std::string& note : t.notes) fmt::print("note: {}\n", note);
}

void print_straggler_json(const straggler::Timeline& t, const straggler::Report& r) {
  JsonList workers, kinds, steps;
  for (const auto& w : r.workers)
    workers.add(JsonObject()
                    .add("replica", t.replicas[w.replica])
                    .add("stage", w.stage)
                    .add("slowdown", w.slowdown, digits(6)));
  for (std::size_t k = 0; k < straggler::kind_count; ++k)
    if (r.by_kind[k] > 0)
      kinds.add(JsonObject()
                    .add("operation", to_text(static_cast<straggler::Kind>(k)))
                    .add("typical_s", r.typical_s[k], digits(6))
                    .add("slowdown", r.by_kind[k], digits(6)));
  for (std::size_t s = 0; s < t.steps.size(); ++s)
    steps.add(JsonObject().add("step", t.steps[s]).add("seconds", r.step_s[s], digits(6)));
  fmt::print("{}\n", JsonObject()
                         .add("actual_s", r.actual_s, digits(6))
                         .add("ideal_s", r.ideal_s, digits(6))
                         .add("slowdown", r.slowdown(), digits(6))
                         .add("cause", to_text(r.cause))
                         .add("meaning", meaning(r.cause))
                         .add("slowest_workers", r.slowest_count)
                         .add("slowest_share", r.slowest_share, digits(6))
                         .add("last_stage_share", r.last_stage_share, digits(6))
                         .add("spread", r.spread, digits(6))
                         .add("correlation", r.correlation, digits(6))
                         .add("workers", workers)
                         .add("operations", kinds)
                         .add("steps", steps)
                         .add("notes", t.notes)
                         .text());
}

Result<straggler::Timeline> read_timeline_file(const std::string& path) {
  WEFT_TRY(std::string content, read_file(path));
  if (content.starts_with("\x1f\x8b")) {
    WEFT_TRY(content, gunzip(content, path));
  }
  return straggler::read_timeline(content, path);
}

int straggler_command(const Common& common, const StragglerArgs& args) {
  const auto timeline = read_timeline_file(args.path);
  if (!timeline) return report(timeline.error());
  const auto model = straggler::StepModel::read(*timeline, args.path);
  if (!model) return report(model.error());
  const straggler::Report result = analyse(*timeline, *model);
  if (!args.ideal.empty())
    if (const Status written = write_file(args.ideal, ideal_trace(*timeline, *model)); !written)
      return report(written.error());
  if (common.json)
    print_straggler_json(*timeline, result);
  else
    print_straggler_report(*timeline, result);
  return result.cause == straggler::Cause::none ? done : found_cause;
}

}  // namespace

void add_straggler(Commands& commands) {
  const auto [command, args] = commands.add<StragglerArgs>(
      "straggler", "What would a recorded training step take without its stragglers?",
      straggler_command);
  command
      .add_option("timeline", args.path, "Chrome trace of the workers' operations, also gzipped")
      ->required();
  command.add_option("--ideal", args.ideal,
                     "Write the first step beside the ideal one, as a Chrome trace");
}

}  // namespace weft::cli
