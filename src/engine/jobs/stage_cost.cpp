#include "engine/jobs/stage_cost.hpp"

#include <algorithm>
#include <map>

#include "engine/jobs/host_load.hpp"

namespace weft::engine {
namespace {

// Of equal sizes without writing them out.
void add_exchange(const workload::Exchange& exchange, const Fabric& fabric, HostLoad& load) {
  if (!exchange.matrix.empty())
    return exchange.for_each_message(
        [&](NodeId from, NodeId to, double bytes) { load.add(from, to, bytes); });
  std::map<NodeId, std::uint32_t> in_domain;
  for (const NodeId rank : exchange.ranks) ++in_domain[fabric.domain_of(rank)];
  for (const NodeId rank : exchange.ranks) {
    const std::uint32_t mates = in_domain[fabric.domain_of(rank)] - 1;
    const bool has_mates = exchange.first_round == 1;
    const std::uint32_t others = exchange.round_count() - std::min(exchange.round_count(), mates);
    load.add_both_ways(rank, has_mates ? mates * exchange.bytes_per_pair : 0,
                       (has_mates ? others : exchange.round_count()) * exchange.bytes_per_pair);
  }
}

}  // namespace

bool is_cable(const Fabric& fabric, NodeId from, NodeId to) {
  using model::NodeKind;
  return fabric.kind(from) == NodeKind::nvswitch || fabric.kind(to) == NodeKind::nvswitch ||
         (fabric.is_switch(from) && fabric.is_switch(to));
}

bool append_cable(NodeId from, NodeId to, const Router& router, std::vector<route::Hop>& out) {
  const Fabric& fabric = router.fabric();
  double total = 0;
  for (const model::LinkId link : fabric.out(from))
    if (fabric.to(link) == to) total += router.capacity(link);
  if (total <= 0) return false;
  for (const model::LinkId link : fabric.out(from))
    if (fabric.to(link) == to && router.capacity(link) > 0)
      out.push_back({link, router.capacity(link) / total});
  return true;
}

namespace {

double edge_latency_s(NodeId from, NodeId to, Router& router, PathChoice paths) {
  std::vector<route::Hop> cables;
  if (is_cable(router.fabric(), from, to)) {
    double sum = 0;
    if (append_cable(from, to, router, cables))
      for (const route::Hop& hop : cables)
        sum += hop.share * router.fabric().latency(hop.link).seconds();
    return sum;
  }
  if (paths == PathChoice::present) return router.present_latency_s(from, to);
  const Duration latency = router.latency(from, to);
  return latency == duration_max ? 0 : latency.seconds();
}

}  // namespace

StageLatency::StageLatency(const workload::Stage& stage, Router& router, PathChoice paths)
    : outer_steps_(stage.latency_steps), inner_steps_(stage.inner_steps) {
  if (stage.latency_steps == 0 && stage.inner_steps == 0) return;
  const Fabric& fabric = router.fabric();
  const auto is_inside = [&](const workload::Edge& edge) {
    return fabric.share_domain(edge.from, edge.to);
  };
  const auto add = [&](std::span<const workload::Edge> edges, bool mean) {
    double sum = 0, most = 0;
    std::size_t count = 0;
    for (const workload::Edge& edge : edges) {
      const double latency = edge_latency_s(edge.from, edge.to, router, paths);
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

double StageLatency::beyond_s(const workload::CallCost& call, Duration step_overhead) const {
  return outer_steps_ * (step_overhead.seconds() + std::max(0.0, outside_s_ - call.path_s)) +
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

TrafficFloor traffic_floor(const workload::Traffic& traffic, Duration step_overhead,
                           const std::optional<workload::CallCost>& cost, Router& router,
                           PathChoice paths) {
  TrafficFloor floor;
  if (cost) floor = {cost->lead_s, cost->bytes_s};
  for (const workload::Stage& stage : traffic.stages) {
    const StageLatency latency(stage, router, paths);
    floor.latency_s +=
        cost ? latency.beyond_s(*cost, step_overhead) : latency.seconds(step_overhead);
    if (!cost) floor.bytes_s += busiest_link_s(stage, router.fabric());
  }
  return floor;
}

}  // namespace weft::engine
