#include "adapt/lab/forwarding.hpp"

#include <linux/rtnetlink.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "adapt/lab/netns.hpp"

namespace weft::adapt::lab {
namespace {

constexpr unsigned read_threads = 2;
constexpr std::uint8_t host_prefix = 32;

// What the kernel calls an end that carries packets.
using EndOf = std::map<std::uint32_t, EndId>;

EndOf carrying_ends(const LabPlan& plan, const LabNode& node, const std::vector<LinkState>& links,
                    NodeRoutes& out) {
  EndOf ends;
  for (const EndId end : node.ends) {
    const auto it = std::ranges::find(links, plan.end(end).interface, &LinkState::name);
    if (it != links.end() && it->up && it->carrier) {
      ends.emplace(it->index, end);
    } else {
      out.down.push_back(end);
    }
  }
  return ends;
}

std::vector<EndId> usable(const EndOf& ends, const KernelRoute& route) {
  std::vector<EndId> out;
  if (route.type != RTN_UNICAST) return out;
  for (const NextHop& hop : route.hops)
    if (const auto it = ends.find(hop.interface); it != ends.end()) out.push_back(it->second);
  return out;
}

Status read_one(const LabPlan& plan, const LabNode& node, NodeRoutes& out) {
  WEFT_TRY(Netlink netlink, Netlink::open(node.name));
  WEFT_TRY(const std::vector<LinkState> links, netlink.links());
  const EndOf ends = carrying_ends(plan, node, links, out);
  WEFT_TRY(const std::vector<KernelRoute> routes, netlink.routes(RouteTables::all));
  for (const KernelRoute& route : routes) {
    if (route.prefix_length == host_prefix) {
      out.hops.try_emplace(route.destination, usable(ends, route));
    } else if (route.prefix_length == 0) {
      const std::vector<EndId> hops = usable(ends, route);
      out.default_hops.insert(out.default_hops.end(), hops.begin(), hops.end());
    }
  }
  return {};
}

// The NIC's end of a cable to a host.
std::optional<EndId> nic_end(const LabPlan& plan, LabCableId cable) {
  if (!plan.cables[cable].to_host) return std::nullopt;
  const EndId first{cable, 0};
  return plan.node_of(first).is_switch() ? first.peer() : first;
}

std::vector<std::pair<Ipv4, LabNodeId>> nics_of(const LabPlan& plan) {
  std::vector<std::pair<Ipv4, LabNodeId>> out;
  for (const LabCableId cable : ids<LabCableId>(plan.cables.size()))
    if (const auto end = nic_end(plan, cable))
      out.emplace_back(plan.end(*end).address, plan.end(*end).node);
  std::ranges::sort(out);
  const auto twice = std::ranges::unique(out);
  out.erase(twice.begin(), twice.end());
  return out;
}

}  // namespace

Result<std::vector<NodeRoutes>> read_node_routes(const LabPlan& plan) {
  std::vector<std::string> names;
  for (const LabNode& node : plan.nodes) names.push_back(node.netns);
  std::vector<NodeRoutes> out(plan.nodes.size());
  WEFT_TRY_STATUS(run_in_each_netns(names, read_threads, [&](std::size_t i) {
    return read_one(plan, plan.nodes[LabNodeId(i)], out[i]);
  }));
  return out;
}

Forwarding Forwarding::follow(const LabPlan& plan, const std::vector<NodeRoutes>& nodes) {
  Forwarding out;
  out.node_ = Column<LabNodeId, char>(plan.nodes.size(), 0);
  out.cable_ = Column<LabCableId, char>(plan.cables.size(), 0);
  out.unknown_ = Column<LabNodeId, std::size_t>(plan.nodes.size(), 0);
  for (const NodeRoutes& node : nodes)
    for (const EndId end : node.down) out.down_.push_back(end.cable);
  std::ranges::sort(out.down_);
  const auto twice = std::ranges::unique(out.down_);
  out.down_.erase(twice.begin(), twice.end());

  for (const auto& [address, owner] : nics_of(plan)) {
    Column<LabNodeId, char> met(plan.nodes.size(), 0);
    std::vector<LabNodeId> queue;
    const auto go = [&](const std::vector<EndId>& hops) {
      if (hops.empty()) ++out.dead_ends_;
      for (const EndId hop : hops) {
        const LabNodeId next = plan.end(hop.peer()).node;
        out.cable_[hop.cable] = 1;
        if (next != owner && std::exchange(met[next], 1) == 0) queue.push_back(next);
      }
    };
    for (std::size_t i = plan.switch_count; i < nodes.size(); ++i)
      if (LabNodeId(i) != owner) go(nodes[i].default_hops);
    for (std::size_t i = 0; i < queue.size(); ++i) {
      out.node_[queue[i]] = 1;
      const auto route = nodes[queue[i].index()].hops.find(address);
      go(route == nodes[queue[i].index()].hops.end() ? std::vector<EndId>{} : route->second);
    }
    for (const LabNodeId node : plan.switches()) {
      const auto route = nodes[node.index()].hops.find(address);
      if (route == nodes[node.index()].hops.end() || route->second.empty()) ++out.unknown_[node];
    }
  }
  return out;
}

Result<Forwarding> Forwarding::read(const LabPlan& plan) {
  WEFT_TRY(const std::vector<NodeRoutes> nodes, read_node_routes(plan));
  return follow(plan, nodes);
}

}  // namespace weft::adapt::lab
