#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <filesystem>

#include "app/store/open_store.hpp"
#include "base/file.hpp"
#include "base/json_text.hpp"
#include "base/line_reader.hpp"
#include "base/parallel.hpp"
#include "base/plural.hpp"
#include "cli/cli.hpp"
#include "cli/commands.hpp"
#include "model/formats/build_fabric.hpp"
#include "plan/replay/replay.hpp"
#include "plan/report/report.hpp"

namespace weft::cli {
namespace {

using plan::replay::Interval;
using plan::replay::Line;
using plan::replay::Replay;
using plan::replay::Timeline;

struct ReplayArgs {
  std::string scenario, records, store, from, until, page;
  bool states = false;
};

// Records in the store's events; lines of other feeds are counted, not read.
Result<model::RecordSet> records_of_store(const std::string& where, const model::Fabric& fabric,
                                          std::uint64_t& others) {
  constexpr std::size_t rows = 10'000;
  WEFT_TRY(const auto store, app::open_existing_store(where));
  model::RecordLines lines(fabric);
  for (std::uint64_t next = 1;;) {
    WEFT_TRY(const std::vector<port::StoredEvent> events, store->events(next, rows));
    for (const port::StoredEvent& event : events) {
      const auto row = static_cast<std::uint32_t>(event.seq);
      if (event.feed != "record")
        ++others;
      else
        WEFT_TRY_STATUS(lines.add(event.line, {where, row, 0}));
    }
    if (events.size() < rows) return lines.take();
    next = events.back().seq + 1;
  }
}

Result<model::RecordSet> read_input(const ReplayArgs& args, const model::Fabric& fabric,
                                    std::uint64_t& others) {
  if (args.records.empty() == args.store.empty())
    return fail(Errc::parse, {}, "give either --records or --store",
                "records are the JSON lines that weft triage and weft serve read");
  if (!args.store.empty()) return records_of_store(args.store, fabric, others);
  WEFT_TRY(LineReader lines, LineReader::open(args.records));
  model::RecordCounts counts;
  return model::read_records(fabric, lines, counts);
}

Result<std::optional<Timestamp>> read_time(const std::string& text, const char* option) {
  if (text.empty()) return std::nullopt;
  WEFT_TRY(const Timestamp time, parse_timestamp({text, {option, 0, 0}}));
  return time;
}

double hours(const Interval& interval) {
  return static_cast<double>(interval.until.ns - interval.from.ns) * 1e-9 / 3600;
}

std::string step(double seconds) {
  return std::isnan(seconds) || seconds <= 0 ? "-" : human_seconds(seconds);
}

std::string states_table(const Replay& replay) {
  std::vector<Table::Head> heads{{"from", Table::Align::left}, {"hours"}, {"parts"}};
  for (const Line& line : replay.lines)
    heads.push_back({line.variant == "base" ? line.job : line.variant + " " + line.job});
  Table table(heads);
  for (const Interval& interval : replay.timeline.intervals) {
    std::vector<std::string> cells{to_text(interval.from), fmt::format("{:.2f}", hours(interval)),
                                   std::to_string(replay.timeline.states[interval.state].size())};
    for (const Line& line : replay.lines) cells.push_back(step(line.states_s[interval.state]));
    table.add(std::move(cells));
  }
  return table.text() + "\n";
}

std::string replay_table(const Replay& replay, bool states) {
  const Timeline& timeline = replay.timeline;
  double all = 0;
  for (const Interval& interval : timeline.intervals) all += hours(interval);
  std::string out = fmt::format(
      "{:.2f} hours, {} of {}; {} used, {} of other kinds{}\n\n", all,
      counted(timeline.intervals.size(), "interval"), counted(timeline.states.size(), "state"),
      counted(timeline.used, "record"), timeline.ignored,
      timeline.unknown == 0 ? "" : fmt::format(", {} of unknown parts", timeline.unknown));
  if (states) out += states_table(replay);
  Table table({{"variant", Table::Align::left},
               {"job", Table::Align::left},
               {"healthy"},
               {"mean"},
               {"worst"},
               {"minutes lost"},
               {"of them still"}});
  for (const Line& line : replay.lines)
    table.add({line.variant, line.job, step(line.healthy_s), step(line.mean_s), step(line.worst_s),
               fmt::format("{:.1f}", line.lost_s / 60), fmt::format("{:.1f}", line.still_s / 60)});
  return out + table.text();
}

std::string replay_json(const Replay& replay) {
  JsonList states, intervals, lines;
  for (const plan::replay::State& state : replay.timeline.states) {
    std::vector<std::string> parts;
    for (const plan::replay::Trouble& trouble : state)
      parts.push_back(trouble.kind + " " + trouble.name);
    states.add(parts);
  }
  for (const Interval& interval : replay.timeline.intervals)
    intervals.add(JsonObject()
                      .add("from", to_text(interval.from))
                      .add("until", to_text(interval.until))
                      .add("state", interval.state));
  for (const Line& line : replay.lines)
    lines.add(JsonObject()
                  .add("variant", line.variant)
                  .add("job", line.job)
                  .add("healthy_s", line.healthy_s)
                  .add("mean_s", line.mean_s)
                  .add("worst_s", line.worst_s)
                  .add("lost_s", line.lost_s)
                  .add("still_s", line.still_s)
                  .add("by_state_s", line.states_s));
  return JsonObject()
      .add("records_used", replay.timeline.used)
      .add("records_ignored", replay.timeline.ignored)
      .add("records_unknown", replay.timeline.unknown)
      .add("states", states)
      .add("intervals", intervals)
      .add("jobs", lines)
      .text();
}

Status replay_command(const Common& common, const ReplayArgs& args) {
  WEFT_TRY(const model::LoadOptions options, common.load_options());
  WEFT_TRY(const model::ScenarioFile file, model::load_scenario(args.scenario, options));
  WEFT_TRY(const model::Fabric fabric,
           model::build_fabric(file.variants.front().section("fabric")));
  plan::replay::Window window;
  WEFT_TRY(window.from, read_time(args.from, "--from"));
  WEFT_TRY(window.until, read_time(args.until, "--until"));
  std::uint64_t others = 0;
  WEFT_TRY(const model::RecordSet records, read_input(args, fabric, others));
  WEFT_TRY(Timeline timeline, plan::replay::timeline_of(fabric, records, window));
  timeline.ignored += others;
  if (timeline.unknown > 0)
    fmt::print(stderr,
               "weft: note: {} of parts that the fabric does not have; check that the scenario has "
               "the fabric of the records\n",
               counted(timeline.unknown, "record"));
  WEFT_TRY(const Replay replay, plan::replay::replay(file, std::move(timeline),
                                                     {.command = common.command,
                                                      .threads = threads_or_all(common.threads)}));
  const std::string json = replay_json(replay);
  fmt::print("{}", common.json ? json + "\n" : replay_table(replay, args.states));
  if (args.page.empty()) return {};
  return write_file(args.page, plan::report::page_text(
                                   {.title = std::filesystem::path(args.scenario).stem().string(),
                                    .command = "replay",
                                    .table = replay_table(replay, true),
                                    .data = {{"replay-data", json}}}));
}

}  // namespace

void add_replay(Commands& commands) {
  const auto [command, args] = commands.add<ReplayArgs>(
      "replay", "What would a day's failures have cost under other schemes?", replay_command);
  command.add_option("scenario", args.scenario, "Scenario file; compare: names the schemes")
      ->required();
  command.add_option("--records", args.records, "Records of the day, JSON lines");
  command.add_option("--store", args.store, "The store of weft serve, instead of --records");
  command.add_option("--from", args.from, "First moment (the first change)");
  command.add_option("--until", args.until, "End (the last change)");
  command.add_flag("--states", args.states, "Show every interval");
  command.add_option("--page", args.page, "HTML file: steps over the day, and what they cost");
}

}  // namespace weft::cli
