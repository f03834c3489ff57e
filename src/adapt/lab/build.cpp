#include "adapt/lab/build.hpp"

#include <fmt/format.h>
#include <linux/rtnetlink.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <set>

#include "adapt/lab/netns.hpp"

namespace weft::adapt::lab {
namespace {

// The kernel does most of this under one lock; a second thread hides the rest.
constexpr unsigned build_threads = 2;
constexpr std::uint32_t host_table_first = 100;  // one table a NIC
constexpr Ipv4 bridge_address = 0xAC1F0001;      // 172.31.0.1
constexpr std::uint8_t management_prefix = 16;

using Indexes = std::map<std::string, std::uint32_t, std::less<>>;

struct Setting {
  std::string_view key;
  std::string value;
};

// ICMP is not limited, so that path tracing loses nothing; answers come from the address of the
// interface the packet came in by, so that a hop has one name. IPv6 is off: nobody uses it here,
// and its neighbour discovery would disturb packet counts.
const std::array<Setting, 9>& common_settings() {
  static const std::array<Setting, 9> settings{{
      {"net/ipv6/conf/all/disable_ipv6", "1"},
      {"net/ipv6/conf/default/disable_ipv6", "1"},
      {"net/ipv4/conf/all/rp_filter", "0"},
      {"net/ipv4/conf/default/rp_filter", "0"},
      {"net/ipv4/icmp_ratemask", "0"},
      {"net/ipv4/icmp_errors_use_inbound_ifaddr", "1"},
      {"net/ipv4/fib_multipath_hash_policy", "3"},
      {"net/ipv4/conf/all/ignore_routes_with_linkdown", "1"},
      {"net/ipv4/conf/default/ignore_routes_with_linkdown", "1"},
  }};
  return settings;
}

// Policy 3 with both addresses, protocol and both ports (0x37). Policy 1 would reuse the hash that
// the sender's socket left in the packet, which is random per socket: equal 5-tuples would take
// different paths.
std::vector<Setting> settings_of(const LabNode& node) {
  std::vector<Setting> out(common_settings().begin(), common_settings().end());
  out.push_back({"net/ipv4/fib_multipath_hash_fields", "0x37"});
  if (!node.is_switch()) return out;
  out.push_back({"net/ipv4/ip_forward", "1"});
  out.push_back({"net/ipv4/fib_multipath_hash_seed", std::to_string(node.hash_seed)});
  return out;
}

std::vector<std::string> netns_names(const LabPlan& plan, const std::vector<LabNodeId>& nodes) {
  std::vector<std::string> out;
  for (const LabNodeId node : nodes) out.push_back(plan.nodes[node].netns);
  return out;
}

std::vector<LabNodeId> first_nodes(std::size_t count) {
  std::vector<LabNodeId> out;
  for (std::size_t i = 0; i < count; ++i) out.emplace_back(i);
  return out;
}

Status apply_settings(const LabNode& node, std::mutex& mutex, std::set<std::string>& warnings) {
  for (const Setting& setting : settings_of(node)) {
    const Status status = write_sysctl(setting.key, setting.value);
    if (status) continue;
    if (status.error().code != Errc::unsupported || setting.key.ends_with("hash_policy"))
      return status;
    if (setting.key.starts_with("net/ipv6/")) continue;  // a kernel without IPv6 needs no "off"
    const std::scoped_lock lock(mutex);
    warnings.insert(status.error().what + (setting.key.ends_with("hash_seed")
                                               ? ": all switches hash alike, so tiers polarise"
                                               : ": path tracing may lose answers"));
  }
  return {};
}

// Room for one open file a namespace, for as long as the object lives.
class FileLimit {
 public:
  explicit FileLimit(std::size_t more) {
    if (getrlimit(RLIMIT_NOFILE, &before_) != 0) return;
    rlimit now = before_;
    now.rlim_cur = std::min<rlim_t>(std::max<rlim_t>(now.rlim_cur, more + 256), now.rlim_max);
    setrlimit(RLIMIT_NOFILE, &now);
  }
  // Daemons must not inherit the larger one: some allocate a table of that size.
  ~FileLimit() { setrlimit(RLIMIT_NOFILE, &before_); }
  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;

 private:
  rlimit before_{};
};

Result<std::vector<Fd>> open_all(const LabPlan& plan, std::size_t count) {
  std::vector<Fd> out;
  for (std::size_t i = 0; i < count; ++i) {
    WEFT_TRY(Fd fd, open_netns(plan.nodes[LabNodeId(i)].netns));
    out.push_back(std::move(fd));
  }
  return out;
}

// The socket's own namespace does not matter: both ends name theirs.
Status build_cables(const LabPlan& plan) {
  const FileLimit limit(plan.nodes.size());
  WEFT_TRY(const std::vector<Fd> netns, open_all(plan, plan.nodes.size()));
  WEFT_TRY(Netlink netlink, Netlink::open("cables"));
  for (const LabCable& cable : plan.cables) {
    const auto veth = [&](const CableEnd& end) {
      return VethEnd{end.interface, end.mac, netns[end.node.index()].get()};
    };
    WEFT_TRY_STATUS(netlink.add_veth(veth(cable.ends[0]), veth(cable.ends[1])));
  }
  return netlink.flush();
}

Result<std::uint32_t> index_of(const Indexes& indexes, const LabNode& node,
                               const std::string& interface) {
  const auto it = indexes.find(interface);
  if (it != indexes.end()) return it->second;
  return fail(Errc::io, {}, fmt::format("{} has no interface {}", node.name, interface),
              "it was removed by another program: run weft lab down, then up");
}

Status add_neighbour(Netlink& netlink, const LabPlan& plan, EndId end, std::uint32_t index) {
  const CableEnd& peer = plan.end(end.peer());
  return netlink.add_neighbour(index, peer.address, peer.mac);
}

// A NIC and its switch are a point-to-point pair, so that both have a route to the other which
// comes back by itself after the interface was down.
Status configure_end(Netlink& netlink, const LabPlan& plan, EndId id, std::uint32_t index) {
  const LabCable& cable = plan.cables[id.cable];
  const CableEnd& end = plan.end(id);
  const bool point_to_point = cable.to_host;
  WEFT_TRY_STATUS(netlink.add_address(index, end.address, point_to_point ? 32 : 31,
                                      point_to_point ? plan.end(id.peer()).address : 0));
  WEFT_TRY_STATUS(netlink.set_up(index));
  return add_neighbour(netlink, plan, id, index);
}

// Rules outlive a link that goes down; routes do not.
enum class HostRules : std::uint8_t { missing, present };

// The first NIC's switches are the way for what has no source address yet; packets of each NIC
// leave by that NIC.
Status add_host_routes(Netlink& netlink, const LabPlan& plan, const LabNode& node,
                       const Indexes& indexes, const Without& without, HostRules rules) {
  std::map<model::NodeId, KernelRoute> by_nic;
  std::map<model::NodeId, Ipv4> address;
  for (const EndId id : node.ends) {
    const CableEnd& end = plan.end(id);
    if (std::ranges::find(without.nodes, plan.end(id.peer()).node) != without.nodes.end()) continue;
    WEFT_TRY(const std::uint32_t index, index_of(indexes, node, end.interface));
    KernelRoute& route = by_nic[end.device];
    route.prefix_length = 0;
    route.hops.push_back({.interface = index, .gateway = plan.end(id.peer()).address});
    address[end.device] = end.address;
  }
  std::uint32_t table = host_table_first;
  if (!by_nic.empty())
    WEFT_TRY_STATUS(netlink.add_route(by_nic.begin()->second, RouteWrite::replace));
  if (by_nic.size() < 2) return {};
  for (auto& [nic, route] : by_nic) {
    route.table = table;
    WEFT_TRY_STATUS(netlink.add_route(route, RouteWrite::replace));
    if (rules == HostRules::missing)
      WEFT_TRY_STATUS(netlink.add_source_rule(address[nic], table, table));
    ++table;
  }
  return {};
}

Status configure_node(const LabPlan& plan, const LabNode& node) {
  WEFT_TRY(Netlink netlink, Netlink::open(node.name));
  WEFT_TRY(const Indexes indexes, netlink.indexes());
  WEFT_TRY(const std::uint32_t lo, index_of(indexes, node, "lo"));
  WEFT_TRY_STATUS(netlink.set_up(lo));
  if (node.loopback != 0) WEFT_TRY_STATUS(netlink.add_address(lo, node.loopback, 32));
  for (const EndId id : node.ends) {
    WEFT_TRY(const std::uint32_t index, index_of(indexes, node, plan.end(id).interface));
    WEFT_TRY_STATUS(configure_end(netlink, plan, id, index));
  }
  if (!node.is_switch())
    WEFT_TRY_STATUS(add_host_routes(netlink, plan, node, indexes, {}, HostRules::missing));
  return netlink.flush();
}

Mac management_mac(Ipv4 address) {
  return {0x02,
          0x78,
          0,
          0,
          static_cast<std::uint8_t>(address >> 8),
          static_cast<std::uint8_t>(address)};
}

Status cable_management(const LabPlan& plan) {
  const FileLimit limit(plan.switch_count);
  WEFT_TRY(const std::vector<Fd> netns, open_all(plan, plan.switch_count));
  WEFT_TRY(const Fd centre, open_netns(plan.management_netns));
  WEFT_TRY(Netlink netlink, Netlink::open("management network"));
  for (const LabNodeId id : plan.switches()) {
    const LabNode& node = plan.nodes[id];
    Mac port = management_mac(node.management);
    port[2] = 1;
    WEFT_TRY_STATUS(netlink.add_veth({std::string(management_interface),
                                      management_mac(node.management), netns[id.index()].get()},
                                     {fmt::format("m{}", id.value), port, centre.get()}));
  }
  return netlink.flush();
}

Status configure_bridge(const LabPlan& plan) {
  WEFT_TRY(Netlink netlink, Netlink::open("management network"));
  WEFT_TRY_STATUS(netlink.add_bridge("br0"));
  WEFT_TRY_STATUS(netlink.flush());
  WEFT_TRY(const std::vector<LinkState> links, netlink.links());
  const auto bridge = std::ranges::find(links, "br0", &LinkState::name);
  if (bridge == links.end()) return fail(Errc::io, {}, "the bridge br0 is gone");
  WEFT_TRY_STATUS(netlink.add_address(bridge->index, bridge_address, management_prefix));
  for (const LinkState& link : links) {
    if (link.name.starts_with("m")) WEFT_TRY_STATUS(netlink.set_master(link.index, bridge->index));
    WEFT_TRY_STATUS(netlink.set_up(link.index));
  }
  for (const LabNodeId id : plan.switches())
    WEFT_TRY_STATUS(netlink.add_neighbour(bridge->index, plan.nodes[id].management,
                                          management_mac(plan.nodes[id].management)));
  return netlink.flush();
}

Status configure_management(const LabNode& node) {
  WEFT_TRY(Netlink netlink, Netlink::open(node.name));
  WEFT_TRY(const Indexes indexes, netlink.indexes());
  WEFT_TRY(const std::uint32_t index, index_of(indexes, node, std::string(management_interface)));
  WEFT_TRY_STATUS(netlink.add_address(index, node.management, management_prefix));
  WEFT_TRY_STATUS(netlink.set_up(index));
  return netlink.flush();
}

// What the switch should have, one route an address.
Result<std::vector<KernelRoute>> wanted_routes(const LabPlan& plan, LabNodeId id,
                                               const Routes& routes, const Indexes& indexes) {
  std::vector<KernelRoute> out;
  for (std::size_t group = 0; group < routes.groups().size(); ++group) {
    KernelRoute route{.hops = {}, .protocol = RTPROT_STATIC};
    for (const EndId end : routes.next_hops(id, group)) {
      WEFT_TRY(const std::uint32_t index,
               index_of(indexes, plan.nodes[id], plan.end(end).interface));
      route.hops.push_back({.interface = index, .gateway = plan.end(end.peer()).address});
    }
    if (route.hops.empty()) continue;
    std::ranges::sort(route.hops);
    const NicGroup& nics = routes.groups()[group];
    for (const Ipv4 address : nics.addresses) {
      route.destination = address;
      out.push_back(route);
    }
  }
  std::ranges::sort(out, {}, &KernelRoute::destination);
  return out;
}

Status delete_other_routes(Netlink& netlink, const std::vector<KernelRoute>& wanted) {
  WEFT_TRY(const std::vector<KernelRoute> present, netlink.routes());
  for (const KernelRoute& route : present)
    if (route.protocol == RTPROT_STATIC && route.type == RTN_UNICAST &&
        !std::ranges::binary_search(wanted, route.destination, {}, &KernelRoute::destination))
      WEFT_TRY_STATUS(netlink.delete_route(route));
  return netlink.flush();
}

Status write_routes_of(const LabPlan& plan, LabNodeId id, const Routes& routes, RouteWrite write) {
  WEFT_TRY(Netlink netlink, Netlink::open(plan.nodes[id].name));
  WEFT_TRY(const Indexes indexes, netlink.indexes());
  WEFT_TRY(const std::vector<KernelRoute> wanted, wanted_routes(plan, id, routes, indexes));
  for (const KernelRoute& route : wanted) WEFT_TRY_STATUS(netlink.add_route(route, write));
  WEFT_TRY_STATUS(netlink.flush());
  return write == RouteWrite::replace ? delete_other_routes(netlink, wanted) : Status{};
}

std::vector<Ipv4> gateways(const std::vector<NextHop>& hops) {
  std::vector<Ipv4> out;
  for (const NextHop& hop : hops) out.push_back(hop.gateway);
  std::ranges::sort(out);
  return out;
}

std::size_t missing_of(const LabPlan& plan, LabNodeId id, const Routes& routes,
                       const std::vector<KernelRoute>& present) {
  std::map<Ipv4, const KernelRoute*> by_address;
  for (const KernelRoute& route : present)
    if (route.prefix_length == 32 && route.type == RTN_UNICAST)
      by_address[route.destination] = &route;
  std::size_t missing = 0;
  for (std::size_t group = 0; group < routes.groups().size(); ++group) {
    std::vector<Ipv4> wanted;
    for (const EndId end : routes.next_hops(id, group))
      wanted.push_back(plan.end(end.peer()).address);
    if (wanted.empty()) continue;
    std::ranges::sort(wanted);
    const NicGroup& nics = routes.groups()[group];
    for (const Ipv4 address : nics.addresses) {
      const auto it = by_address.find(address);
      if (it == by_address.end() || gateways(it->second->hops) != wanted) ++missing;
    }
  }
  return missing;
}

}  // namespace

Result<std::vector<std::string>> build_nodes(const LabPlan& plan) {
  const std::vector<std::string> names = netns_names(plan, first_nodes(plan.nodes.size()));
  WEFT_TRY_STATUS(create_netns(names, build_threads));
  std::mutex mutex;
  std::set<std::string> warnings;
  WEFT_TRY_STATUS(run_in_each_netns(names, build_threads, [&](std::size_t i) {
    return apply_settings(plan.nodes[LabNodeId(i)], mutex, warnings);
  }));
  WEFT_TRY_STATUS(build_cables(plan));
  WEFT_TRY_STATUS(run_in_each_netns(names, build_threads, [&](std::size_t i) {
    return configure_node(plan, plan.nodes[LabNodeId(i)]);
  }));
  return std::vector<std::string>(warnings.begin(), warnings.end());
}

Status build_management(const LabPlan& plan) {
  WEFT_TRY_STATUS(create_netns(plan.management_netns));
  WEFT_TRY_STATUS(cable_management(plan));
  WEFT_TRY_STATUS(run_in_netns(plan.management_netns, [&] { return configure_bridge(plan); }));
  return run_in_each_netns(
      netns_names(plan, first_nodes(plan.switch_count)), build_threads,
      [&](std::size_t i) { return configure_management(plan.nodes[LabNodeId(i)]); });
}

Status write_static_routes(const LabPlan& plan, const Routes& routes,
                           const std::vector<LabNodeId>& nodes, RouteWrite write) {
  return run_in_each_netns(netns_names(plan, nodes), build_threads, [&](std::size_t i) {
    return write_routes_of(plan, nodes[i], routes, write);
  });
}

Status write_host_routes(const LabPlan& plan, const Without& without) {
  std::vector<LabNodeId> hosts;
  for (std::size_t i = plan.switch_count; i < plan.nodes.size(); ++i) hosts.emplace_back(i);
  return run_in_each_netns(netns_names(plan, hosts), build_threads, [&](std::size_t i) -> Status {
    const LabNode& node = plan.nodes[hosts[i]];
    WEFT_TRY(Netlink netlink, Netlink::open(node.name));
    WEFT_TRY(const Indexes indexes, netlink.indexes());
    WEFT_TRY_STATUS(add_host_routes(netlink, plan, node, indexes, without, HostRules::present));
    return netlink.flush();
  });
}

Result<std::size_t> count_missing_routes(const LabPlan& plan, const Routes& routes,
                                         std::vector<LabNodeId>& nodes) {
  std::vector<std::size_t> missing(nodes.size(), 0);
  WEFT_TRY_STATUS(run_in_each_netns(netns_names(plan, nodes), 1, [&](std::size_t i) -> Status {
    WEFT_TRY(Netlink netlink, Netlink::open(plan.nodes[nodes[i]].name));
    WEFT_TRY(const std::vector<KernelRoute> present, netlink.routes());
    missing[i] = missing_of(plan, nodes[i], routes, present);
    return {};
  }));
  std::size_t out = 0;
  std::vector<LabNodeId> left;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    out += missing[i];
    if (missing[i] > 0) left.push_back(nodes[i]);
  }
  nodes = std::move(left);
  return out;
}

Status restore_end(const LabPlan& plan, EndId end, const Routes* routes, const Without& without) {
  const LabNode& node = plan.node_of(end);
  return run_in_netns(node.netns, [&]() -> Status {
    WEFT_TRY(Netlink netlink, Netlink::open(node.name));
    WEFT_TRY(const Indexes indexes, netlink.indexes());
    WEFT_TRY(const std::uint32_t index, index_of(indexes, node, plan.end(end).interface));
    WEFT_TRY_STATUS(add_neighbour(netlink, plan, end, index));
    if (!node.is_switch())
      WEFT_TRY_STATUS(add_host_routes(netlink, plan, node, indexes, without, HostRules::present));
    WEFT_TRY_STATUS(netlink.flush());
    if (!node.is_switch() || routes == nullptr) return {};
    return write_routes_of(plan, plan.end(end).node, *routes, RouteWrite::replace);
  });
}

}  // namespace weft::adapt::lab
