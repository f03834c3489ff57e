#include "plan/infer/network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

#include "plan/run/placement.hpp"
#include "plan/run/setup.hpp"
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

// Out of each replica that prefills, and into each that decodes.
void stated_ways(InferenceConfig& config) {
  Cluster& cluster = config.cluster;
  const StatedLink link = config.kv_link.value_or(StatedLink{});
  cluster.links.assign(cluster.replicas + cluster.decode_replicas, link.rate.bytes_per_s());
  cluster.way = [latency = link.latency, first = cluster.replicas](std::uint32_t from,
                                                                   std::uint32_t to) {
    return KvNetwork::Way{{{from}, {first + to}}, latency};
  };
}

class OnFabric {
 public:
  OnFabric(const model::Scenario& scenario, Setup setup, InferenceConfig& config)
      : scenario_(scenario), setup_(std::move(setup)), config_(config) {}

  Result<StepTimes::Communication> lay() {
    const Cluster& cluster = config_.cluster;
    ranks_ = config_.tp * cluster.limits.stages;
    const std::size_t gpus = std::size_t{ranks_} * (cluster.replicas + cluster.decode_replicas);
    Placer placer(setup_.fabric);
    WEFT_TRY(gpus_, placer.place("topology", gpus, Rng(scenario_.seed).stream("placement"),
                                 scenario_.section("inference").where));
    WEFT_TRY_STATUS(lay_ways());
    return communication();
  }

 private:
  std::span<const NodeId> replica(std::uint32_t i) const {
    return std::span(gpus_).subspan(std::size_t{i} * ranks_, ranks_);
  }

  // Prices of all token counts that a step may have, from one machine: replicas are alike.
  Result<StepTimes::Communication> communication() const {
    const ServingLimits& limits = config_.cluster.limits;
    std::vector<double> seconds(limits.token_budget + 17, 0);
    WEFT_TRY(route::Router router,
             route::Router::create(setup_.fabric, setup_.routing, scenario_.seed));
    double hop_latency = 0, hop_rate = 0;
    if (limits.stages > 1) {
      const auto ranks = replica(0);
      std::vector<route::Hop> hops;
      if (!router.append_gpu_path(ranks[0], ranks[config_.tp], 0, 0, hops) || hops.empty())
        return fail(Errc::infeasible, {}, "the stages of a replica are not connected",
                    "remove the fault, or choose another fabric");
      hop_latency = router.latency(ranks[0], ranks[config_.tp]).seconds();
      hop_rate = setup_.fabric.rate(hops.front().link).bytes_per_s() / hops.front().share;
      for (const route::Hop& hop : hops)
        hop_rate = std::min(hop_rate, setup_.fabric.rate(hop.link).bytes_per_s() / hop.share);
    }
    std::optional<Machine> machine;
    if (config_.tp > 1) {
      WEFT_TRY(machine, machine_of(setup_.library, setup_.fabric, replica(0).first(config_.tp)));
    }
    for (std::uint32_t tokens = 1; tokens < seconds.size(); ++tokens) {
      const double bytes = hop_bytes(config_, tokens);
      if (machine) {
        WEFT_TRY(const PlannedCall call, plan_call(*machine, Op::all_reduce, bytes, {}));
        seconds[tokens] += 2.0 * config_.model.layers * call.cost.seconds();
      }
      if (limits.stages > 1)
        seconds[tokens] += (limits.stages - 1) * (hop_latency + bytes / config_.tp / hop_rate);
    }
    return [seconds = std::move(seconds)](std::uint32_t tokens) { return seconds.at(tokens); };
  }

  Status lay_ways() {
    Cluster& cluster = config_.cluster;
    if (cluster.decode_replicas == 0) return {};
    WEFT_TRY(route::Router router,
             route::Router::create(setup_.fabric, setup_.routing, scenario_.seed));
    const auto ways = std::make_shared<std::vector<KvNetwork::Way>>();
    for (std::uint32_t from = 0; from < cluster.replicas; ++from)
      for (std::uint32_t to = 0; to < cluster.decode_replicas; ++to) {
        WEFT_TRY(KvNetwork::Way way, way_between(router, from, cluster.replicas + to));
        ways->push_back(std::move(way));
      }
    cluster.way = [ways, n = cluster.decode_replicas](std::uint32_t from, std::uint32_t to) {
      return (*ways)[std::size_t{from} * n + to];
    };
    return {};
  }
  Result<KvNetwork::Way> way_between(route::Router& router, std::uint32_t from, std::uint32_t to) {
    std::map<std::uint32_t, double> shares;
    KvNetwork::Way way;
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
      const NodeId a = replica(from)[rank], b = replica(to)[rank];
      std::vector<route::Hop> hops;
      if (!router.append_gpu_path(a, b, 0, 0, hops))
        return fail(Errc::infeasible, {},
                    fmt::format("replicas {} and {} are not connected", from, to),
                    "remove the fault, or choose another fabric");
      for (const route::Hop& hop : hops) shares[link_number(hop.link)] += hop.share / ranks_;
      way.latency = std::max(way.latency, router.latency(a, b));
    }
    for (const auto& [link, share] : shares) way.links.push_back({link, share});
    return way;
  }
  std::uint32_t link_number(model::LinkId link) {
    const auto next = static_cast<std::uint32_t>(numbers_.size());
    const auto [known, is_new] = numbers_.emplace(link, next);
    if (is_new) config_.cluster.links.push_back(setup_.fabric.rate(link).bytes_per_s());
    return known->second;
  }

  const model::Scenario& scenario_;
  Setup setup_;
  InferenceConfig& config_;
  std::uint32_t ranks_ = 1;
  std::vector<NodeId> gpus_;
  std::map<model::LinkId, std::uint32_t> numbers_;
};

}  // namespace

Result<StepTimes::Communication> lay_network(const model::Scenario& scenario,
                                             InferenceConfig& config) {
  const bool ranks = config.tp > 1 || config.cluster.limits.stages > 1;
  const bool caches = config.cluster.decode_replicas > 0;
  if (!ranks && !caches) return StepTimes::Communication{};
  const Where where = scenario.section("inference").where;
  if (scenario.section("fabric").kind == Config::Kind::null) {
    Errors errors;
    const auto missing = [&](const char* key, const char* who) {
      errors.push_back({Errc::parse,
                        where,
                        fmt::format("{} need a network", who),
                        fmt::format("add a fabric, or {}: {{rate: 64 GB/s, latency: 5 us}}", key),
                        {}});
    };
    if (ranks && !config.link) missing("link", "the ranks of a replica");
    if (caches && !config.kv_link) missing("kv_link", "KV caches between replicas");
    if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
    if (caches) stated_ways(config);
    return over_stated_link(config);
  }
  WEFT_TRY(Setup setup, read_setup(scenario));
  WEFT_TRY(StepTimes::Communication out, OnFabric(scenario, std::move(setup), config).lay());
  if (ranks && config.link) out = over_stated_link(config);
  if (caches && config.kv_link) stated_ways(config);
  return out;
}

}  // namespace weft::plan
