// weft validate: bandwidth tests between idle hosts, and what their results accuse.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>
#include <ranges>

#include "adapt/lab/rates.hpp"
#include "base/file.hpp"
#include "base/json_text.hpp"
#include "base/plural.hpp"
#include "base/text.hpp"
#include "cli/cli.hpp"
#include "cli/commands.hpp"
#include "cli/find_lab.hpp"
#include "operate/validate/judge.hpp"
#include "operate/validate/superbench.hpp"
#include "plan/place/host_names.hpp"

namespace weft::cli {
namespace {

namespace validate = operate::validate;
using plan::place::HostNames;

struct ValidateArgs {
  std::string action, fabric, exclude, down, plan, results, script, out = "-";
  std::string lab = "lab0", rate = "20 Mbps", length = "500 ms";
  std::optional<std::string> free;
  std::vector<std::string> busy;
  std::uint32_t crossings = 3;
  double least = validate::least_share;
  bool ports = false;
};

constexpr int not_sound = 1;             // exit status
constexpr std::size_t links_shown = 12;  // and hosts, and flows

Where validate_option(const char* name) { return {name, 0, 0}; }

Result<validate::RoundOptions> read_options(const FabricFile& file, const ValidateArgs& args) {
  const model::Fabric& fabric = file.fabric;
  const HostNames names(fabric);
  validate::RoundOptions out{.crossings = args.crossings,
                             .is_idle = std::vector<bool>(fabric.hosts().size(), !args.free),
                             .is_reserved = std::vector<bool>(fabric.cable_count(), false),
                             .state = {}};
  WEFT_TRY(out.state, read_down(fabric, args.down, "--down", file.state));
  WEFT_TRY(const auto free, names.read({args.free.value_or(""), validate_option("--free")}));
  for (const std::uint32_t host : free) out.is_idle[host] = true;
  WEFT_TRY(const auto excluded, names.read({args.exclude, validate_option("--exclude")}));
  for (const std::uint32_t host : excluded) out.is_idle[host] = false;
  for (const std::string& busy : args.busy) {
    const std::string list =
        busy.substr(busy.find('=') == std::string::npos ? 0 : busy.find('=') + 1);
    WEFT_TRY(const auto hosts, names.read({list, validate_option("--busy")}));
    std::vector<model::NodeId> job;
    for (const std::uint32_t host : hosts) {
      out.is_idle[host] = false;
      job.push_back(fabric.hosts()[host]);
    }
    const std::vector<bool> cables = validate::cables_of_job(fabric, job);
    for (std::size_t c = 0; c < cables.size(); ++c)
      if (cables[c]) out.is_reserved[c] = true;
  }
  return out;
}

// The first few by name.
std::string links_text(const model::Fabric& fabric, const std::vector<model::LinkId>& links) {
  std::string names;
  for (std::size_t i = 0; i < std::min(links_shown, links.size()); ++i)
    names += (i > 0 ? ", " : "") + fabric.name(links[i]);
  return fmt::format("{}: {}{}", counted(links.size(), "link"), names,
                     links.size() > links_shown ? ", ... (all with --json)" : "");
}

// Links that are crossed too rarely, by reason.
void print_gaps(std::FILE* to, const model::Fabric& fabric, const validate::Rounds& rounds) {
  std::map<validate::Gap, std::vector<model::LinkId>> by_reason;
  for (const auto& gap : rounds.uncovered) by_reason[gap.why].push_back(gap.link);
  for (const auto& [why, links] : by_reason)
    fmt::print(to, "  {}: {}\n", to_text(why), links_text(fabric, links));
}

// `without_port`: flows, where ports were asked for.
std::string plan_json(const model::Fabric& fabric, const validate::Rounds& rounds,
                      std::optional<std::size_t> without_port) {
  JsonList gaps;
  for (const auto& gap : rounds.uncovered)
    gaps.add(JsonObject()
                 .add("link", fabric.name(gap.link))
                 .add("why", to_text(gap.why))
                 .add("crossings", gap.crossings));
  JsonObject out;
  out.add("rounds", rounds.count)
      .add("least_rounds", rounds.least)
      .add("flows", rounds.flows.size())
      .add("covered_links", rounds.covered)
      .add("uncovered", gaps);
  if (without_port) out.add("flows_without_port", *without_port);
  return out.text();
}

Status write_plan(const model::Fabric& fabric, const ValidateArgs& args,
                  const validate::Rounds& rounds) {
  if (args.script.empty()) return write_file(args.out, to_csv(fabric, rounds));
  if (args.script == "superbench") return write_file(args.out, superbench_script(fabric, rounds));
  return write_file(args.out, script(fabric, rounds,
                                     args.script == "perftest" ? validate::Tool::perftest
                                                               : validate::Tool::nccl_tests));
}

int plan_command(const Common& common, const FabricFile& file, const ValidateArgs& args) {
  const model::Fabric& fabric = file.fabric;
  const auto options = read_options(file, args);
  if (!options) return report(options.error());
  auto rounds = validate::plan_rounds(fabric, *options);
  if (!rounds) return report(rounds.error());
  std::optional<std::size_t> without_port;
  if (args.ports) {
    auto router = route::Router::create(fabric, {}, common.seed.value_or(1));
    if (!router) return report(router.error());
    router->set_state(options->state);
    without_port = validate::choose_ports(*router, *rounds);
  }
  if (!common.json || args.out != "-")
    if (const Status written = write_plan(fabric, args, *rounds); !written)
      return report(written.error());
  if (common.json) {
    fmt::print("{}\n", plan_json(fabric, *rounds, without_port));
    return done;
  }
  std::FILE* const to = args.out == "-" ? stderr : stdout;
  fmt::print(to, "{} rounds (at least {}), {} flows; {} links are crossed {} times or more\n",
             rounds->count, rounds->least, rounds->flows.size(), rounds->covered, args.crossings);
  print_gaps(to, fabric, *rounds);
  if (args.script == "superbench")
    if (const std::size_t count = left_out_of_superbench(fabric, *rounds); count > 0)
      fmt::print(to, "  {} flows are left out: their NICs have different places in their hosts\n",
                 count);
  if (without_port.value_or(0) > 0)
    fmt::print(to, "  {} flows have no source port that leads them over their path\n",
               *without_port);
  return done;
}

// Of a CSV, of SuperBench's summary, or of a folder with what the tool printed for each flow.
Result<validate::Measured> read_results(const model::Fabric& fabric, const validate::Rounds& rounds,
                                        const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) {
    WEFT_TRY(const std::string text, read_file(path));
    if (path.ends_with(".jsonl")) return read_superbench(fabric, rounds, text, path);
    return validate::read_measured_csv(text, path);
  }
  validate::Measured out;
  Errors errors;
  std::vector<std::filesystem::path> paths;  // in no order of the file system
  for (const auto& entry : std::filesystem::directory_iterator(path, ignored))
    if (entry.path().extension() == ".txt") paths.push_back(entry.path());
  std::ranges::sort(paths);
  for (const auto& each : paths) {
    const std::string file = each.string();
    auto flow = parse_count({each.stem().string(), {file, 0, 0}});
    if (flow && (*flow > UINT32_MAX || each.stem() != std::to_string(*flow)))
      flow = fail(Errc::value, {file, 0, 0}, "the name is not the number of a flow",
                  "name results 0.txt, 1.txt, ...");
    const auto text = read_file(file);
    if (!flow || !text) {
      errors.push_back(flow ? text.error() : flow.error());
      continue;
    }
    const auto gbps = validate::read_measured(*text, file);
    if (gbps)
      out[static_cast<std::uint32_t>(*flow)] = *gbps;
    else
      fmt::print(stderr, "weft: note: {}\n", gbps.error().text());
  }
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  return out;
}

// Of a list of which the first few were printed.
void print_rest(std::size_t count, std::string_view what) {
  if (count > links_shown)
    fmt::print("... and {} more (all with --json)\n", counted(count - links_shown, what));
}

// Flows against the planned rate, where links and hosts do not tell it all.
void print_low(const validate::Verdicts& v, double least) {
  if (v.below_plan)
    fmt::print("{} slow: {} of {} flows are below {:g} % of the planned rate\n",
               v.low == v.flows ? "everything is" : "the fabric is", v.low, v.flows, 100 * least);
  if (v.odd.empty()) return;
  std::string flows;
  for (std::size_t i = 0; i < std::min(links_shown, v.odd.size()); ++i)
    flows += fmt::format("{}{}", i > 0 ? ", " : "", v.odd[i]);
  fmt::print("{} below {:g} % of the planned rate over no link and to no host that is slow: {}{}\n",
             counted(v.odd.size(), "flow"), 100 * least, flows,
             v.odd.size() > links_shown ? ", ... (all with --json)" : "");
}

void print_validation(const model::Fabric& fabric, const validate::Verdicts& v, double least) {
  fmt::print(
      "{} flows, {} without a result; they reach {:.1f} % of the planned rate, noise {:.1f} %\n",
      v.flows, v.missing, 100 * v.share, 100 * v.noise);
  const char* const of = v.below_plan ? "planned rate" : "others";
  print_low(v, least);
  for (const auto& link : v.links | std::views::take(links_shown))
    fmt::print("link {}: {:.0f} % of the {}, {} flows\n", fabric.name(link.link), 100 * link.share,
               of, link.flows);
  print_rest(v.links.size(), "link");
  for (const auto& host : v.hosts | std::views::take(links_shown))
    fmt::print("host {}: {:.0f} % of the {}, {} flows\n", fabric.name(host.host), 100 * host.share,
               of, host.flows);
  print_rest(v.hosts.size(), "host");
  if (v.links.empty() && v.hosts.empty() && v.odd.empty() && !v.below_plan)
    fmt::print("no {}link and no host is slow\n", v.unjudged.empty() ? "" : "judged ");
  if (!v.unjudged.empty())
    fmt::print("not judged, fewer than two results: {}\n", links_text(fabric, v.unjudged));
}

void print_validation_json(const model::Fabric& fabric, const validate::Verdicts& v) {
  JsonList links, hosts, unjudged, odd;
  for (const std::uint32_t flow : v.odd) odd.add(flow);
  for (const model::LinkId link : v.unjudged) unjudged.add(fabric.name(link));
  for (const auto& link : v.links)
    links.add(JsonObject()
                  .add("link", fabric.name(link.link))
                  .add("share", link.share, digits(4))
                  .add("flows", link.flows));
  for (const auto& host : v.hosts)
    hosts.add(JsonObject()
                  .add("host", fabric.name(host.host))
                  .add("share", host.share, digits(4))
                  .add("flows", host.flows));
  fmt::print("{}\n", JsonObject()
                         .add("flows", v.flows)
                         .add("missing", v.missing)
                         .add("share", v.share, digits(4))
                         .add("noise", v.noise, digits(4))
                         .add("below_plan", v.below_plan)
                         .add("low_flows", v.low)
                         .add("odd_flows", odd)
                         .add("links", links)
                         .add("hosts", hosts)
                         .add("unjudged", unjudged)
                         .text());
}

int judge_command(const Common& common, const model::Fabric& fabric, const ValidateArgs& args) {
  const auto text = read_file(args.plan);
  if (!text) return report(text.error());
  const auto rounds = validate::read_csv(fabric, *text, args.plan);
  if (!rounds) return report(rounds.error());
  const auto measured = read_results(fabric, *rounds, args.results);
  if (!measured) return report(measured.error());
  if (const Status fit = check_results(fabric, *rounds, *measured, args.results); !fit)
    return report(fit.error());
  const validate::Verdicts verdicts = judge(fabric, *rounds, *measured, args.least);
  if (common.json)
    print_validation_json(fabric, verdicts);
  else
    print_validation(fabric, verdicts, args.least);
  return verdicts.is_sound() ? done : not_sound;
}

// In a lab a NIC's line rate stands for the rate of each flow's path.
Result<std::string> measure_in_lab(const Common& common, const ValidateArgs& args) {
  adapt::lab::RateOptions options;
  WEFT_TRY(options.rate, parse_rate({args.rate, validate_option("--rate")}));
  WEFT_TRY(options.length, parse_duration({args.length, validate_option("--length")}));
  if (options.rate < Rate{1'000'000} || options.length < Duration{50 * ps_per_ms})
    return fail(Errc::value, validate_option("--rate"), "too few packets to measure a rate",
                "give at least 1 Mbps and 50 ms");
  WEFT_TRY(const adapt::lab::Lab lab, find_lab(args.lab));
  WEFT_TRY(const std::string text, read_file(args.plan));
  WEFT_TRY(const validate::Rounds rounds, validate::read_csv(lab.fabric, text, args.plan));
  std::string out = "flow,gbps\n";
  for (std::size_t begin = 0, end = 0; begin < rounds.flows.size(); begin = end) {
    std::vector<adapt::lab::RateFlow> flows;
    for (; end < rounds.flows.size() && rounds.flows[end].round == rounds.flows[begin].round;
         ++end) {
      const validate::Flow& flow = rounds.flows[end];
      const auto path = rounds.path(flow);
      if (path.size() != 2 && path.size() != 4)
        return fail(Errc::unsupported, {args.plan, 0, 0},
                    fmt::format("flow {} crosses {} links", end, path.size()),
                    "weft validate run works on fabrics of two tiers");
      flows.push_back({.src = flow.src, .dst = flow.dst});
      if (path.size() == 4) flows.back().uplink = path[1];
      if (flow.source_port != 0) flows.back().port = flow.source_port;
    }
    if (!common.quiet)
      fmt::print(stderr, "round {} of {}: {} flows\n", rounds.flows[begin].round + 1, rounds.count,
                 flows.size());
    WEFT_TRY(const auto shares, measure_rates(lab, flows, options));
    for (std::size_t i = 0; i < shares.size(); ++i)
      out += fmt::format(
          "{},{:.4g}\n", begin + i,
          shares[i] * validate::planned_gbps(lab.fabric, rounds.path(rounds.flows[begin + i])));
  }
  return out;
}

int run_command(const Common& common, const ValidateArgs& args) {
  if (common.json)
    return report(Error{Errc::unsupported,
                        validate_option("--json"),
                        "the rates of a run are CSV",
                        "leave it out, and judge the rates",
                        {}});
  const auto rates = measure_in_lab(common, args);
  if (!rates) return report(rates.error());
  const Status written = write_file(args.out, *rates);
  return written ? int{done} : report(written.error());
}

int validate_command(const Common& common, const ValidateArgs& args) {
  if (args.action == "run") return run_command(common, args);
  const auto file = load_fabric_file(common, args.fabric);
  if (!file) return report(file.error());
  return args.action == "plan" ? plan_command(common, *file, args)
                               : judge_command(common, file->fabric, args);
}

}  // namespace

void add_validate(Commands& commands) {
  const auto [app, args] = commands.add<ValidateArgs>(
      "validate", "Plan, run and judge bandwidth tests over every link between idle hosts",
      validate_command);
  app.require_subcommand(1);
  const auto add = [&](const char* name, const char* what) {
    CLI::App* command = app.add_subcommand(name, what);
    command->fallthrough();
    command->callback([&args = args, name] { args.action = name; });
    command->add_option("--fabric", args.fabric, "Scenario or fabric file")->required();
    return command;
  };
  CLI::App* plan = add("plan", "Write rounds of NIC pairs that cross every link");
  plan->add_option("--free", args.free, "Hosts that may be tested (all): host[0-63],rack:40");
  plan->add_option("--busy", args.busy,
                   "Hosts of a running job, [NAME=]LIST; links it may use are left alone");
  plan->add_option("--exclude", args.exclude, "Hosts that must not be tested");
  plan->add_option("--down", args.down, "Cables \"a--b\" and switches that are down");
  plan->add_option("--crossings", args.crossings, "Times that each link is crossed, at least (3)")
      ->check(CLI::Range(1, 1000));
  plan->add_flag("--ports", args.ports,
                 "Choose UDP source ports by the hash of the fabric's model");
  plan->add_option("--script", args.script,
                   "A shell script for perftest, nccl-tests or superbench, not CSV")
      ->check(CLI::IsMember({"perftest", "nccl-tests", "superbench"}));
  plan->add_option("-o,--out", args.out, "Where to write the plan (standard output)");
  CLI::App* run = app.add_subcommand("run", "Run the rounds in a lab and write the rates");
  run->fallthrough();
  run->callback([&args = args] { args.action = "run"; });
  run->add_option("--plan", args.plan, "The plan, as CSV")->required();
  run->add_option("--lab", args.lab, "Name of the lab (lab0)");
  run->add_option("--rate", args.rate, "Rate of each flow in place of its full rate (20 Mbps)");
  run->add_option("--length", args.length, "Time of each round (500 ms)");
  run->add_option("-o,--out", args.out, "Where to write flow,gbps (standard output)");
  CLI::App* judge = add("judge", "Name slow links and hosts by measured rates");
  judge->add_option("--plan", args.plan, "The plan, as CSV")->required();
  judge
      ->add_option("--least", args.least,
                   "Share of the planned rate below which a flow is slow (0.85)")
      ->check(CLI::Range(0.0, 1.0));
  judge
      ->add_option(
          "results", args.results,
          "CSV of flow,gbps; the folder of FLOW.txt that the scripts leave; or SuperBench's "
          "results-summary.jsonl")
      ->required();
}

}  // namespace weft::cli
