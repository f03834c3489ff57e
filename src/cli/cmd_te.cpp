#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>

#include "base/file.hpp"
#include "base/parallel.hpp"
#include "cli/backbone_args.hpp"
#include "cli/cli.hpp"
#include "cli/commands.hpp"
#include "cli/te_status.hpp"
#include "cli/te_zone.hpp"
#include "plan/backbone/entitle.hpp"
#include "plan/backbone/fit.hpp"
#include "plan/backbone/growth.hpp"
#include "plan/backbone/te.hpp"
#include "plan/report/report.hpp"

namespace weft::cli {
namespace {

namespace backbone = plan::backbone;

struct TeArgs {
  BackboneArgs wan;
  std::string demands, at, objective = "throughput", gap = "1", prices, write_demands, page;
  std::string counters, before;
  std::uint32_t k = 4;
  double load = 0.5, pairs = 1;
  std::size_t rows = 20;
  bool classes = false, failures = false;
  std::string contracts, unavailability = "0.1 %";
  std::uint32_t order = 2;
  ZoneTeArgs zone;
  ServiceArgs service;
  std::vector<const CLI::Option*> of_zone, of_backbone;  // to reject those that say nothing
};

// A scenario; topologies of a backbone are GraphML, XML or CSV.
bool is_scenario(const std::string& path) {
  return path.ends_with(".yaml") || path.ends_with(".yml");
}

Result<std::vector<backbone::Demand>> read_demand_file(const std::string& path,
                                                       const std::string& time,
                                                       const backbone::Wan& wan) {
  WEFT_TRY(const std::string text, backbone::read_text(path));
  if (!backbone::is_series(text)) return backbone::read_demands(text, path, wan, time);
  WEFT_TRY(const backbone::Series series, backbone::read_series(text, path, wan));
  return backbone::demands_at(series, time);
}

Result<std::vector<backbone::Demand>> load_demands(const Common& common, const TeArgs& args,
                                                   backbone::WanFile& file) {
  if (args.demands.empty()) {
    if (!file.demands.empty()) return std::move(file.demands);
    if (!common.quiet)
      fmt::print(stderr,
                 "weft: note: no --demands: a gravity model with seed {} that loads the links to "
                 "{} % on shortest paths\n",
                 common.seed.value_or(1), 100 * args.load);
    return backbone::gravity_demands(file.wan, {.load = args.load,
                                                .fraction = args.pairs,
                                                .by_class = args.classes,
                                                .seed = common.seed.value_or(1)});
  }
  return read_demand_file(args.demands, args.at, file.wan);
}

Status run_backbone_te(const Common& common, const TeArgs& args) {
  WEFT_TRY(const auto objective,
           from_name<backbone::Objective>({args.objective, {"--objective", 0, 0}}));
  WEFT_TRY(const double percent, parse_number({args.gap, {"--gap", 0, 0}}));
  if (!(percent >= 0.0001 && percent <= 50))
    return fail(Errc::value, {"--gap", 0, 0}, "a gap below 0.0001 % or above 50 %",
                "pass e.g. --gap 0.1, in percent");
  WEFT_TRY(backbone::WanFile file, load_backbone(common, args.wan));
  WEFT_TRY(const auto demands, load_demands(common, args, file));
  if (demands.empty())
    return fail(Errc::value, {args.demands, 0, 0}, "no demands above 0", "pass at least one");
  const backbone::TeOptions options{.objective = objective,
                                    .paths = args.k,
                                    .gap = percent / 100,
                                    .by_class = args.classes,
                                    .failures = args.failures,
                                    .threads = threads_or_all(common.threads)};
  const backbone::TeAnswer answer = backbone::engineer(file.wan, demands, options);
  if (!args.prices.empty())
    WEFT_TRY_STATUS(write_file(args.prices, backbone::write_prices(file.wan, answer)));
  if (!args.write_demands.empty())
    WEFT_TRY_STATUS(write_file(args.write_demands, backbone::write_demands(file.wan, demands)));
  const std::string json = backbone::to_json(file.wan, answer, options);
  const std::string table = backbone::to_table(file.wan, answer, options, args.rows);
  fmt::print("{}", common.json ? json : table);
  if (args.page.empty()) return {};
  return write_file(
      args.page,
      plan::report::page_text({.title = std::filesystem::path(args.wan.topology).stem().string(),
                               .command = "te",
                               .table = table,
                               .data = {{"te-data", json}, {"sites-data", sites_json(file.wan)}}}));
}

// Demands that explain what the counters say, on the paths of fewest links.
Status run_fit(const Common& common, const TeArgs& args) {
  WEFT_TRY(backbone::WanFile file, load_backbone(common, args.wan));
  WEFT_TRY(const auto demands, load_demands(common, args, file));
  WEFT_TRY(const std::string text, backbone::read_text(args.counters));
  WEFT_TRY(const auto counters, backbone::read_counters(text, args.counters, file.wan));
  const backbone::PathSet paths = backbone::find_paths(file.wan, demands, 1);
  const backbone::CounterFit fit = backbone::fit_demands(file.wan, demands, paths, counters);
  if (!args.write_demands.empty())
    WEFT_TRY_STATUS(write_file(args.write_demands, backbone::write_demands(file.wan, fit.demands)));
  fmt::print("{}", common.json ? backbone::to_json(file.wan, counters, fit)
                               : backbone::to_table(file.wan, counters, fit, args.rows));
  return {};
}

// By cause, what the demands are above or below those of an earlier file.
Status run_growth(const Common& common, const TeArgs& args) {
  WEFT_TRY(backbone::WanFile file, load_backbone(common, args.wan));
  WEFT_TRY(const auto now, load_demands(common, args, file));
  WEFT_TRY(const auto before, read_demand_file(args.before, args.at, file.wan));
  const backbone::Growth growth = backbone::growth(file.wan, before, now);
  fmt::print("{}", common.json ? backbone::to_json(file.wan, growth)
                               : backbone::to_table(file.wan, growth, args.rows));
  return {};
}

Status run_entitlements(const Common& common, const TeArgs& args) {
  WEFT_TRY(const backbone::WanFile file, load_backbone(common, args.wan));
  WEFT_TRY(const std::string text, backbone::read_text(args.contracts));
  WEFT_TRY(const auto contracts, backbone::read_contracts(text, args.contracts, file.wan));
  WEFT_TRY(const double unavailability,
           backbone::parse_share({args.unavailability, {"--unavailability", 0, 0}}));
  WEFT_TRY(const backbone::Entitlements answer,
           backbone::entitle(file.wan, contracts,
                             {.unavailability = unavailability,
                              .order = args.order,
                              .threads = threads_or_all(common.threads)}));
  fmt::print("{}", common.json ? backbone::to_json(file.wan, contracts, answer)
                               : backbone::to_table(file.wan, contracts, answer));
  return {};
}

int te_command(const Common& common, const TeArgs& args) {
  if (!args.service.from.empty()) return te_status_command(common, args.service);
  if (args.wan.topology.empty())
    return report(Error{Errc::value,
                        {"topology", 0, 0},
                        "is required",
                        "name a scenario or a backbone's topology, or a service by --from",
                        {}});
  const bool is_zone = is_scenario(args.wan.topology);
  for (const CLI::Option* option : is_zone ? args.of_backbone : args.of_zone)
    if (option->count() > 0)
      return report(Error{
          Errc::value,
          {option->get_name(), 0, 0},
          fmt::format("this option is for a {}, and {} is a {}", is_zone ? "backbone" : "zone",
                      args.wan.topology, is_zone ? "scenario of a zone" : "backbone's topology"),
          "leave it out"});
  if (is_zone) {
    ZoneTeArgs zone = args.zone;
    zone.scenario = args.wan.topology;
    return run_zone_te(common, zone);
  }
  if (const Status ok = refuse_set(common, "a backbone's topology"); !ok) return report(ok.error());
  const Status ran = !args.counters.empty()    ? run_fit(common, args)
                     : !args.before.empty()    ? run_growth(common, args)
                     : !args.contracts.empty() ? run_entitlements(common, args)
                                               : run_backbone_te(common, args);
  return ran ? int{done} : report(ran.error());
}

// Asked instead of where traffic goes: each excludes the options that it does not read.
template <class Backbone>
void add_other_questions(CLI::App& c, TeArgs& args, const Backbone& backbone) {
  auto* const contracts = backbone(
      c.add_option("--contracts", args.contracts, "CSV of contracts: which can be promised?"));
  backbone(c.add_option("--unavailability", args.unavailability,
                        "With --contracts: share of the time in which a cable is down"))
      ->needs(contracts);
  backbone(c.add_option("--order", args.order, "With --contracts: failures at a time"))
      ->check(CLI::Range(0, 64))
      ->needs(contracts);
  for (const char* other :
       {"--demands", "--at", "--objective", "--k", "--gap", "--load", "--pairs", "--classes",
        "--failures", "--rows", "--prices", "--write-demands", "--page"})
    contracts->excludes(c.get_option(other));
  auto* const counters = backbone(c.add_option(
      "--counters", args.counters, "CSV of links' counters: which demands explain them?"));
  for (const char* other : {"--objective", "--k", "--gap", "--classes", "--failures", "--prices",
                            "--contracts", "--page"})
    counters->excludes(c.get_option(other));
  auto* const before = backbone(c.add_option(
      "--before", args.before, "CSV of earlier demands: what has traffic grown by, and why?"));
  before->needs(c.get_option("--demands"));
  for (const char* other :
       {"--objective", "--k", "--gap", "--classes", "--failures", "--prices", "--contracts",
        "--counters", "--load", "--pairs", "--write-demands", "--page"})
    before->excludes(c.get_option(other));
}

}  // namespace

void add_te(Commands& commands) {
  const auto [c, args] =
      commands.add<TeArgs>("te", "Traffic engineering of a zone or a backbone", te_command);
  CLI::Option* const topology =
      c.add_option("topology", args.wan.topology,
                   "Scenario of a zone; GraphML, SNDlib XML or CSV of a backbone");
  CLI::Option* const from =
      c.add_option("--from", args.service.from,
                   "Service whose state to show: https://HOST[:PORT] or unix:PATH")
          ->group("Live")
          ->excludes(topology);
  const auto live = [&](const char* name, std::string& value, const char* meaning) {
    c.add_option(name, value, meaning)->group("Live")->needs(from);
  };
  live("--token", args.service.token, "File with the token for the service");
  live("--ca", args.service.ca, "Certificates to trust, PEM");
  live("--cert", args.service.certificate, "Client certificate, if the service requires one");
  live("--key", args.service.key, "Key of --cert");
  const auto zone = [&args = args](CLI::Option* option) {
    args.of_zone.push_back(option->group("Zone"));
    return option;
  };
  const auto backbone = [&args = args](CLI::Option* option) {
    args.of_backbone.push_back(option->group("Backbone"));
    return option;
  };
  zone(c.add_option("--flows", args.zone.flows, "CSV of flows; else those of the scenario's jobs"));
  CLI::Option* fails =
      zone(c.add_option("--fail", args.zone.fail, "Cables and switches, comma-separated"));
  zone(c.add_flag("--split", args.zone.split, "Divide flows over two QPs where that helps"));
  zone(c.add_flag("--only-hit", args.zone.only_hit, "After --fail, other flows keep their paths"))
      ->needs(fails);
  zone(c.add_option("--marks", args.zone.marks, "CSV to write the marks to"));
  zone(c.add_option("--check", args.zone.check, "CSV of marks to judge"));
  zone(c.add_option("--variant", args.zone.variant, "Variant of compare: (the first)"));
  CLI::Option* demands =
      backbone(c.add_option("--demands", args.demands, "CSV of demands, or of measured matrices"));
  backbone(c.add_option("--at", args.at,
                        "Time of the demands or matrices; else that with the largest sum"));
  backbone(c.add_option("--objective", args.objective, "throughput or mlu"));
  backbone(c.add_option("--k", args.k, "Paths of each demand"))->check(CLI::Range(1, 64));
  backbone(c.add_option("--gap", args.gap, "Percent from the optimum at which to stop"));
  backbone(c.add_option("--capacity", args.wan.capacity,
                        "Of cables that state none; several: drawn by --seed"))
      ->delimiter(',');
  backbone(c.add_option("--load", args.load, "Of the gravity model, over all capacity"))
      ->check(CLI::Range(0.001, 100.0))
      ->excludes(demands);
  backbone(
      c.add_option("--pairs", args.pairs, "Share of the pairs with a demand, in the gravity model"))
      ->check(CLI::Range(0.0, 1.0))
      ->excludes(demands);
  backbone(c.add_flag("--classes", args.classes, "Classes 1 to 4 in strict priority"));
  backbone(
      c.add_flag("--failures", args.failures, "Every cable and group of cables that share a risk"));
  backbone(c.add_option("--rows", args.rows, "Rows of each table"));
  backbone(c.add_option("--prices", args.prices, "CSV to write the prices of links to"));
  backbone(c.add_option("--page", args.page, "HTML file: map of links, headroom, failures"));
  backbone(c.add_option("--sites", args.wan.sites, "CSV of id, lon, lat: places for the map"))
      ->needs("--page");
  backbone(c.add_option("--write-demands", args.write_demands, "CSV to write the demands to"));
  add_other_questions(c, args, backbone);
}

}  // namespace weft::cli
