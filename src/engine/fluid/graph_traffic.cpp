// How the collectives of a graph become traffic, and how far their bytes go.
#include <algorithm>

#include "base/check.hpp"
#include "engine/fluid/graph_run.hpp"

namespace weft::engine::fluid {
namespace {

// Parts in one coupled AlltoAll; beyond it messages go out in rounds, one window of peers at a
// time.
constexpr std::size_t coupled_pairs_max = 1 << 20;

// All messages under way at once, and advancing together.
workload::Chain all_pairs(const workload::Exchange& exchange) {
  workload::Chain chain;
  const auto n = static_cast<std::uint32_t>(exchange.ranks.size());
  chain.edges.reserve(std::size_t{n} * (n - 1));
  for (std::uint32_t i = 0; i < n; ++i)
    for (std::uint32_t j = 0; j < n; ++j)
      if (i != j && exchange_bytes(exchange, i, j) > 0)
        chain.edges.push_back(
            {exchange.ranks[i], exchange.ranks[j], exchange_bytes(exchange, i, j)});
  return chain;
}

void couple_exchanges(workload::Traffic& traffic) {
  for (workload::Stage& stage : traffic.stages)
    std::erase_if(stage.exchanges, [&](const workload::Exchange& exchange) {
      if (exchange.ranks.size() * exchange.ranks.size() > coupled_pairs_max) return false;
      stage.chains.push_back(all_pairs(exchange));
      return true;
    });
}

}  // namespace

model::Distance GraphRun::distance(NodeId a, NodeId b) const {
  return distance_between(network_.fabric(), a, b);
}

model::Distance distance_between(const Fabric& fabric, NodeId a, NodeId b) {
  const auto together = [&](model::ScopeKind kind) {
    const model::ScopeId scope = fabric.enclosing(a, kind);
    return scope.valid() && scope == fabric.enclosing(b, kind);
  };
  if (fabric.host_of(a) == fabric.host_of(b)) return model::Distance::host;
  if (together(model::ScopeKind::rack)) return model::Distance::rack;
  // The smallest scope above racks that the fabric has: pods of a three-tier fabric, else zones.
  for (const auto kind : {model::ScopeKind::pod, model::ScopeKind::zone})
    if (fabric.enclosing(a, kind).valid())
      return together(kind) ? model::Distance::zone : model::Distance::cross_zone;
  return model::Distance::zone;
}

// Built once for each kind of call of a group, at the size of the first; other sizes scale it.
GraphRun::GroupTraffic& GraphRun::traffic_of(std::uint32_t group, const model::Operation& o) {
  const bool latency_only =
      o.bytes <= latency_bytes && graph_.groups[group].size() >= latency_ranks;
  const auto [entry, is_new] = traffic_.try_emplace({group, o.collective, latency_only});
  GroupTraffic& traffic = entry->second;
  if (!is_new) return traffic;
  const model::RankGroup& members = graph_.groups[group];
  traffic.bytes = latency_only ? 0 : o.bytes;
  for (std::uint32_t r = 0; r < members.rows; ++r) {
    workload::Request request{.op = o.collective, .bytes = traffic.bytes};
    for (const std::uint32_t rank : members.row(r)) request.ranks.push_back(job_.ranks[rank]);
    if (latency_only) {
      traffic.rows.push_back(latency_of(request));
      continue;
    }
    traffic.rows.push_back(collective_of(std::move(request)));
    add_distances(traffic.rows.back(), traffic);
  }
  for (const workload::Traffic& row : traffic.rows) {
    if (network_.contention() == NetworkOptions::Contention::on) {
      traffic.ids.push_back(player_.add(row));
      continue;
    }
    const double latency = traffic_latency_s(row, job_.step_overhead, network_.router());
    const double total = traffic_floor_s(row, job_.step_overhead, network_.router());
    traffic.latency_s = std::max(traffic.latency_s, latency);
    traffic.floor_s = std::max(traffic.floor_s, total - latency);
  }
  return traffic;
}

// A group of one has nobody to send to.
workload::Traffic GraphRun::collective_of(workload::Request request) {
  if (request.ranks.size() < 2) return {"none", {}};
  const std::string& wanted = job_.algorithms[static_cast<std::size_t>(request.op)];
  if (!wanted.empty()) request.algorithm = wanted;
  auto built = workload::build_traffic(network_.fabric(), request);
  if (!built && !wanted.empty()) {
    auto& [count, why] = refused_[request.op];
    if (count++ == 0) why = built.error().what;
    request.algorithm = "auto";
    built = workload::build_traffic(network_.fabric(), request);
  }
  WEFT_CHECK(built.has_value());  // graphs and their ranks are checked when they are placed
  couple_exchanges(*built);
  return *std::move(built);
}

void GraphRun::add_distances(const workload::Traffic& row, GroupTraffic& traffic) const {
  for (const workload::Stage& stage : row.stages) {
    for (const workload::Chain& chain : stage.chains)
      for (const workload::Edge& edge : chain.edges)
        traffic.distance_bytes[static_cast<std::size_t>(distance(edge.from, edge.to))] +=
            edge.bytes;
    for (const workload::Edge& flow : stage.flows)
      traffic.distance_bytes[static_cast<std::size_t>(distance(flow.from, flow.to))] += flow.bytes;
  }
}

// A few bytes: a tree's depth, up and (where everybody gets the result) down again. The flow of no
// bytes between its first and last rank stands for the latency of each step.
workload::Traffic GraphRun::latency_of(const workload::Request& request) {
  std::uint32_t depth = 0;
  while ((std::size_t{1} << depth) < request.ranks.size()) ++depth;
  workload::Stage stage{.name = "latency"};
  const bool both_ways = request.op == workload::Op::all_reduce;
  stage.latency_steps = both_ways ? 2 * depth : depth;
  if (request.ranks.size() > 1)
    stage.flows.push_back({request.ranks.front(), request.ranks.back(), 0});
  return {"latency", {std::move(stage)}};
}

}  // namespace weft::engine::fluid
