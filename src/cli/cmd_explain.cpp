#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "base/file.hpp"
#include "base/hash.hpp"
#include "base/plural.hpp"
#include "base/text.hpp"
#include "cli/cli.hpp"
#include "cli/commands.hpp"
#include "plan/design/bill.hpp"
#include "plan/design/plan_fabric.hpp"
#include "plan/explain/explain.hpp"
#include "plan/explain/fabric_map.hpp"
#include "plan/run/setup.hpp"

namespace weft::cli {

namespace {

struct ExplainArgs {
  std::string file;
  std::string prices, svg;
  bool plan = false;
};

// The states that faults bring about after the start; the first is that of the tables.
constexpr std::size_t states_shown = 16;

std::span<const model::FaultTimeline::Snapshot> later_states(const plan::Setup& setup) {
  return std::span(setup.changes).subspan(std::min<std::size_t>(setup.changes.size(), 1));
}

std::string left_out(std::size_t count) {
  return fmt::format("{} further states caused by faults are not shown", count);
}

nlohmann::ordered_json states_json(const plan::Setup& setup) {
  using Json = nlohmann::ordered_json;
  Json out = Json::array();
  const auto later = later_states(setup);
  for (const auto& [at, state] : later.first(std::min(later.size(), states_shown))) {
    Json entry{{"at_s", at.seconds()}};
    entry.update(Json::parse(plan::capacity_json(plan::explain_capacity(setup.fabric, state))));
    out.push_back(std::move(entry));
  }
  return out;
}

void print_states(const plan::Setup& setup) {
  const auto later = later_states(setup);
  for (const auto& [at, state] : later.first(std::min(later.size(), states_shown)))
    fmt::print("\nfrom {} on:\n{}", human_seconds(at.seconds()),
               plan::capacity_table(plan::explain_capacity(setup.fabric, state)));
  if (later.size() > states_shown) fmt::print("note: {}\n", left_out(later.size() - states_shown));
}

// --prices: the bill of materials alone, of the fabric as built.
int print_bill(const Common& common, const model::Fabric& fabric, const std::string& table) {
  const auto prices = plan::load_prices(table);
  if (!prices) return report(prices.error());
  const auto bill = plan::bill_of(fabric, *prices);
  if (!bill) return report(bill.error());
  fmt::print("{}", common.json ? plan::to_json(*bill) + "\n" : plan::to_table(*bill));
  return done;
}

// --plan: the request stands in the place of the file.
int print_plans(const Common& common, const ExplainArgs& args) {
  const auto request = plan::parse_plan({args.file, {.file = "--plan"}});
  if (!request) return report(request.error());
  std::optional<plan::Prices> prices;
  if (!args.prices.empty()) {
    auto table = plan::load_prices(args.prices);
    if (!table) return report(table.error());
    prices = *std::move(table);
  }
  const auto plans = plan::plan_fabric(*request, prices ? &*prices : nullptr);
  if (!plans) return report(plans.error());
  fmt::print("{}", common.json ? plan::to_json(*plans) + "\n" : plan::to_table(*plans));
  return done;
}

int explain_command(const Common& common, const ExplainArgs& args) {
  if (args.plan) return print_plans(common, args);
  const auto options = common.load_options();
  if (!options) return report(options.error());
  const auto file = model::load_scenario(args.file, *options);
  if (!file) return report(file.error());
  const model::Scenario& scenario = file->variants.front();
  const auto setup = plan::read_setup(scenario);
  if (!setup) return report(setup.error());
  if (!args.prices.empty()) return print_bill(common, setup->fabric, args.prices);
  const model::State initial = setup->changes.empty() ? model::State{} : setup->changes[0].state;
  if (!args.svg.empty()) {
    const plan::FabricMap map = plan::fabric_map(setup->fabric, initial, {});
    std::string title = std::filesystem::path(args.file).stem().string();
    if (file->variants.size() > 1) title += ": " + scenario.name;
    const Status written = write_file(args.svg, plan::to_svg(map, title));
    if (!written) return report(written.error());
    fmt::print("{}: {}, {}, {}\n", args.svg, counted(map.layers.size(), "layer"),
               counted(map.groups.size(), "box"), counted(map.edges.size(), "line"));
    return done;
  }
  const plan::FabricFacts facts = plan::explain(setup->fabric, initial);
  const std::string effective = to_yaml(scenario.root);
  Digest digest;
  digest.add(std::string_view(effective));
  if (common.json) {
    using Json = nlohmann::ordered_json;
    Json out{{"scenario", effective},
             {"scenario_digest", digest.hex()},
             {"seed", scenario.seed},
             {"faults", setup->fault_lines},
             {"fault_states", states_json(*setup)},
             {"fault_states_left_out",
              std::max(later_states(*setup).size(), states_shown) - states_shown},
             {"fabric", Json::parse(plan::to_json(facts))}};
    fmt::print("{}\n", out.dump(2, ' ', false, Json::error_handler_t::replace));
    return done;
  }
  fmt::print("# effective scenario \"{}\", digest {}\n{}\n", scenario.name, digest.hex(),
             effective);
  fmt::print("{}", plan::to_table(facts));
  for (const std::string& line : setup->fault_lines) fmt::print("fault: {}\n", line);
  print_states(*setup);
  for (const std::string& line : setup->notes) fmt::print("note: {}\n", line);
  return done;
}

}  // namespace

void add_explain(Commands& commands) {
  const auto [c, args] = commands.add<ExplainArgs>(
      "explain", "Show the effective scenario and properties of its fabric", explain_command);
  c.add_option("file", args.file, "Scenario or fabric file")->required();
  CLI::Option* prices =
      c.add_option("--prices", args.prices, "Price table: print the bill of materials instead");
  CLI::Option* plan =
      c.add_flag("--plan", args.plan, "The file is a request: \"131072 x 400G, radix 512\"");
  c.add_option("--svg", args.svg, "File: draw the fabric instead, with the faults at the start")
      ->excludes(prices)
      ->excludes(plan)
      ->excludes(c.get_option("--json"));
}

}  // namespace weft::cli
