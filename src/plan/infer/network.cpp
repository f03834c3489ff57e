#include "plan/infer/network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "plan/run/lone.hpp"
#include "plan/run/placement.hpp"
#include "route/router.hpp"
#include "workload/collective/cost.hpp"

namespace weft::plan {
namespace {

using namespace workload;

double hop_bytes(const InferenceConfig& config, std::uint32_t tokens) {
  return double{1} * tokens * config.model.hidden * config.model.bytes;
}

double on_link(const StatedLink& link, double bytes) {
  return link.latency.seconds() + (link.rate.bps > 0 ? bytes / link.rate.bytes_per_s() : 0);
}

StepTimes::Communication over_stated_link(const InferenceConfig& config) {
  const StatedLink link = config.link.value_or(StatedLink{});
  const double n = config.tp, calls = n > 1 ? 2.0 * config.model.layers : 0;
  const std::uint32_t hops = config.cluster.limits.stages - 1;
  const double per_token = hop_bytes(config, 1);
  return [=](std::uint32_t tokens) {
    const double bytes = per_token * tokens;
    return calls * on_link(link, 2 * (n - 1) / n * bytes) + hops * on_link(link, bytes);
  };
}

// A NIC for each replica on one switch: caches share the links out of and into the replicas.
std::unique_ptr<const Setup> star_of(const StatedLink& link, std::size_t replicas,
                                     std::vector<std::vector<NodeId>>& ends) {
  using model::NodeKind;
  model::FabricBuilder builder;
  const model::ScopeId rack = builder.add_scope(model::ScopeKind::rack, {});
  for (std::size_t i = 0; i < replicas; ++i)
    ends.push_back({builder.add_node({.kind = NodeKind::nic, .role = "nic", .scope = rack})});
  const NodeId hub =
      builder.add_node({.kind = NodeKind::fabric_switch, .role = "switch", .scope = rack});
  for (std::size_t i = 0; i < replicas; ++i)
    builder.add_circuit(ends[i].front(), hub, {link.rate, Duration{link.latency.ps / 2}});
  auto setup = std::make_unique<Setup>();
  setup->fabric = builder.freeze();
  return setup;
}

// A variant may take them away with jobs: [].
bool has_jobs(const model::Scenario& scenario) {
  const Config& jobs = scenario.section("jobs");
  return jobs.kind != Config::Kind::null &&
         (jobs.kind != Config::Kind::list || !jobs.items.empty());
}

class OnFabric {
 public:
  OnFabric(const model::Scenario& scenario, const InferenceConfig& config, ServingNetwork& out)
      : scenario_(scenario), config_(config), out_(out) {}

  Status lay() {
    WEFT_TRY(Setup setup, read_setup(scenario_));
    WEFT_TRY_STATUS(require_fluid(setup, "weft infer"));
    out_.setup = std::make_unique<const Setup>(std::move(setup));
    Placer placer(out_.setup->fabric);
    if (has_jobs(scenario_)) {
      WEFT_TRY(out_.jobs,
               read_jobs(*out_.setup, scenario_.section("jobs"), scenario_.seed, placer));
    }
    const Cluster& cluster = config_.cluster;
    const std::size_t ranks = std::size_t{config_.tp} * cluster.limits.stages;
    const std::size_t replicas = std::size_t{cluster.replicas} + cluster.decode_replicas;
    WEFT_TRY(
        const std::vector<NodeId> gpus,
        placer.place("topology", ranks * replicas, placement_stream(scenario_.seed, "inference"),
                     scenario_.section("inference").where));
    for (std::size_t r = 0; r < replicas; ++r)
      out_.replicas.emplace_back(gpus.begin() + static_cast<std::ptrdiff_t>(r * ranks),
                                 gpus.begin() + static_cast<std::ptrdiff_t>((r + 1) * ranks));
    WEFT_TRY_STATUS(check_state());
    WEFT_TRY(out_.communication, communication());
    return {};
  }

 private:
  // By what the faults of the file have down, or slow, from the start.
  Status check_state() {
    const Setup& setup = *out_.setup;
    const model::State state = setup.state_at_start();
    if (state.troubled_links().empty() && state.troubled_nodes().empty()) return {};
    WEFT_TRY(route::Router router,
             route::Router::create(setup.fabric, setup.routing, scenario_.seed));
    router.set_state(state);
    for (const std::vector<NodeId>& ranks : out_.replicas) {
      double slowest = 1;
      for (std::size_t r = 0; r < ranks.size(); ++r) {
        for (const NodeId node : {ranks[r], setup.fabric.host_of(ranks[r])})
          if (node.valid() && state.node(node).health == model::Health::down)
            return not_usable(fmt::format("{}, which is down", setup.fabric.name(node)));
        slowest = std::max(slowest, state.slowdown(setup.fabric, ranks[r]));
        if (r == 0) continue;
        if (const Status joined = router.check_connected(ranks[r - 1], ranks[r]); !joined)
          return not_usable(
              fmt::format("ranks that cannot reach each other: {}", joined.error().what));
      }
      out_.slowdown.push_back(slowest);
    }
    return {};
  }
  std::unexpected<Error> not_usable(const std::string& on) const {
    return fail(Errc::infeasible, scenario_.section("inference").where, "a replica uses " + on,
                "ask for fewer replicas, or leave the fault out: replicas are not moved");
  }

  // Prices of all token counts that a step may have, from one machine: replicas are alike.
  Result<StepTimes::Communication> communication() const {
    const ServingLimits& limits = config_.cluster.limits;
    std::vector<double> seconds(limits.token_budget + 17, 0);
    WEFT_TRY(route::Router router,
             route::Router::create(out_.setup->fabric, out_.setup->routing, scenario_.seed));
    router.set_state(out_.setup->state_at_start());
    double hop_latency = 0, hop_rate = 0;
    if (limits.stages > 1) {
      const auto ranks = std::span(out_.replicas.front());
      std::vector<route::Hop> hops;
      if (!router.append_gpu_path(ranks[0], ranks[config_.tp], 0, 0, hops) || hops.empty())
        return fail(Errc::infeasible, {}, "the stages of a replica are not connected",
                    "remove the fault, or choose another fabric");
      hop_latency = router.path_latency_s(ranks[0], ranks[config_.tp], hops);
      hop_rate = router.capacity(hops.front().link) / hops.front().share;
      for (const route::Hop& hop : hops)
        hop_rate = std::min(hop_rate, router.capacity(hop.link) / hop.share);
    }
    const auto group = std::span(out_.replicas.front()).first(config_.tp);
    LoneCollectives runs(*out_.setup, scenario_.seed,
                         {.op = Op::all_reduce, .ranks = {group.begin(), group.end()}});
    std::optional<Machine> machine;
    if (config_.tp > 1) {
      WEFT_TRY(machine, machine_of(out_.setup->library, out_.setup->fabric, group));
    }
    for (std::uint32_t tokens = 1; tokens < seconds.size(); ++tokens) {
      const double bytes = hop_bytes(config_, tokens);
      if (machine) {
        WEFT_TRY(const double call_s, all_reduce_s(*machine, runs, bytes));
        seconds[tokens] += 2.0 * config_.model.layers * call_s;
      }
      if (limits.stages > 1)
        seconds[tokens] += (limits.stages - 1) * (hop_latency + bytes / config_.tp / hop_rate);
    }
    return [seconds = std::move(seconds)](std::uint32_t tokens) { return seconds.at(tokens); };
  }

  // As `weft perf` has it: routing, hashes and the faults from the start included.
  Result<double> all_reduce_s(const Machine& machine, LoneCollectives& runs, double bytes) const {
    const bool is_tuned =
        config_.all_reduce_up_to && bytes > static_cast<double>(config_.all_reduce_up_to->count);
    const TunerRules rules = is_tuned ? TunerRules{} : config_.all_reduce;
    if (out_.setup->library.cost == Library::Cost::line_rate) {
      std::string algorithm = rules.algorithm;
      if (algorithm == "auto") {
        WEFT_TRY(algorithm, runs.default_algorithm(bytes));
      }
      WEFT_TRY(const LoneCollective* lone, runs.by(algorithm));
      return lone->line_rate_seconds(bytes);
    }
    auto call = plan_call(machine, Op::all_reduce, bytes, rules);
    if (!call) {
      call.error().where = config_.all_reduce_where;
      return std::unexpected(call.error());
    }
    WEFT_TRY(const LoneCollective* lone, runs.by(call->pick.algorithm));
    return lone->seconds(call->cost, bytes);
  }

  const model::Scenario& scenario_;
  const InferenceConfig& config_;
  ServingNetwork& out_;
};

}  // namespace

Result<ServingNetwork> lay_network(const model::Scenario& scenario, const InferenceConfig& config) {
  ServingNetwork out;
  const bool ranks = config.tp > 1 || config.cluster.limits.stages > 1;
  const bool caches = config.cluster.decode_replicas > 0;
  const bool jobs = has_jobs(scenario);
  const bool fabric = scenario.section("fabric").kind != Config::Kind::null;
  Errors errors;
  const auto missing = [&](const std::string& what, const char* remedy) {
    errors.push_back({Errc::parse, scenario.section("inference").where, what, remedy, {}});
  };
  if (ranks && !config.link && !fabric)
    missing("the ranks of a replica need a network",
            "add a fabric, or link: {rate: 64 GB/s, latency: 5 us}");
  if (caches && !config.kv_link && !fabric)
    missing("KV caches between replicas need a network",
            "add a fabric, or kv_link: {rate: 64 GB/s, latency: 5 us}");
  if (jobs && !fabric) missing("jobs beside the replicas need a network", "add a fabric");
  if (jobs && caches && config.kv_link)
    missing("jobs do not meet KV caches that have kv_link of their own",
            "remove kv_link, so that caches cross the fabric");
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  // Also where replicas send nothing: a fabric has so many GPUs, and no more.
  const bool stated = config.link || config.kv_link;
  if ((ranks && !config.link) || (caches && !config.kv_link) || jobs || (fabric && !stated))
    WEFT_TRY_STATUS(OnFabric(scenario, config, out).lay());
  if (ranks && config.link) out.communication = over_stated_link(config);
  if (!caches || !config.kv_link) return out;
  out.setup.reset();
  out.replicas.clear();
  if (config.kv_link->rate.bps > 0)
    out.setup = star_of(*config.kv_link,
                        std::size_t{config.cluster.replicas} + config.cluster.decode_replicas,
                        out.replicas);
  else
    out.latency = config.kv_link->latency;
  return out;
}

}  // namespace weft::plan
