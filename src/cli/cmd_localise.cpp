#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/json_text.hpp"
#include "base/line_reader.hpp"
#include "base/plural.hpp"
#include "base/text.hpp"
#include "cli/cli.hpp"
#include "cli/commands.hpp"
#include "model/events/episode.hpp"
#include "model/events/evidence.hpp"
#include "model/fabric/faults.hpp"
#include "model/formats/build_fabric.hpp"
#include "observe/localise/localise.hpp"
#include "observe/localise/truth.hpp"

namespace weft::cli {
namespace {

struct LocaliseArgs {
  std::string evidence;  // file; "-" is standard input
  std::string fabric, counters, truth;
  std::string window;  // empty: all evidence is one window
  std::uint32_t card_ports = 0;
  double loss = 1e-3;
};

namespace localise = observe::localise;
using localise::LinkCounters;
using localise::Report;
using localise::Verdict;

constexpr std::size_t windows_max = 100'000;

struct Inputs {
  model::Fabric fabric;
  model::State believed;
  model::EvidenceSet evidence;
  std::vector<LinkCounters> counters;
  std::vector<model::Episode> truth;
  std::int64_t window_ns = 0;  // 0: one window
};

Result<std::int64_t> read_window(const std::string& text) {
  if (text.empty()) return 0;
  WEFT_TRY(const Duration length, parse_duration({text, {"--window", 0, 0}}));
  if (length < 1000_us)
    return fail(Errc::value, {"--window", 0, 0}, fmt::format("{} is too short", quote(text)),
                "use at least \"1 ms\"");
  return length.ps / ps_per_ns;
}

Result<Inputs> load(const Common& common, const LocaliseArgs& args) {
  Inputs out;
  WEFT_TRY(out.window_ns, read_window(args.window));
  WEFT_TRY(const model::LoadOptions options, common.load_options(fabric_file_keys()));
  WEFT_TRY(const model::ScenarioFile file, model::load_scenario(args.fabric, options));
  const model::Scenario& scenario = file.variants.front();
  WEFT_TRY(out.fabric, model::build_fabric(scenario.section("fabric")));
  WEFT_TRY(const model::FaultTimeline faults,
           model::read_faults(out.fabric, scenario.section("faults"), scenario.seed));
  out.believed = faults.initial();
  WEFT_TRY(LineReader lines, LineReader::open(args.evidence));
  WEFT_TRY(out.evidence, model::read_evidence(out.fabric, lines));
  if (out.evidence.rows.empty())
    return fail(Errc::value, {args.evidence, 0, 0}, "no evidence",
                "give a file with rows, as weft probe --json prints them");
  if (!args.counters.empty()) {
    WEFT_TRY(LineReader counter_lines, LineReader::open(args.counters));
    WEFT_TRY(out.counters, localise::read_counters(out.fabric, counter_lines));
  }
  if (!args.truth.empty()) {
    WEFT_TRY(LineReader truth_lines, LineReader::open(args.truth));
    WEFT_TRY(out.truth, model::read_episodes(truth_lines));
  }
  return out;
}

struct Window {
  model::EvidenceSet evidence;
  std::vector<LinkCounters> counters;
};

// Windows of the length asked for, from the first row on; rows and counters by their time.
Result<std::vector<Window>> cut(Inputs& in) {
  std::vector<Window> out;
  if (in.window_ns == 0) {
    out.push_back({std::move(in.evidence), std::move(in.counters)});
    return out;
  }
  std::map<std::int64_t, Window> by_time;
  const auto key = [&](Timestamp t) {
    return t.ns / in.window_ns - (t.ns % in.window_ns < 0 ? 1 : 0);
  };
  for (model::Evidence row : in.evidence.rows) {
    model::EvidenceSet& set = by_time[key(row.t)].evidence;
    if (set.classes.empty()) set.classes = in.evidence.classes;
    set.set_path(row, in.evidence.path(row));
    set.rows.push_back(row);
    if (by_time.size() > windows_max)
      return fail(Errc::value, {"--window", 0, 0},
                  fmt::format("the evidence spans more than {} windows", windows_max),
                  "use a longer window");
  }
  for (LinkCounters& row : in.counters)
    if (const auto found = by_time.find(key(row.t)); found != by_time.end())
      found->second.counters.push_back(std::move(row));
  for (auto& [time, window] : by_time) out.push_back(std::move(window));
  return out;
}

std::string percent(double share) { return share <= 0 ? "" : fmt::format("{:.3g} %", 100 * share); }

void print_verdicts(const model::Fabric& fabric, const Report& report) {
  Table table({{"entity", Table::Align::left},
               {"what", Table::Align::left},
               {"probability"},
               {"loss"},
               {"95 %"},
               {"probes"},
               {"lost"},
               {"class", Table::Align::left},
               {"or", Table::Align::left}});
  for (const Verdict& v : report.verdicts) {
    std::string others;
    for (const localise::Entity& other : v.alternatives)
      others += (others.empty() ? "" : ", ") + name(fabric, other);
    const bool measured = v.loss > 0;
    table.add({fmt::format("{} {}", to_text(v.entity.kind), name(fabric, v.entity)),
               std::string(to_text(v.finding)), fmt::format("{:.3f}", v.probability),
               percent(v.loss),
               measured ? fmt::format("{} - {}", percent(v.loss_low), percent(v.loss_high)) : "",
               std::to_string(v.probes), measured ? fmt::format("{:.0f}", v.lost) : "",
               v.traffic_class, others});
  }
  if (table.row_count() > 0) fmt::print("{}", table.text());
}

void print_missing(const model::Fabric& fabric, const Report& report) {
  if (!report.suspects.empty()) {
    const Verdict& v = *std::ranges::max_element(report.suspects, {}, &Verdict::probability);
    const std::string rest = report.suspects.size() > 1
                                 ? fmt::format("; {} with less (all with --json)",
                                               counted(report.suspects.size() - 1, "other suspect"))
                                 : std::string();
    fmt::print(
        "insufficient evidence: {} {} (perhaps {}, probability {:.2g}): send {} more probes over "
        "it{}\n",
        to_text(v.entity.kind), name(fabric, v.entity), percent(v.loss), v.probability,
        v.needs_probes, rest);
  }
  const localise::Coverage& c = report.coverage;
  if (c.links_short == 0) return;
  std::string links;
  for (std::size_t i = 0; i < std::min<std::size_t>(3, c.shortest.size()); ++i)
    links += (i > 0 ? ", " : "") + fabric.name(c.shortest[i]);
  fmt::print(
      "insufficient evidence: a loss of {} could go undetected on {} of {} links ({}{}): send {} "
      "more probes over them\n",
      percent(c.loss_of_interest), c.links_short, c.links, links, c.links_short > 3 ? ", ..." : "",
      c.needs_probes);
}

void print_report(const model::Fabric& fabric, const Report& report) {
  const std::string damaged =
      report.damaged > 0 ? fmt::format(", {} damaged", report.damaged) : std::string();
  fmt::print("{} .. {}: {}, {} lost, {} late{}; background loss per link {:.2g}\n",
             to_text(report.begin), to_text(report.end), counted(report.probes, "probe"),
             report.lost, report.late, damaged, report.background);
  print_verdicts(fabric, report);
  if (report.verdicts.empty()) fmt::print("nothing found\n");
  if (report.unexplained >= 0.5)
    fmt::print("{:.0f} lost probes are not explained by these\n", report.unexplained);
  print_missing(fabric, report);
}

void add_up(localise::Comparison& sum, const localise::Comparison& one) {
  sum.right.insert(sum.right.end(), one.right.begin(), one.right.end());
  sum.wrong.insert(sum.wrong.end(), one.wrong.begin(), one.wrong.end());
  sum.missed.insert(sum.missed.end(), one.missed.begin(), one.missed.end());
}

std::string compared(std::string_view what, const localise::Comparison& c, bool json) {
  if (json)
    return JsonObject()
               .add("compared", what)
               .add("precision", c.precision(), digits(6))
               .add("recall", c.recall(), digits(6))
               .add("right", c.right.size())
               .add("wrong", c.wrong.size())
               .add("missed", c.missed.size())
               .text() +
           "\n";
  std::string out = fmt::format("compared with the truth, {}: precision {:.4f}, recall {:.4f}\n",
                                what, c.precision(), c.recall());
  for (const std::string& one : c.wrong) out += "  false:  " + one + "\n";
  for (const std::string& one : c.missed) out += "  missed: " + one + "\n";
  return out;
}

Status work(const Common& common, const LocaliseArgs& args) {
  WEFT_TRY(Inputs in, load(common, args));
  const localise::Localiser localiser(
      in.fabric, {.card_ports = args.card_ports, .loss_of_interest = args.loss});
  WEFT_TRY(const std::vector<Window> windows, cut(in));
  localise::Comparisons sum;
  for (const Window& window : windows) {
    const Report report = localiser.run(window.evidence, window.counters, &in.believed);
    if (common.json)
      fmt::print("{}", to_json_lines(in.fabric, report));
    else
      print_report(in.fabric, report);
    WEFT_TRY(const localise::Comparisons one, compare(in.fabric, report, in.truth));
    add_up(sum.fabric, one.fabric);
    add_up(sum.congestion, one.congestion);
    add_up(sum.hosts, one.hosts);
  }
  if (args.truth.empty()) return {};
  fmt::print("{}{}{}", compared("fabric", sum.fabric, common.json),
             compared("congestion", sum.congestion, common.json),
             compared("hosts", sum.hosts, common.json));
  return {};
}

int localise_command(const Common& common, const LocaliseArgs& args) {
  const Status status = work(common, args);
  return status ? done : report(status.error());
}

}  // namespace

void add_localise(Commands& commands) {
  const auto [command, args] = commands.add<LocaliseArgs>(
      "localise", "Locate the links, switches and hosts that lose probes", localise_command);
  command.add_option("evidence", args.evidence, "Evidence as JSON lines; - for standard input")
      ->required();
  command.add_option("--fabric", args.fabric, "Scenario or fabric file")->required();
  command.add_option("--counters", args.counters, "Link counters as JSON lines");
  command.add_option("--truth", args.truth,
                     "True faults as JSON lines; prints precision and recall");
  command.add_option("--window", args.window,
                     "Split the evidence into windows, e.g. \"10 s\"; default: one window");
  command
      .add_option("--ports-per-card,--card-ports", args.card_ports, "Ports per line card, if known")
      ->check(CLI::Range(1, 100'000));
  command.add_option("--loss", args.loss, "Loss rate for the coverage check (0.001)")
      ->check(CLI::Range(1e-7, 1.0));
}

}  // namespace weft::cli
