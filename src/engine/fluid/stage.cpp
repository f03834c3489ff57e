#include "engine/fluid/stage.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "engine/jobs/host_load.hpp"
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

}  // namespace weft::engine::fluid
