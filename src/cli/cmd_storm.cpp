#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "adapt/sim/score.hpp"
#include "adapt/sim/storm_write.hpp"
#include "base/file.hpp"
#include "base/line_reader.hpp"
#include "cli/cli.hpp"
#include "cli/commands.hpp"
#include "model/events/episode.hpp"

namespace weft::cli {
namespace {

struct StormArgs {
  std::string fabric, out, format = "records", start;
  std::vector<std::string> types, dialects;
  std::uint32_t faults = 400, ports_per_card = 36, wrong_clocks = 2;
  std::uint64_t lines = 200'000;
  double hours = 6, adjacent = 0, lost = 0.03, doubled = 0.02, starved = 0.01;
  // Of `weft storm score`.
  bool score = false;
  std::string cases, storm;
};

namespace sim = adapt::sim;
namespace telemetry = observe::telemetry;

template <std::size_t n>
std::vector<std::string> to_strings(const std::array<std::string_view, n>& names) {
  return {names.begin(), names.end()};
}

std::unexpected<Error> unknown(const char* option, const std::string& name,
                               const std::vector<std::string>& known) {
  return fail(Errc::unknown, {option, 0, 0},
              fmt::format("unknown name {}{}", quote(name), did_you_mean(name, known)),
              fmt::format("choose one of: {}", fmt::join(known, ", ")));
}

Result<sim::StormOptions> read_options(const Common& common, const StormArgs& args) {
  sim::StormOptions out;
  out.faults = args.faults;
  out.lines = args.lines;
  out.hours = args.hours;
  out.adjacent = args.adjacent;
  out.seed = common.seed.value_or(1);
  out.ports_per_card = args.ports_per_card;
  out.wrong_clocks = args.wrong_clocks;
  out.lost = args.lost;
  out.doubled = args.doubled;
  out.starved = args.starved;
  if (!args.start.empty()) {
    WEFT_TRY(out.start, parse_timestamp({args.start, {"--start", 0, 0}}));
  }
  for (const std::string& name : args.types) {
    const auto type = sim::problem_type(name);
    if (!type) return unknown("--types", name, to_strings(sim::problem_type_names));
    out.types.push_back(*type);
  }
  for (const std::string& pair : args.dialects) {
    const std::size_t at = pair.find('=');
    if (at == std::string::npos)
      return fail(Errc::parse, {"--dialects", 0, 0}, fmt::format("{} has no \"=\"", quote(pair)),
                  "write e.g. rtsw=junos");
    const auto dialect = telemetry::dialect(pair.substr(at + 1));
    if (!dialect)
      return unknown("--dialects", pair.substr(at + 1), to_strings(telemetry::dialect_names));
    out.dialects[pair.substr(0, at)] = *dialect;
  }
  return out;
}

Status run_storm(const Common& common, const StormArgs& args) {
  if (args.fabric.empty() || args.out.empty())
    return fail(Errc::parse, {}, "--fabric and --out are required",
                "use weft storm --fabric F --out DIR");
  const std::vector<std::string> formats{"records", "syslog"};
  if (args.format != "records" && args.format != "syslog")
    return unknown("--format", args.format, formats);
  WEFT_TRY(const sim::StormOptions options, read_options(common, args));
  WEFT_TRY(const model::Fabric fabric, load_fabric(common, args.fabric));
  WEFT_TRY(const sim::Storm storm, sim::generate_storm(fabric, options));
  const auto format =
      args.format == "syslog" ? sim::StormFormat::syslog : sim::StormFormat::records;
  WEFT_TRY_STATUS(sim::write_storm(fabric, storm, options, format, args.out));
  fmt::print("{}",
             common.json ? sim::storm_json(storm, options) : sim::storm_summary(storm, options));
  return {};
}

Status run_score(const Common& common, const StormArgs& args) {
  WEFT_TRY(LineReader truth_lines, LineReader::open(args.storm + "/truth.jsonl"));
  WEFT_TRY(const auto truth, model::read_episodes(truth_lines));
  WEFT_TRY(LineReader label_lines, LineReader::open(args.storm + "/labels.jsonl"));
  WEFT_TRY(const sim::StormLabels labels, sim::read_labels(label_lines));
  WEFT_TRY(const std::string text, read_file(args.cases));
  WEFT_TRY(const auto cases, sim::read_cases(text, args.cases));
  WEFT_TRY(const sim::Score score, sim::score_cases(truth, labels, cases));
  fmt::print("{}", common.json ? sim::to_json(score) : sim::to_table(score));
  if (!common.json && !common.quiet)
    for (const std::string& line : score.wrong) fmt::print(stderr, "weft: note: {}\n", line);
  return {};
}

int storm_command(const Common& common, const StormArgs& args) {
  const Status status = args.score ? run_score(common, args) : run_storm(common, args);
  return status ? done : report(status.error());
}

}  // namespace

void add_storm(Commands& commands) {
  const auto [command, args] = commands.add<StormArgs>(
      "storm", "Generate a storm of events with known faults", storm_command);
  command.add_option("--fabric", args.fabric, "Scenario or fabric file");
  command.add_option("-o,--out", args.out, "Directory for the files of the storm");
  command.add_option("--faults", args.faults, "Number of faults; 0 for background only");
  command.add_option("--lines", args.lines, "Total number of lines; 0: twice those of the faults");
  command.add_option("--hours", args.hours, "Duration of the storm");
  command.add_option("--adjacent", args.adjacent,
                     "Share of faults that overlap and adjoin another");
  command.add_option("--types", args.types, "Use only faults of these types")->delimiter(',');
  command.add_option("--format", args.format, "records or syslog");
  command.add_option("--dialects", args.dialects, "ROLE=DIALECT, e.g. rtsw=junos")->delimiter(',');
  command.add_option("--ports-per-card", args.ports_per_card,
                     "Switches with more ports than this have line cards");
  command.add_option("--wrong-clocks", args.wrong_clocks,
                     "Number of switches whose clock is off by hours");
  command.add_option("--lost", args.lost, "Share of lines lost");
  command.add_option("--doubled", args.doubled, "Share of lines duplicated");
  command.add_option("--starved", args.starved, "Share of hosts that stall occasionally");
  command.add_option("--start", args.start, "Start of the storm, RFC 3339");
  CLI::App* score = command.add_subcommand("score", "Score cases against the truth of a storm");
  score->add_option("cases", args.cases, "Cases: JSON lines; - for standard input")->required();
  score->add_option("--storm", args.storm, "Directory of the storm")->required();
  score->callback([&args = args] { args.score = true; });
  commands.add_common(*score);
}

}  // namespace weft::cli
