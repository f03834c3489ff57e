// How the collectives of a graph become traffic, and how far their bytes go.
#include <algorithm>
#include <functional>

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
  chain.edges.reserve(std::size_t{exchange.size()} * exchange.round_count());
  exchange.for_each_message(
      [&](NodeId from, NodeId to, double bytes) { chain.edges.push_back({from, to, bytes}); });
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

const GraphRun::GroupCall& GraphRun::call_of(std::uint32_t group, const model::Operation& o) {
  const auto [entry, is_new] = group_calls_.try_emplace({group, o.collective, o.bytes});
  GroupCall& call = entry->second;
  if (!is_new) return call;
  const model::RankGroup& members = graph_.groups[group];
  const bool latency_only = o.bytes <= latency_bytes && members.size() >= latency_ranks;
  TrafficKey key{group, o.collective, latency_only, {}};
  for (std::uint32_t r = 0; r < members.rows; ++r) {
    workload::Calls::Call planned =
        library_calls_.plan(gpus_of(members.row(r)), o.collective, o.bytes);
    call.costs.push_back(planned.cost);
    key.algorithms.push_back(std::move(planned.algorithm));
  }
  if (std::ranges::adjacent_find(key.algorithms, std::not_equal_to<>{}) == key.algorithms.end())
    key.algorithms.resize(1);
  call.traffic = &traffic_of(std::move(key), o.bytes);
  call.scale = call.traffic->bytes > 0 ? o.bytes / call.traffic->bytes : 0;
  if (network_.contention() == NetworkOptions::Contention::on) return call;
  for (std::uint32_t r = 0; r < members.rows; ++r) {
    TrafficFloor floor = traffic_floor(call.traffic->rows[r], job_.step_overhead, call.costs[r],
                                       network_.router(), PathChoice::present);
    if (!call.costs[r]) floor.bytes_s *= call.scale;
    call.alone_s = std::max(call.alone_s, floor.seconds());
  }
  return call;
}

// Built once for each kind of call of a group, at the size of the first; other sizes scale it.
const GraphRun::GroupTraffic& GraphRun::traffic_of(TrafficKey key, double bytes) {
  const auto [entry, is_new] = traffic_.try_emplace(std::move(key));
  GroupTraffic& traffic = entry->second;
  if (!is_new) return traffic;
  const auto& [group, op, latency_only, algorithms] = entry->first;
  const model::RankGroup& members = graph_.groups[group];
  traffic.bytes = latency_only ? 0 : bytes;
  for (std::uint32_t r = 0; r < members.rows; ++r) {
    std::vector<NodeId> gpus = gpus_of(members.row(r));
    if (latency_only) {
      traffic.rows.push_back(latency_of(op, gpus));
      continue;
    }
    traffic.rows.push_back(library_calls_.traffic(
        std::move(gpus), op, bytes, algorithms[std::min<std::size_t>(r, algorithms.size() - 1)]));
    couple_exchanges(traffic.rows.back());
    add_distances(traffic.rows.back(), traffic);
  }
  if (network_.contention() == NetworkOptions::Contention::on)
    for (const workload::Traffic& row : traffic.rows) traffic.ids.push_back(player_.add(row));
  return traffic;
}

std::vector<NodeId> GraphRun::gpus_of(std::span<const std::uint32_t> ranks) const {
  std::vector<NodeId> gpus;
  gpus.reserve(ranks.size());
  for (const std::uint32_t rank : ranks) gpus.push_back(job_.ranks[rank]);
  return gpus;
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
workload::Traffic GraphRun::latency_of(workload::Op op, std::span<const NodeId> gpus) {
  std::uint32_t depth = 0;
  while ((std::size_t{1} << depth) < gpus.size()) ++depth;
  workload::Stage stage{.name = "latency"};
  stage.latency_steps = op == workload::Op::all_reduce ? 2 * depth : depth;
  if (gpus.size() > 1) stage.flows.push_back({gpus.front(), gpus.back(), 0});
  return {"latency", {std::move(stage)}};
}

}  // namespace weft::engine::fluid
