#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>

#include "cli/cli.hpp"
#include "cli/probe_args.hpp"
#include "observe/probe/plan_file.hpp"
#include "plan/run/setup.hpp"

namespace weft::cli {
namespace {

namespace probe = observe::probe;

void add_row(Table& table, std::string name, const probe::Crossed& crossed) {
  const double mean = static_cast<double>(crossed.sum) / static_cast<double>(crossed.parts);
  table.add({std::move(name), fmt::format("{}", crossed.parts), fmt::format("{}", crossed.least),
             fmt::format("{:.1f}", mean), fmt::format("{}", crossed.most),
             fmt::format("{}", crossed.below)});
}

std::string coverage_text(const model::Fabric& fabric, const probe::Coverage& coverage) {
  Table table({{"tier", Table::Align::left}, {"links"}, {"least"}, {"mean"}, {"most"}, {"below"}});
  for (const probe::Coverage::Tier& tier : coverage.tiers)
    add_row(table, fabric.tiers()[tier.tier].name, tier);
  add_row(table, "all", coverage.total());
  return table.text();
}

std::string routes_text(const probe::Coverage& coverage) {
  if (coverage.transit.parts + coverage.ingress.parts == 0) return "";
  Table table(
      {{"switch is", Table::Align::left}, {"routes"}, {"least"}, {"mean"}, {"most"}, {"below"}});
  if (coverage.transit.parts > 0) add_row(table, "transit", coverage.transit);
  if (coverage.ingress.parts > 0) add_row(table, "ingress", coverage.ingress);
  return "\nflows over routes, from a switch to a host:\n" + table.text();
}

// Ways by flow, those that were not seen to their end among them as far as they can be told.
void add_partial(route::Router& router, std::vector<probe::LearnedFlow>& whole,
                 std::vector<probe::LearnedFlow> partial) {
  probe::complete_ways(router, whole, partial);
  std::ranges::move(partial, std::back_inserter(whole));
}

Result<probe::Plan> plan_learned(const std::string& path, route::Router& router,
                                 const model::State& state, const probe::PlanOptions& options) {
  const model::Fabric& fabric = router.fabric();
  WEFT_TRY(LineReader lines, LineReader::open(path));
  WEFT_TRY(std::vector<probe::PlanLine> rows, probe::read_plan(fabric, lines));
  std::vector<probe::LearnedFlow> learned, partial, answers, partial_answers;
  for (probe::PlanLine& row : rows) {
    const bool is_answer =
        row.source_port == options.target_port && row.target_port != options.target_port;
    if (!is_answer && row.target_port != options.target_port)
      return fail(Errc::value, {path, 0, 0},
                  fmt::format("a path was learned for port {}", row.target_port),
                  "plan for the same port with --port");
    const bool is_whole = !row.forward.empty();
    if (!is_whole && row.seen.empty()) continue;
    probe::LearnedFlow flow{row.src,
                            row.dst,
                            is_answer ? row.target_port : row.source_port,
                            std::move(is_whole ? row.forward : row.seen),
                            std::move(row.back),
                            row.learned};
    (is_answer ? (is_whole ? answers : partial_answers) : (is_whole ? learned : partial))
        .push_back(std::move(flow));
  }
  add_partial(router, learned, std::move(partial));
  add_partial(router, answers, std::move(partial_answers));
  using Answer = std::tuple<model::NodeId, model::NodeId, std::uint16_t>;  // from, to, port there
  std::map<Answer, const probe::LearnedFlow*> answer_of;
  for (const probe::LearnedFlow& answer : answers)
    answer_of[{answer.src, answer.dst, answer.source_port}] = &answer;
  for (probe::LearnedFlow& flow : learned) {
    const auto at = answer_of.find({flow.dst, flow.src, flow.source_port});
    if (at == answer_of.end() || !flow.back.empty()) continue;
    flow.back = at->second->forward;
    if (flow.learned && at->second->learned)
      flow.learned = std::min(*flow.learned, *at->second->learned);
  }
  return probe::make_plan(router, state, learned, options);
}

// Those that are crossed too seldom, at most 20 of them by name.
template <class Part, class Name>
void list_below(const std::vector<Part>& below, std::string_view what, Name name) {
  constexpr std::size_t shown_max = 20;
  fmt::print(stderr, "weft: error: {} {}:\n", below.size(), what);
  for (std::size_t i = 0; i < std::min(shown_max, below.size()); ++i)
    fmt::print(stderr, "  {}\n", name(below[i]));
  if (below.size() > shown_max) fmt::print(stderr, "  and {} more\n", below.size() - shown_max);
}

int print(const Common& common, const model::Fabric& fabric, const probe::Plan& plan,
          const probe::PlanOptions& options, std::string_view by) {
  if (common.json) {
    fmt::print("{}", to_json_lines(fabric, plan, options));
  } else {
    fmt::print(
        "{} flows, {} probes of each in {:g} s; a host sends {:.1f} probes/s (most {:.1f})\n",
        plan.flows.size(), plan.probes, static_cast<double>(options.window_ns) * 1e-9,
        plan.host_rate_mean, plan.host_rate_max);
    fmt::print("\ncrossings in a window, by {}:\n{}{}", by, coverage_text(fabric, plan.coverage),
               routes_text(plan.coverage));
  }
  const probe::Coverage& coverage = plan.coverage;
  if (coverage.unreachable > 0)
    fmt::print(stderr, "weft: note: {} links are not between any two NICs and are not probed\n",
               coverage.unreachable);
  // Routes that nobody asked for may be out of reach: of learned paths, say.
  const bool lacks_routes = options.routes_each && !coverage.routes_below.empty();
  if (!coverage.below.empty())
    list_below(coverage.below,
               fmt::format("links are crossed less than {} times in a window", options.crossings),
               [&](model::LinkId link) { return fabric.name(link); });
  if (lacks_routes)
    list_below(coverage.routes_below,
               fmt::format("routes are crossed by fewer than {} flows", *options.routes_each),
               [&](const probe::Route& route) {
                 return fmt::format("{} to {}", fabric.name(route.device), fabric.name(route.to));
               });
  return coverage.below.empty() && !lacks_routes ? done : work_failed;
}

}  // namespace

int probe_plan_command(const Common& common, const ProbeArgs& args) {
  const auto load = common.load_options(fabric_file_keys());
  if (!load) return report(load.error());
  const auto file = model::load_scenario(args.fabric, *load);
  if (!file) return report(file.error());
  const model::Scenario& scenario = file->variants.front();
  const auto setup = plan::read_setup(scenario);
  if (!setup) return report(setup.error());
  probe::PlanOptions options{.crossings = args.crossings,
                             .flows_each = args.flows_each,
                             .routes_each = args.routes_each,
                             .rate_max = args.rate_max,
                             .target_port = args.target_port,
                             .seed = scenario.seed};
  const auto ports = probe::parse_ports({args.ports, {"--ports", 0, 0}});
  if (!ports) return report(ports.error());
  options.ports = *ports;
  const auto window_ns = read_span_ns(args.window, "--window");
  if (!window_ns) return report(window_ns.error());
  options.window_ns = *window_ns;
  if (options.window_ns < ns_per_s || options.target_port == 0)
    return report({Errc::value, {}, "a window must be 1 s or longer, and a port above 0", "", {}});
  auto router = route::Router::create(setup->fabric, setup->routing, scenario.seed);
  if (!router) return report(router.error());
  const auto state =
      read_down(setup->fabric, args.down, "--down",
                setup->changes.empty() ? model::State() : setup->changes.front().state);
  if (!state) return report(state.error());
  const auto plan = args.learned.empty() ? probe::make_plan(*router, *state, options)
                                         : plan_learned(args.learned, *router, *state, options);
  if (!plan) return report(plan.error());
  return print(common, setup->fabric, *plan, options,
               args.learned.empty() ? "replaying the hash" : "the learned paths");
}

}  // namespace weft::cli
