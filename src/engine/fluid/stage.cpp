#include "engine/fluid/stage.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "engine/fluid/host_load.hpp"
#include "workload/collective/ring_time.hpp"

namespace weft::engine::fluid {
namespace {

bool is_ring(const workload::Chain& chain) {
  const std::size_t n = chain.edges.size();
  for (std::size_t i = 0; i < n; ++i)
    if (chain.edges[i].to != chain.edges[(i + 1) % n].from) return false;
  return n >= 2;
}

// Seconds per chunk of each edge when the chain has the fabric to itself.
std::vector<double> chunk_seconds(const workload::Chain& chain, Router& router) {
  double bytes = 0;
  const std::vector<Part> parts = chain_parts(chain, router, bytes);
  std::vector<std::vector<Hop>> paths(parts.size());
  std::map<LinkId, double> weight;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    for (std::uint32_t s = 0; s < parts[i].streams; ++s)
      router.append_gpu_path(parts[i].from, parts[i].to, s, s, paths[i]);
    for (const Hop& hop : paths[i])
      weight[hop.link] += hop.share * parts[i].weight / parts[i].streams;
  }
  std::vector<double> out;
  for (const std::vector<Hop>& path : paths) {
    double slowest = 0;
    for (const Hop& hop : path)
      slowest = std::max(slowest, weight[hop.link] / router.capacity(hop.link));
    out.push_back(slowest * bytes / chain.steps);
  }
  return out;
}

// Of equal sizes without writing them out.
void add_exchange(const workload::Exchange& exchange, const Fabric& fabric, HostLoad& load) {
  if (!exchange.matrix.empty())
    return exchange.for_each_message(
        [&](NodeId from, NodeId to, double bytes) { load.add(from, to, bytes); });
  std::map<NodeId, std::uint32_t> on_host;
  for (const NodeId rank : exchange.ranks) ++on_host[fabric.host_of(rank)];
  for (const NodeId rank : exchange.ranks) {
    const std::uint32_t mates = on_host[fabric.host_of(rank)] - 1;
    const bool has_mates = exchange.first_round == 1;
    const std::uint32_t others = exchange.round_count() - std::min(exchange.round_count(), mates);
    load.add_both_ways(rank, has_mates ? mates * exchange.bytes_per_pair : 0,
                       (has_mates ? others : exchange.round_count()) * exchange.bytes_per_pair);
  }
}

}  // namespace

std::vector<Part> chain_parts(const workload::Chain& chain, const Router& router, double& bytes) {
  bytes = 0;
  for (const workload::Edge& edge : chain.edges) bytes = std::max(bytes, edge.bytes);
  // The chunks of a chain use all QPs evenly, split or in turn.
  const route::RoutingConfig& config = router.config();
  const std::uint32_t streams =
      config.message_mode == route::MessageMode::round_robin ? config.qps : router.stream_count();
  std::vector<Part> out;
  out.reserve(chain.edges.size());
  for (const workload::Edge& edge : chain.edges)
    if (edge.bytes > 0) out.push_back({edge.from, edge.to, 0, streams, 0, edge.bytes / bytes});
  return out;
}

double edge_latency_s(NodeId from, NodeId to, Router& router) {
  const Duration latency = router.latency(from, to);
  return latency == duration_max ? 0 : latency.seconds();
}

std::string describe_dead_path(NodeId from, NodeId to, Router& router) {
  if (router.check_connected(from, to)) return "";
  const Fabric& fabric = router.fabric();
  return fmt::format("{} has no live path to {}", fabric.name(from), fabric.name(to));
}

std::string describe_dead_path(const workload::Stage& stage, Router& router) {
  const Fabric& fabric = router.fabric();
  const auto is_gpu = [&](NodeId node) { return fabric.kind(node) == model::NodeKind::gpu; };
  const auto first_dead = [&](std::span<const workload::Edge> edges) -> std::string {
    for (const workload::Edge& edge : edges) {
      if (!is_gpu(edge.from) || !is_gpu(edge.to)) continue;
      if (std::string path = describe_dead_path(edge.from, edge.to, router); !path.empty())
        return path;
    }
    return "";
  };
  for (const workload::Chain& chain : stage.chains)
    if (std::string path = first_dead(chain.edges); !path.empty()) return path;
  return first_dead(stage.flows);
}

StageLatency::StageLatency(const workload::Stage& stage, Router& router)
    : outer_steps_(stage.latency_steps), inner_steps_(stage.inner_steps) {
  if (stage.latency_steps == 0 && stage.inner_steps == 0) return;
  const Fabric& fabric = router.fabric();
  const auto is_inside = [&](const workload::Edge& edge) {
    return fabric.host_of(edge.from).valid() &&
           fabric.host_of(edge.from) == fabric.host_of(edge.to);
  };
  const auto add = [&](std::span<const workload::Edge> edges, bool mean) {
    double sum = 0, most = 0;
    std::size_t count = 0;
    for (const workload::Edge& edge : edges) {
      const double latency = edge_latency_s(edge.from, edge.to, router);
      if (is_inside(edge)) {
        inside_s_ = std::max(inside_s_, latency);
        continue;
      }
      sum += latency;
      most = std::max(most, latency);
      ++count;
    }
    if (count > 0)
      outside_s_ = std::max(outside_s_, mean ? sum / static_cast<double>(count) : most);
  };
  for (const workload::Chain& chain : stage.chains) add(chain.edges, true);
  add(stage.flows, false);
  for (const workload::Exchange& exchange : stage.exchanges) {
    std::vector<workload::Edge> from_first;
    for (const NodeId rank : std::span(exchange.ranks).subspan(1))
      from_first.push_back({exchange.ranks.front(), rank, 0});
    add(from_first, false);
  }
}

double StageLatency::seconds(Duration step_overhead) const {
  return outer_steps_ * (step_overhead.seconds() + outside_s_) +
         inner_steps_ * (step_overhead.seconds() + inside_s_);
}

double StageLatency::beyond_library_s(Duration step_overhead) const {
  return outer_steps_ * (step_overhead.seconds() + std::max(0.0, outside_s_ - library_path_s)) +
         inner_steps_ * step_overhead.seconds();
}

namespace {

// Seconds of the stage's busiest host-side link.
double busiest_link_s(const workload::Stage& stage, const Fabric& fabric) {
  HostLoad load(fabric);
  for (const workload::Chain& chain : stage.chains)
    for (const workload::Edge& edge : chain.edges) load.add(edge.from, edge.to, edge.bytes);
  for (const workload::Edge& flow : stage.flows) load.add(flow.from, flow.to, flow.bytes);
  for (const workload::Exchange& exchange : stage.exchanges) add_exchange(exchange, fabric, load);
  return load.seconds();
}

// Each value's part of the sum; the first has all where there is no sum.
template <class Value>
void share_out(std::vector<workload::StageShare>& shares, double workload::StageShare::* part,
               Value value) {
  double sum = 0;
  for (std::size_t s = 0; s < shares.size(); ++s) sum += shares[s].*part = value(s);
  for (std::size_t s = 0; s < shares.size(); ++s)
    shares[s].*part = sum > 0 ? shares[s].*part / sum : s == 0 ? 1 : 0;
}

}  // namespace

std::vector<workload::StageShare> stage_shares(const workload::Traffic& traffic,
                                               const Fabric& fabric) {
  constexpr double step_weight = 50;  // some 30 us over the network, 0.6 us over NVLink
  std::vector<workload::StageShare> shares(traffic.stages.size(), {1, 1});
  if (shares.size() < 2) return shares;
  share_out(shares, &workload::StageShare::lead, [&](std::size_t s) {
    return traffic.stages[s].latency_steps * step_weight + traffic.stages[s].inner_steps;
  });
  share_out(shares, &workload::StageShare::bytes,
            [&](std::size_t s) { return busiest_link_s(traffic.stages[s], fabric); });
  return shares;
}

double late_of(const LateRanks& ranks, NodeId rank) {
  const auto at = std::ranges::find(ranks.ranks, rank) - ranks.ranks.begin();
  const auto index = static_cast<std::size_t>(at);
  return index < ranks.late.size() ? ranks.late[index].seconds() : 0;
}

double chain_delay_s(const LateRanks& ranks, const workload::Chain& chain, Router& router) {
  std::vector<double> start;
  for (const workload::Edge& edge : chain.edges) start.push_back(late_of(ranks, edge.from));
  const double last = *std::ranges::max_element(start);
  if (!is_ring(chain)) return last;
  const std::vector<double> chunk = chunk_seconds(chain, router);
  const double alone = workload::ring_time(chunk, start, chain.steps);
  return std::max(0.0, alone - chain.steps * *std::ranges::max_element(chunk));
}

TrafficFloor traffic_floor(const workload::Traffic& traffic, Duration step_overhead,
                           const std::optional<workload::CallCost>& cost, Router& router) {
  TrafficFloor floor;
  if (cost) floor = {cost->lead_s, cost->bytes_s};
  for (const workload::Stage& stage : traffic.stages) {
    const StageLatency latency(stage, router);
    floor.latency_s +=
        cost ? latency.beyond_library_s(step_overhead) : latency.seconds(step_overhead);
    if (!cost) floor.bytes_s += busiest_link_s(stage, router.fabric());
  }
  return floor;
}

}  // namespace weft::engine::fluid
