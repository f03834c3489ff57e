#include "adapt/lab/status.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "adapt/lab/build.hpp"
#include "adapt/lab/netns.hpp"
#include "base/file.hpp"

namespace weft::adapt::lab {
namespace {

using nlohmann::json;

// "some avg10=12.34 avg60=..." of /proc/pressure/cpu.
double cpu_pressure() {
  const auto text = read_file("/proc/pressure/cpu", 4096);
  constexpr std::string_view key = "avg10=";
  const std::size_t at = text ? text->find(key) : std::string::npos;
  if (at == std::string::npos) return -1;
  double out = -1;
  std::from_chars(text->data() + at + key.size(), text->data() + text->size(), out);
  return out;
}

Status read_links(const Lab& lab, NodeStatus& out) {
  const LabNode& node = lab.plan.nodes[out.node];
  return run_in_netns(node.netns, [&]() -> Status {
    WEFT_TRY(Netlink netlink, Netlink::open(node.name));
    WEFT_TRY(const std::vector<LinkState> all, netlink.links());
    for (const EndId end : node.ends) {
      const auto it = std::ranges::find(all, lab.plan.end(end).interface, &LinkState::name);
      out.links.push_back(it == all.end() ? LinkState{} : *it);
    }
    return {};
  });
}

void add_processes(const Lab& lab, LabStatus& status) {
  std::vector<NodeStatus>& nodes = status.nodes;
  std::map<std::pair<std::string, std::string>, LabProcess> youngest;
  for (const LabProcess& process : read_journal(lab.journal()))
    youngest[{process.node, process.role}] = process;
  std::map<std::string, std::size_t> by_name;
  for (std::size_t i = 0; i < nodes.size(); ++i) by_name[lab.plan.nodes[nodes[i].node].name] = i;
  for (const auto& [key, process] : youngest) {
    if (key.second == "keeper" && !is_alive(process.id)) status.dead.push_back(process);
    const auto it = by_name.find(key.first);
    if (it == by_name.end()) continue;
    NodeStatus& node = nodes[it->second];
    node.processes.push_back(process);
    if (!is_alive(process.id)) node.dead.push_back(process);
  }
}

std::string_view state_text(const LinkState& link) {
  if (link.name.empty()) return "missing";
  if (!link.up) return "down";
  return link.carrier ? "up" : "no carrier";
}

json to_json(const LinkState& link) {
  return {{"rx_packets", link.rx_packets}, {"tx_packets", link.tx_packets},
          {"rx_bytes", link.rx_bytes},     {"tx_bytes", link.tx_bytes},
          {"rx_dropped", link.rx_dropped}, {"tx_dropped", link.tx_dropped},
          {"rx_errors", link.rx_errors},   {"tx_errors", link.tx_errors}};
}

json to_json(const Lab& lab, const NodeStatus& status) {
  const LabNode& node = lab.plan.nodes[status.node];
  json out = {{"name", node.name}, {"netns", node.netns}, {"interfaces", json::array()}};
  if (node.is_switch()) {
    out["asn"] = node.asn;
    out["loopback"] = ipv4_text(node.loopback);
    out["management"] = ipv4_text(node.management);
    out["routes_missing"] = status.routes_missing;
    out["drained"] = status.drained;
  }
  if (!status.trouble.empty()) out["trouble"] = status.trouble;
  for (std::size_t i = 0; i < status.links.size(); ++i) {
    const CableEnd& end = lab.plan.end(node.ends[i]);
    json row = to_json(status.links[i]);
    row["name"] = end.interface;
    row["fabric_interface"] = lab.fabric.interface_name(end.link);
    row["link"] = lab.fabric.name(end.link);
    row["address"] = ipv4_text(end.address);
    row["mac"] = mac_text(end.mac);
    row["state"] = state_text(status.links[i]);
    out["interfaces"].push_back(std::move(row));
  }
  for (const LabProcess& process : status.processes) {
    const bool dead = std::ranges::any_of(
        status.dead, [&](const LabProcess& other) { return other.role == process.role; });
    out["processes"].push_back({{"role", process.role}, {"pid", process.id.pid}, {"alive", !dead}});
  }
  return out;
}

}  // namespace

bool LabStatus::is_well() const {
  return routes_missing == 0 && cables_down.empty() && dead.empty() &&
         std::ranges::all_of(nodes, [](const NodeStatus& node) {
           return node.dead.empty() && node.trouble.empty();
         });
}

Result<LabStatus> look_at(const Lab& lab) {
  LabStatus out;
  const Without without = without_of(lab);
  const Routes routes = Routes::shortest(lab.plan, without).met_by_traffic(lab.plan);
  for (std::size_t i = 0; i < lab.plan.nodes.size(); ++i) {
    NodeStatus node;
    node.node = LabNodeId(i);
    node.drained = std::ranges::find(without.nodes, node.node) != without.nodes.end();
    if (Status read = read_links(lab, node); !read) node.trouble = read.error().text();
    if (i < lab.plan.switch_count && !node.drained && node.trouble.empty()) {
      std::vector<LabNodeId> one{node.node};
      WEFT_TRY(node.routes_missing, count_missing_routes(lab.plan, routes, one));
      for (std::size_t group = 0; group < routes.groups().size(); ++group)
        if (!routes.next_hops(node.node, group).empty())
          out.routes += routes.groups()[group].addresses.size();
      out.routes_missing += node.routes_missing;
    }
    out.nodes.push_back(std::move(node));
  }
  add_processes(lab, out);
  std::vector<char> down(lab.plan.cables.size(), 0);
  for (const NodeStatus& node : out.nodes)
    for (std::size_t i = 0; i < node.links.size(); ++i)
      if (!node.links[i].carrier) down[lab.plan.nodes[node.node].ends[i].cable.index()] = 1;
  for (std::size_t i = 0; i < down.size(); ++i)
    if (down[i] != 0) out.cables_down.emplace_back(i);
  out.cpu_pressure = cpu_pressure();
  return out;
}

std::string to_json(const Lab& lab, const LabStatus& status) {
  json out = {{"name", lab.options.name},
              {"phase", lab.phase == Phase::running ? "running" : "starting"},
              {"routing", lab.options.routing == Routing::frr ? "frr" : "static"},
              {"directory", lab.directory},
              {"management_netns", lab.plan.management_netns},
              {"well", status.is_well()},
              {"routes", status.routes},
              {"routes_missing", status.routes_missing},
              {"drained", lab.drained},
              {"cables_down", json::array()},
              {"nodes", json::array()}};
  if (status.cpu_pressure >= 0) out["cpu_pressure_percent"] = status.cpu_pressure;
  for (const LabCableId cable : status.cables_down)
    out["cables_down"].push_back(lab.fabric.name(lab.plan.cables[cable].cable));
  for (const NodeStatus& node : status.nodes) out["nodes"].push_back(to_json(lab, node));
  return out.dump(2);
}

}  // namespace weft::adapt::lab
