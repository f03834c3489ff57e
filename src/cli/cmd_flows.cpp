#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/file.hpp"
#include "cli/cli.hpp"
#include "engine/fluid/flow_run.hpp"
#include "plan/run/reduce.hpp"
#include "plan/run/setup.hpp"

namespace weft::cli {
namespace {

using Json = nlohmann::ordered_json;

// Completion times of what finished, in microseconds.
struct Summary {
  std::size_t finished = 0, unfinished = 0;
  double min = 0, mean = 0, p50 = 0, p99 = 0, max = 0;
};

Summary summarise(const std::vector<engine::fluid::FlowEnd>& flows) {
  std::vector<double> times;
  for (const auto& flow : flows)
    if (flow.finished) times.push_back((flow.end_s - flow.start_s) * 1e6);
  Summary out{.finished = times.size(), .unfinished = flows.size() - times.size()};
  if (times.empty()) return out;
  std::ranges::sort(times);
  const auto rank = [&](std::size_t percent) {  // nearest rank
    return times[(times.size() * percent + 99) / 100 - 1];
  };
  for (const double t : times) out.mean += t;
  out.mean /= static_cast<double>(times.size());
  out.min = times.front();
  out.p50 = rank(50);
  out.p99 = rank(99);
  out.max = times.back();
  return out;
}

Json to_json(const engine::fluid::FlowSet& set, const engine::fluid::FlowRunResult& result,
             const Summary& fct, const std::vector<model::TierOutcome>& tiers) {
  Json flows = Json::array();
  for (std::size_t i = 0; i < set.flows.size(); ++i) {
    const engine::fluid::FlowEnd& end = result.flows[i];
    Json flow{{"id", set.flows[i].id}};
    flow["start_us"] = end.started ? Json(end.start_s * 1e6) : Json();
    flow["end_us"] = end.finished ? Json(end.end_s * 1e6) : Json();
    flows.push_back(std::move(flow));
  }
  Json tier_map = Json::object();
  for (const model::TierOutcome& tier : tiers)
    tier_map[tier.name] = {{"links", tier.links},
                           {"mean_load", tier.mean_load},
                           {"max_load", tier.max_load},
                           {"mmr", tier.mean_load > 0 ? Json(tier.mmr) : Json()}};
  return {{"makespan_s", result.makespan_s},
          {"fct_us",
           {{"min", fct.min},
            {"mean", fct.mean},
            {"p50", fct.p50},
            {"p99", fct.p99},
            {"max", fct.max}}},
          {"flows", std::move(flows)},
          {"tiers", std::move(tier_map)},
          {"unfinished", fct.unfinished},
          {"rate_error", result.rate_error},
          {"digest", result.digest}};
}

void print_text(const engine::fluid::FlowSet& set, const engine::fluid::FlowRunResult& result,
                const Summary& fct, const std::vector<model::TierOutcome>& tiers) {
  fmt::print("{} flows, {} finished, makespan {:.9f} s, digest {}\n", set.flows.size(),
             fct.finished, result.makespan_s, result.digest);
  fmt::print("completion time: min {}, mean {}, p50 {}, p99 {}, max {}\n\n",
             human_seconds(fct.min * 1e-6), human_seconds(fct.mean * 1e-6),
             human_seconds(fct.p50 * 1e-6), human_seconds(fct.p99 * 1e-6),
             human_seconds(fct.max * 1e-6));
  Table table({{"tier", Table::Align::left}, {"links"}, {"mean load"}, {"max load"}, {"MMR"}});
  for (const model::TierOutcome& tier : tiers)
    table.add({tier.name, std::to_string(tier.links), fmt::format("{:.4f}", tier.mean_load),
               fmt::format("{:.4f}", tier.max_load),
               tier.mean_load > 0 ? fmt::format("{:.3f}", tier.mmr) : "-"});
  fmt::print("{}", table.text());
}

void print_unfinished(const engine::fluid::FlowSet& set, const engine::fluid::FlowRunResult& result,
                      const model::Fabric& fabric) {
  constexpr std::size_t shown_max = 20;
  std::size_t count = 0;
  for (std::size_t i = 0; i < set.flows.size(); ++i) {
    if (result.flows[i].finished || ++count > shown_max) continue;
    const auto& flow = set.flows[i];
    fmt::print(stderr,
               "weft: flow {} ({} to {}) did not finish: no live path, no bandwidth, or "
               "it waits for one that did not\n",
               flow.id, fabric.name(flow.src), fabric.name(flow.dst));
  }
  if (count > shown_max)
    fmt::print(stderr, "weft: ... and {} more unfinished flows\n", count - shown_max);
}

}  // namespace

int flows_command(const Common& common, const FlowsArgs& args) {
  auto options = common.load_options(fabric_file_keys());
  if (!options) return report(options.error());
  if (!args.engine.empty()) options->set.emplace_back("engine", args.engine);
  const auto file = model::load_scenario(args.fabric, *options);
  if (!file) return report(file.error());
  const model::Scenario& scenario = file->variants.front();
  const auto setup = plan::read_setup(scenario);
  if (!setup) return report(setup.error());
  const auto text = read_file(args.flows);
  if (!text) return report(text.error());
  const auto set = engine::fluid::read_flows(setup->fabric, *text, args.flows);
  if (!set) return report(set.error());
  auto router = route::Router::create(setup->fabric, setup->routing, scenario.seed);
  if (!router) return report(router.error());

  for (const std::string& note : setup->notes) fmt::print(stderr, "weft: note: {}\n", note);
  const engine::fluid::FlowRunResult result =
      engine::fluid::run_flows(*set, *router, setup->changes, setup->engine);
  const Summary fct = summarise(result.flows);
  const auto tiers =
      plan::tier_loads(setup->fabric, result.link_bytes, result.usable, result.makespan_s);
  if (common.json) {
    fmt::print(
        "{}\n",
        to_json(*set, result, fct, tiers).dump(2, ' ', false, Json::error_handler_t::replace));
  } else {
    print_text(*set, result, fct, tiers);
  }
  if (fct.unfinished == 0) return done;
  print_unfinished(*set, result, setup->fabric);
  return work_failed;
}

}  // namespace weft::cli
