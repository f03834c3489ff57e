// The busiest links, and whose flows make them so.
#include <algorithm>
#include <map>

#include "engine/fluid/graph_run.hpp"

namespace weft::engine::fluid {
namespace {

constexpr std::size_t hot_max = 10;

// Of the state at the end; what a link that is down then had before.
double bytes_per_s(LinkId link, Network& network) {
  const double now = network.router().capacity(link);
  return now > 0 ? now : network.fabric().rate(link).bytes_per_s();
}

std::vector<LinkId> busiest(Network& network, std::span<const double> link_bytes) {
  const Fabric& fabric = network.fabric();
  std::vector<LinkId> links;
  const auto seconds = [&](LinkId link) {
    return link_bytes[link.index()] / bytes_per_s(link, network);
  };
  for (const LinkId link : fabric.links())
    if (link_bytes[link.index()] > 0 && fabric.on_wire(link) && !model::on_front_end(fabric, link))
      links.push_back(link);
  const std::size_t kept = std::min(hot_max, links.size());
  std::ranges::partial_sort(links, links.begin() + static_cast<std::ptrdiff_t>(kept),
                            [&](LinkId a, LinkId b) {
                              const double sa = seconds(a), sb = seconds(b);
                              return sa != sb ? sa > sb : a < b;
                            });
  links.resize(kept);
  return links;
}

// The first pair of the route with a stream over the link.
std::pair<NodeId, NodeId> pair_over(LinkId resource, const GraphRun::RouteUse& use,
                                    Router& router) {
  std::vector<Hop> path;
  const std::uint32_t streams = std::max(router.stream_count(), router.config().qps);
  for (const workload::Edge& edge : use.edges)
    for (std::uint32_t s = 0; s < streams; ++s) {
      path.clear();
      if (!router.append_gpu_path(edge.from, edge.to, s, s, path)) continue;
      if (std::ranges::find(path, resource, &Hop::link) != path.end()) return {edge.from, edge.to};
    }
  return {use.from, use.to};
}

}  // namespace

std::vector<GraphRun::RouteUse> GraphRun::route_uses() const {
  std::vector<RouteUse> uses;
  for (std::uint32_t a = 0; a < graph_.actors.size(); ++a) {
    const std::uint32_t first = graph_.actors[a].peer_first;
    const std::size_t last =
        a + 1 < graph_.actors.size() ? graph_.actors[a + 1].peer_first : graph_.peers.size();
    for (std::size_t slot = first; slot < last; ++slot) {
      const PeerRoutes& entry = peer_routes_[slot];
      for (std::uint32_t k = 0; entry.known && k < graph_.ranks_per_actor; ++k)
        uses.push_back({routes_[entry.first + k],
                        entry.sent,
                        entry.dimension,
                        {},
                        job_.ranks[graph_.ranks_of(a)[k]],
                        job_.ranks[graph_.ranks_of(graph_.peers[slot])[k]]});
    }
  }
  for (const auto& [key, traffic] : traffic_)
    for (std::size_t r = 0; r < traffic.ids.size(); ++r)
      for (std::size_t stage = 0; stage < traffic.rows[r].stages.size(); ++stage) {
        const auto routes = player_.routes_of(traffic.ids[r], stage);
        for (std::size_t c = 0; c < routes.size(); ++c) {
          const workload::Edge& edge = traffic.rows[r].stages[stage].chains[c].edges.front();
          if (routes[c].route.valid())
            uses.push_back({routes[c].route, routes[c].sent, graph_.groups[key.group].dimension,
                            traffic.rows[r].stages[stage].chains[c].edges, edge.from, edge.to});
        }
      }
  return uses;
}

std::vector<model::HotLink> hottest_links(std::span<const double> link_bytes, double makespan_s,
                                          std::span<const std::unique_ptr<GraphRun>> graphs,
                                          Network& network) {
  const Fabric& fabric = network.fabric();
  std::vector<model::HotLink> out;
  if (graphs.empty() || makespan_s <= 0) return out;
  const std::vector<LinkId> links = busiest(network, link_bytes);
  if (links.empty()) return out;
  for (const LinkId link : links) {
    const double bytes = link_bytes[link.index()];
    out.push_back({.link = fabric.name(link),
                   .bytes = bytes,
                   .load = bytes / (bytes_per_s(link, network) * makespan_s),
                   .flows = {}});
  }
  for (const auto& graph : graphs) {
    std::map<std::pair<std::size_t, model::Dimension>, model::HotLink::Flow> flows;
    for (const GraphRun::RouteUse& use : graph->route_uses()) {
      if (use.bytes <= 0) continue;
      network.for_each_hop(use.route, [&](LinkId resource, double share) {
        for (const LinkId member : network.router().members(resource)) {
          const auto at = std::ranges::find(links, member);
          if (at == links.end()) continue;
          auto& flow = flows[{static_cast<std::size_t>(at - links.begin()), use.dimension}];
          if (flow.from.empty()) {
            const auto [from, to] = pair_over(resource, use, network.router());
            flow = {graph->name(), use.dimension, fabric.name(from), fabric.name(to), 0};
          }
          flow.bytes += use.bytes * share;
        }
      });
    }
    for (auto& [key, flow] : flows) out[key.first].flows.push_back(std::move(flow));
  }
  for (model::HotLink& link : out)
    std::ranges::stable_sort(link.flows, std::ranges::greater{}, &model::HotLink::Flow::bytes);
  return out;
}

}  // namespace weft::engine::fluid
