#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>

#include "base/file.hpp"
#include "base/parallel.hpp"
#include "cli/cli.hpp"
#include "cli/commands.hpp"
#include "os/interrupt.hpp"
#include "plan/design/prices.hpp"
#include "plan/report/report.hpp"
#include "plan/run/run.hpp"
#include "plan/sweep/journal.hpp"

namespace weft::cli {
namespace {

struct SweepArgs {
  std::string scenario;
  std::string csv;     // file; empty: none
  std::string prices;  // file; empty: none
  std::string out;     // directory; empty: none
  std::string shard = "1/1";
  std::string svg;  // file; empty: none
  plan::SweepPlot plot;
  bool resume = false;
};

struct MergeArgs {
  std::vector<std::string> directories;
  std::string out;  // empty: the first of them
};

Status write_results(const std::string& directory, const plan::SweepHead& head,
                     const plan::SweepResult& result) {
  const auto path = [&](const char* name) { return (std::filesystem::path(directory) / name); };
  const std::string json = plan::to_json(result);
  WEFT_TRY_STATUS(write_file(path("rows.csv"), plan::to_csv(result)));
  WEFT_TRY_STATUS(write_file(path("sweep.json"), json));
  return write_file(path("sweep.html"),
                    plan::report::page_text({.title = std::filesystem::path(head.scenario).stem(),
                                             .command = "sweep",
                                             .table = plan::to_table(result),
                                             .data = {{"sweep-data", json}}}));
}

// All that a sweep reads before it runs.
struct Prepared {
  std::vector<plan::SweepPoint> points;
  plan::Prices prices;
  plan::SweepHead head;
  plan::SweepShard shard;
};

Result<Prepared> prepare(const Common& common, const SweepArgs& args) {
  Prepared out;
  WEFT_TRY(out.shard, plan::read_shard(args.shard));
  if (args.out.empty() && (args.resume || !out.shard.is_whole()))
    return fail(Errc::parse, {args.resume ? "--resume" : "--shard", 0, 0}, "needs --out DIRECTORY",
                "what the points gave is kept there");
  WEFT_TRY(const model::LoadOptions options, common.load_options());
  WEFT_TRY(const model::ScenarioFile file, model::load_scenario(args.scenario, options));
  WEFT_TRY(out.points, plan::sweep_points(file));
  std::string prices;
  if (!args.prices.empty()) {
    WEFT_TRY(prices, read_file(args.prices));
    WEFT_TRY(out.prices, plan::load_prices(args.prices));
  }
  out.head = plan::sweep_head(out.points, prices, WEFT_VERSION);
  WEFT_TRY_STATUS(plan::check_plot(out.head.keys, args.plot));
  out.head.currency = out.prices.currency;
  out.head.shard = out.shard.number, out.head.shards = out.shard.of;
  return out;
}

// Runs what is missing; rows go to the journal and the CSV files as they come.
Status run_missing(const Common& common, const SweepArgs& args, const Prepared& sweep,
                   plan::PointRows& rows) {
  std::optional<plan::Journal> journal;
  std::vector<plan::CsvStream> streams;
  if (!args.out.empty()) {
    WEFT_TRY(journal, plan::Journal::open(args.out, sweep.head, args.resume, rows));
    if (sweep.shard.is_whole()) {
      WEFT_TRY(auto stream, plan::CsvStream::open(args.out + "/rows.csv", sweep.head));
      streams.push_back(std::move(stream));
    }
  }
  if (!args.csv.empty() && args.csv != "-") {
    WEFT_TRY(auto stream, plan::CsvStream::open(args.csv, sweep.head));
    streams.push_back(std::move(stream));
  }
  plan::SweepOptions options{.threads = threads_or_all(common.threads),
                             .progress = common.progress(),
                             .shard = sweep.shard};
  options.is_stopped = [&] { return Interrupt::signal() != 0 || (journal && !journal->status()); };
  options.point_ended = [&](std::size_t point, const plan::PointRows& so_far) {
    if (journal) journal->add(point, *so_far[point]);
    for (plan::CsvStream& stream : streams) stream.write_ready(so_far);
  };
  if (!args.prices.empty())
    options.price = [&](const model::Scenario& variant) {
      return plan::cost_of(variant.section("fabric"), sweep.prices);
    };
  const plan::RunPoint run = plan::run_or_serve([&](const model::ScenarioFile& point) {
    return plan::run_scenario(point, {.command = common.command});
  });
  plan::run_points(sweep.points, run, options, rows);
  return journal ? journal->status() : Status{};
}

void print_result(const Common& common, const plan::SweepResult& result) {
  fmt::print("{}", common.json ? plan::to_json(result) : plan::to_table(result));
}

Status write_plot(const SweepArgs& args, const plan::SweepResult& result) {
  WEFT_TRY(const std::string svg, plan::to_svg(result, args.plot));
  return write_file(args.svg, svg);
}

int sweep_command(const Common& common, const SweepArgs& args) {
  const auto sweep = prepare(common, args);
  if (!sweep) return report(sweep.error());
  const Interrupt interrupt("ends after the points in hand; once more ends at once");
  plan::PointRows rows(sweep->points.size());
  const Status ran = run_missing(common, args, *sweep, rows);
  if (!ran) return report(ran.error());
  plan::SweepResult result = plan::sweep_result(sweep->head.keys, rows, sweep->head.currency);
  // What other shards run is not missing here.
  std::erase_if(result.missing_points, [&](std::size_t i) { return !sweep->shard.has(i); });
  print_result(common, result);
  const bool is_whole = sweep->shard.is_whole();
  Status written;
  if (!args.csv.empty()) written = write_file(args.csv, plan::to_csv(result));
  if (written && !args.out.empty() && is_whole)
    written = write_results(args.out, sweep->head, result);
  if (written && !args.svg.empty()) written = write_plot(args, result);
  if (!written) {
    report(written.error());
    return work_failed;
  }
  if (!args.out.empty() && is_whole && !common.json)
    fmt::print("\nPage: {0}/sweep.html  Data: {0}/sweep.json, {0}/rows.csv\n", args.out);
  if (result.missing_points.empty()) return result.failed_points == 0 ? done : work_failed;
  fmt::print(stderr, "weft: stopped: {} did not run; {}\n",
             plan::describe_points(result.missing_points, sweep->points.size()),
             args.out.empty() ? "with --out, --resume can go on" : "go on with --resume");
  return 128 + Interrupt::signal();
}

int merge_command(const Common& common, const MergeArgs& args) {
  const auto merged = plan::read_journals(args.directories);
  if (!merged) return report(merged.error());
  const plan::SweepResult result =
      plan::sweep_result(merged->head.keys, merged->rows, merged->head.currency);
  print_result(common, result);
  const std::string out = args.out.empty() ? args.directories.front() : args.out;
  if (const Status written = write_results(out, merged->head, result); !written) {
    report(written.error());
    return work_failed;
  }
  if (!common.json) fmt::print("\nPage: {0}/sweep.html  Data: {0}/sweep.json, {0}/rows.csv\n", out);
  if (!result.missing_points.empty())
    fmt::print(stderr, "weft: warning: {} did not run yet\n",
               plan::describe_points(result.missing_points, merged->rows.size()));
  return result.missing_points.empty() && result.failed_points == 0 ? done : work_failed;
}

}  // namespace

void add_sweep(Commands& commands) {
  const auto [c, args] = commands.add<SweepArgs>(
      "sweep", "Run a scenario for every combination of its sweep: keys", sweep_command);
  c.add_option("scenario", args.scenario, "YAML file with sweep:")->required();
  c.add_option("--csv", args.csv, "CSV file for the rows, written as they come");
  auto* const svg = c.add_option("--svg", args.svg, "Drawing of one column to write");
  c.add_option("--show", args.plot.column, "Column to draw, as the CSV has it: time_s, mfu, ...")
      ->needs(svg);
  c.add_option("--over", args.plot.key, "Key of sweep: along the axis; the first one by default")
      ->needs(svg);
  c.add_option("--prices", args.prices, "Price table: cost, power and the Pareto front");
  c.add_option("-o,--out", args.out, "Directory for the page, its data and the points so far");
  c.add_flag("--resume", args.resume, "Go on with the points in --out");
  c.add_option("--shard", args.shard, "K/N: run the Kth of N parts (then: weft merge)");
}

void add_merge(Commands& commands) {
  const auto [c, args] = commands.add<MergeArgs>(
      "merge", "Put the parts of a sweep together: table, page, CSV and JSON", merge_command);
  c.add_option("directory", args.directories, "What --out of weft sweep was")->required();
  c.add_option("-o,--out", args.out, "Directory for the results; the first one by default");
}

}  // namespace weft::cli
