#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>

#include "base/line_reader.hpp"
#include "cli/cli.hpp"
#include "cli/commands.hpp"
#include "cli/flows_compare.hpp"
#include "cli/flows_report.hpp"
#include "model/formats/connection_matrix.hpp"
#include "plan/flows/flow_runs.hpp"
#include "plan/run/setup.hpp"

namespace weft::cli {
namespace {

struct FlowsArgs {
  std::string fabric, flows;
  std::string engine;      // empty: the file's
  std::string start_unit;  // of a connection matrix; empty: none
  std::string end;         // of the packet engine's run; empty: when all is over
  std::string from_fluid;  // the fluid engine runs until then; empty: packets from the start
  bool compare = false;    // both engines
  bool ports = false;      // what each port counted
  bool pauses = false;     // who made whom wait by PFC
};

using StartUnit = model::ConnectionMatrixOptions::StartUnit;

Result<StartUnit> read_start_unit(const std::string& text) {
  const std::vector<std::string> names{"", "ps", "ns", "us"};
  for (std::size_t i = 0; i < names.size(); ++i)
    if (text == names[i]) return static_cast<StartUnit>(i);
  return fail(Errc::unknown, {"--start-unit", 0, 0}, fmt::format("{} is not a unit", quote(text)),
              "choose ps, ns or us");
}

// The text of the file does not outlive this call.
Result<model::FlowSet> load_flows(const model::Fabric& fabric, const FlowsArgs& args) {
  WEFT_TRY(const StartUnit unit, read_start_unit(args.start_unit));
  WEFT_TRY(LineReader lines, LineReader::open(args.flows));
  if (model::is_connection_matrix(lines.peek()))
    return model::read_connection_matrix(fabric, lines, {.start_unit = unit});
  if (unit != StartUnit::none)
    return fail(Errc::value, {"--start-unit", 0, 0}, "the flows are a CSV, where times have units",
                "remove the option");
  WEFT_TRY(const std::string text, lines.rest());
  return model::read_flows(fabric, text, args.flows);
}

Status read_end(const FlowsArgs& args, plan::Setup& setup) {
  if (args.end.empty()) return {};
  if (setup.engine_name == plan::EngineName::fluid)
    return fail(Errc::unsupported, {"--end", 0, 0}, "the fluid engine always runs to completion",
                "remove the option, or add --engine packet");
  WEFT_TRY(const Duration end, parse_duration({args.end, {"--end", 0, 0}}));
  setup.packet.options.end = static_cast<engine::packet::Ps>(end.ps);
  return {};
}

Status read_more(const FlowsArgs& args, plan::Setup& setup) {
  if (!args.pauses && !args.ports) return {};
  const Where where{args.pauses ? "--pauses" : "--ports", 0, 0};
  if (setup.engine_name == plan::EngineName::fluid)
    return fail(Errc::unsupported, where, "the fluid engine has neither pauses nor port counters",
                "remove the option, or add --engine packet");
  setup.packet.options.class_counters = args.ports;
  if (!args.pauses) return {};
  if (!setup.packet.options.pfc.on)
    return fail(Errc::value, where, "transport.pfc is off, so nothing pauses",
                "add --set transport.pfc=true, or remove the option");
  setup.packet.options.pause_trees = true;
  return {};
}

// When packets take over from the fluid engine; nothing: they begin.
Result<std::optional<Time>> read_from_fluid(const FlowsArgs& args, const plan::Setup& setup) {
  if (args.from_fluid.empty()) return std::nullopt;
  const Where where{"--from-fluid", 0, 0};
  if (setup.engine_name == plan::EngineName::fluid)
    return fail(Errc::unsupported, where, "--from-fluid needs the packet engine",
                "add --engine packet");
  if (route::engine_of(setup.routing.scheme) == route::SchemeEngine::packet)
    return fail(
        Errc::unsupported, where,
        fmt::format("scheme {} needs the packet engine from the start", setup.routing.scheme),
        "use spray, ecmp or e_ecmp");
  WEFT_TRY(const Duration at, parse_duration({args.from_fluid, where}));
  return Time{at.ps};
}

// For a comparison the scenario must make sense to both engines.
Result<plan::Setup> load_setup(const model::Scenario& scenario, const Common& common,
                               const FlowsArgs& args) {
  WEFT_TRY(plan::Setup setup, plan::read_setup(scenario));
  if (common.threads > 0) setup.packet.options.threads = common.threads;
  const bool only_packets = route::engine_of(setup.routing.scheme) == route::SchemeEngine::packet;
  if (args.compare && only_packets)
    return fail(
        Errc::unsupported, setup.routing.where,
        fmt::format("scheme {} needs the packet engine; there is no fluid result to compare with",
                    setup.routing.scheme),
        "use spray, ecmp or e_ecmp");
  WEFT_TRY_STATUS(read_end(args, setup));
  WEFT_TRY_STATUS(read_more(args, setup));
  return setup;
}

// `ports_of`: with the counters of its ports; none: without.
int print(const Common& common, const model::FlowIds& ids, const plan::FlowsResult& result,
          const model::Fabric* ports_of = nullptr) {
  common.json ? print_json(ids, result, ports_of) : print_text(result, ports_of);
  return print_troubles(result);
}

int compare(const Common& common, const model::FlowSet& set, const plan::Setup& setup,
            route::Router& router) {
  const plan::FlowsResult fluid = plan::run_fluid(set, setup, router);
  const auto packet = plan::run_packet(set, setup, router, common.progress());
  if (!packet) return report(packet.error());
  plan::set_first_state(router, setup);
  const plan::Surplus surplus =
      plan::surplus_of(set, fluid, *packet, router, setup.packet.options.wire);
  common.json ? print_comparison_json(fluid, *packet, surplus)
              : print_comparison(fluid, *packet, surplus);
  const int fluid_status = print_troubles(fluid);
  const int packet_status = print_troubles(*packet);
  return std::max(fluid_status, packet_status);
}

// A controller of paths (scheme te) takes all flows to be under way together. Those that say `via`
// have a path already.
void declare(const model::FlowSet& set, route::Router& router) {
  std::vector<route::Demand> together;
  for (const model::FlowSet::Flow& flow : set.flows)
    if (set.via_of(flow).empty())
      together.push_back({flow.src, flow.dst, static_cast<double>(flow.size.count)});
  router.declare(together);
}

int flows_command(const Common& common, const FlowsArgs& args) {
  auto options = common.load_options(fabric_file_keys());
  if (!options) return report(options.error());
  const std::string engine = args.compare ? "packet" : args.engine;
  if (!engine.empty()) options->set.emplace_back("engine", engine);
  const auto file = model::load_scenario(args.fabric, *options);
  if (!file) return report(file.error());
  const model::Scenario& scenario = file->variants.front();
  const auto setup = load_setup(scenario, common, args);
  if (!setup) return report(setup.error());
  const auto from = read_from_fluid(args, *setup);
  if (!from) return report(from.error());
  auto set = load_flows(setup->fabric, args);
  if (!set) return report(set.error());
  auto router = route::Router::create(setup->fabric, setup->routing, scenario.seed);
  if (!router) return report(router.error());

  declare(*set, *router);

  for (const std::string& note : setup->notes) fmt::print(stderr, "weft: note: {}\n", note);
  if (!set->classes.empty() && (args.compare || setup->engine_name == plan::EngineName::fluid))
    fmt::print(stderr,
               "weft: note: classes have no effect on the fluid engine, which has no queues\n");
  if (args.compare) return compare(common, *set, *setup, *router);
  const model::FlowIds ids = set->ids;
  if (setup->engine_name == plan::EngineName::fluid)
    return print(common, ids, plan::run_fluid(*set, *setup, *router));
  const auto result =
      *from ? plan::run_packet_from(*std::move(set), *setup, *router, **from, common.progress())
            : plan::run_packet(*std::move(set), *setup, *router, common.progress());
  if (!result) return report(result.error());
  return print(common, ids, *result, args.ports ? &setup->fabric : nullptr);
}

}  // namespace

void add_flows(Commands& commands) {
  const auto [c, args] = commands.add<FlowsArgs>("flows", "Run a set of flows", flows_command);
  c.add_option("--fabric", args.fabric, "Scenario or fabric file")->required();
  c.add_option("--flows", args.flows,
               "CSV with id,src,dst,bytes,start,after,via,class, or an htsim connection matrix")
      ->required();
  CLI::Option* engine = c.add_option("--engine", args.engine, "fluid or packet");
  c.add_option("--end", args.end, "Packet engine: stop at this time, e.g. \"500 us\"");
  c.add_option("--start-unit", args.start_unit,
               "Unit of the start times in a connection matrix: ps, ns or us");
  CLI::Option* from =
      c.add_option("--from-fluid", args.from_fluid,
                   "Packet engine: take over from the fluid engine at this time, e.g. \"200 us\"");
  CLI::Option* pauses = c.add_flag("--pauses", args.pauses,
                                   "Packet engine: show which port made which others wait (PFC)");
  CLI::Option* ports =
      c.add_flag("--ports", args.ports, "Packet engine: show counters of each port");
  c.add_flag("--compare", args.compare, "Run both engines and explain the difference")
      ->excludes(engine)
      ->excludes(from)
      ->excludes(pauses)
      ->excludes(ports);
}

}  // namespace weft::cli
