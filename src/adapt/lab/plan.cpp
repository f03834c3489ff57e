#include "adapt/lab/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "adapt/lab/asn.hpp"
#include "base/hash.hpp"

namespace weft::adapt::lab {
namespace {

using model::CableId;
using model::Fabric;
using model::LinkId;
using model::NodeId;
using model::NodeKind;

constexpr Ipv4 cable_net = 0x0A800000;       // 10.128.0.0
constexpr Ipv4 loopback_net = 0x0A7F0000;    // 10.127.0.0
constexpr Ipv4 management_net = 0xAC1F0000;  // 172.31.0.0
constexpr std::size_t suffix_length_max = 40;

// What stands for a wire's end in the lab: a switch itself, of a NIC its host.
NodeId owner(const Fabric& fabric, NodeId device) {
  const NodeId host = fabric.is_switch(device) ? NodeId{} : fabric.host_of(device);
  return host.valid() ? host : device;
}

Status refuse(std::string what, std::string hint) {
  return fail(Errc::unsupported, {}, "this fabric cannot be built as a lab: " + std::move(what),
              std::move(hint));
}

Status check_counts(std::size_t switches, std::size_t nodes, std::size_t cables) {
  constexpr std::string_view smaller =
      "build a smaller part of it (fewer racks or spines), or simulate it with weft run";
  const auto over = [&](std::size_t count, std::size_t most, std::string_view what) {
    return count > most ? refuse(fmt::format("it has {} {}, more than {}", count, what, most),
                                 std::string(smaller))
                        : Status{};
  };
  WEFT_TRY_STATUS(over(switches, lab_switch_count_max, "switches"));
  WEFT_TRY_STATUS(over(nodes, lab_node_count_max, "switches and hosts"));
  WEFT_TRY_STATUS(over(cables, lab_cable_count_max, "cables"));
  if (switches == 0)
    return refuse("it has no switch", "use a fabric whose hosts are attached to switches");
  return {};
}

class Planner {
 public:
  Planner(const Fabric& fabric, const PlanOptions& options) : fabric_(fabric), options_(options) {}

  Result<LabPlan> run() {
    WEFT_TRY_STATUS(check_lab_name(options_.lab));
    plan_.lab = options_.lab;
    plan_.management_netns = netns_prefix(plan_.lab) + "mgmt";
    taken_.insert(plan_.management_netns);
    WEFT_TRY_STATUS(find_cables());
    WEFT_TRY_STATUS(add_nodes());
    for (const CableId cable : cables_) add_cable(cable);
    order_ends();
    assign_asns(plan_, fabric_);
    return std::move(plan_);
  }

 private:
  Status find_cables() {
    for (const CableId cable : ids<CableId>(fabric_.cable_count())) {
      const LinkId link = model::forward(cable);
      if (!fabric_.on_wire(link)) continue;
      WEFT_TRY_STATUS(check_cable(link));
      cables_.push_back(cable);
      for (const NodeId end : {fabric_.from(link), fabric_.to(link)})
        if (!fabric_.is_switch(end)) hosts_.insert(owner(fabric_, end));
    }
    return {};
  }

  Status check_cable(LinkId link) const {
    const std::string name = fabric_.name(model::cable_of(link));
    const NodeId a = fabric_.from(link);
    const NodeId b = fabric_.to(link);
    if (!fabric_.is_switch(a) && !fabric_.is_switch(b))
      return refuse(fmt::format("cable {} connects two NICs", name),
                    "use a fabric whose hosts are attached to switches");
    for (const NodeId end : {a, b})
      if (!fabric_.is_switch(end) && fabric_.role_name(end) != "nic")
        return refuse(fmt::format("{} is not a NIC of the back-end network", fabric_.name(end)),
                      "remove `frontend:` from the file");
    return {};
  }

  Status add_nodes() {
    plan_.lab_of.assign(fabric_.node_count(), {});
    std::size_t switches = 0;
    for (const NodeId node : fabric_.nodes()) switches += fabric_.is_switch(node) ? 1 : 0;
    WEFT_TRY_STATUS(check_counts(switches, switches + hosts_.size(), cables_.size()));
    for (const NodeId node : fabric_.nodes())
      if (fabric_.is_switch(node)) add_switch(node);
    plan_.switch_count = plan_.nodes.size();
    for (const NodeId host : hosts_) add_node(host, LabNodeKind::host);
    return {};
  }

  LabNode& add_node(NodeId node, LabNodeKind kind) {
    LabNode row{.node = node, .kind = kind, .name = fabric_.name(node), .netns = {}, .ends = {}};
    row.netns = free_netns(kernel_name(row.name));
    plan_.lab_of[node] = plan_.nodes.push_back(std::move(row));
    return plan_.nodes[plan_.lab_of[node]];
  }

  void add_switch(NodeId node) {
    const auto index = static_cast<std::uint32_t>(plan_.nodes.size());
    LabNode& row = add_node(node, LabNodeKind::network_switch);
    row.loopback = loopback_net + 1 + index;
    row.management = management_net + 2 + index;
    const std::uint64_t own = options_.seeds == HashSeeds::equal ? 1 : hash_text(row.name);
    row.hash_seed = static_cast<std::uint32_t>(mix64(own)) | 1u;  // 0 would mean "none"
  }

  std::string free_netns(std::string suffix) {
    suffix.resize(std::min(suffix.size(), suffix_length_max));
    std::string name = netns_prefix(plan_.lab) + suffix;
    if (!taken_.insert(name).second) {
      name += fmt::format(".{}", plan_.nodes.size());
      taken_.insert(name);
    }
    return name;
  }

  void add_cable(CableId cable) {
    const auto index = static_cast<std::uint32_t>(plan_.cables.size());
    const LabCableId id{index};
    LabCable row{.cable = cable, .ends = {}};
    for (const std::uint8_t side : {std::uint8_t{0}, std::uint8_t{1}}) {
      const LinkId link = side == 0 ? model::forward(cable) : model::reverse(model::forward(cable));
      const NodeId device = fabric_.from(link);
      const NodeId home = owner(fabric_, device);
      const bool is_nic = !fabric_.is_switch(device);
      row.to_host = row.to_host || is_nic;
      CableEnd& end = row.ends[side];
      end.node = plan_.lab_of[home];
      end.device = device;
      end.link = link;
      end.interface = free_interface(end.node, link);
      end.mac = {0x02,
                 0x77,
                 static_cast<std::uint8_t>(index >> 16),
                 static_cast<std::uint8_t>(index >> 8),
                 static_cast<std::uint8_t>(index),
                 side};
      end.address = is_nic ? fabric_.address(device) : cable_net + 2 * index + side;
      plan_.lab_of[device] = end.node;
      plan_.nodes[end.node].ends.push_back({id, side});
    }
    plan_.cables.push_back(std::move(row));
  }

  // Names by rule are the same for all NICs of a host, so they are made from the NIC's number.
  std::string free_interface(LabNodeId node, LinkId link) {
    const NodeId device = fabric_.from(link);
    const bool is_nic = !fabric_.is_switch(device);
    std::string name = is_nic && !fabric_.has_given_interface(link)
                           ? fmt::format("nic{}", nic_number(device))
                           : kernel_name(fabric_.interface_name(link));
    const auto usable = [&](const std::string& text) {
      return !text.empty() && text.size() <= interface_length_max && text != "lo" &&
             text != "mgmt0" && text != "." && text != ".." && !interfaces_.contains({node, text});
    };
    // The number of the end in its namespace is free unless somebody gave a name like that.
    std::size_t number = plan_.nodes[node].ends.size();
    while (!usable(name)) name = fmt::format("p{}", number++);
    interfaces_.insert({node, name});
    return name;
  }

  std::size_t nic_number(NodeId nic) const {
    const NodeId host = fabric_.host_of(nic);
    if (!host.valid()) return 0;
    const auto nics = fabric_.nics_of(host);
    return static_cast<std::size_t>(std::ranges::find(nics, nic) - nics.begin());
  }

  // By device, then port: where a reader of the fabric looks for them.
  void order_ends() {
    for (LabNode& node : plan_.nodes.raw())
      std::ranges::sort(node.ends, {}, [&](EndId id) {
        const CableEnd& end = plan_.end(id);
        return std::pair(end.device, fabric_.port(end.link));
      });
  }

  const Fabric& fabric_;
  const PlanOptions& options_;
  LabPlan plan_;
  std::vector<CableId> cables_;
  std::set<NodeId> hosts_;
  std::set<std::string> taken_;
  std::set<std::pair<LabNodeId, std::string>> interfaces_;
};

}  // namespace

Status check_lab_name(std::string_view name) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  };
  if (!name.empty() && name.size() <= lab_name_length_max && std::ranges::all_of(name, fits))
    return {};
  return fail(Errc::value, {"--name", 0, 0}, fmt::format("{} is not a valid lab name", quote(name)),
              fmt::format("use 1 to {} of a-z, 0-9 and _", lab_name_length_max));
}

std::string netns_prefix(std::string_view lab) { return fmt::format("weft-{}-", lab); }

Result<LabPlan> make_plan(const Fabric& fabric, const PlanOptions& options) {
  return Planner(fabric, options).run();
}

namespace {

Status no_part(const Token& name, std::string_view what) {
  return fail(Errc::unknown, name.where,
              fmt::format("{} {} is not part of the lab", what, quote(name.text)),
              "a lab has switches, hosts with NICs, and the cables between them");
}

}  // namespace

Result<LabNodeId> LabPlan::find_node(const Fabric& fabric, const Token& name) const {
  WEFT_TRY(const NodeId node, fabric.find_node(name));
  if (!lab_of[node].valid()) WEFT_TRY_STATUS(no_part(name, "node"));
  return lab_of[node];
}

Result<LabCableId> LabPlan::find_cable(const Fabric& fabric, const Token& name) const {
  WEFT_TRY(const CableId cable, fabric.find_cable(name));
  const auto it = std::ranges::lower_bound(cables.raw(), cable, {}, &LabCable::cable);
  if (it == cables.end() || it->cable != cable) WEFT_TRY_STATUS(no_part(name, "cable"));
  return LabCableId(static_cast<std::size_t>(it - cables.begin()));
}

Result<EndId> LabPlan::find_sender(const Fabric& fabric, const Token& name) const {
  WEFT_TRY(const LinkId link, fabric.find_link(name));
  const auto it =
      std::ranges::lower_bound(cables.raw(), model::cable_of(link), {}, &LabCable::cable);
  if (it == cables.end() || it->cable != model::cable_of(link))
    WEFT_TRY_STATUS(no_part(name, "link"));
  const LabCableId cable(static_cast<std::size_t>(it - cables.begin()));
  return EndId{cable, static_cast<std::uint8_t>(it->ends[0].link == link ? 0 : 1)};
}

std::string inventory_csv(const model::Fabric& fabric, const LabPlan& plan) {
  std::string out = "address,device,interface\n";
  for (const LabNodeId id : plan.switches()) {
    const LabNode& node = plan.nodes[id];
    for (const Ipv4 own : {node.loopback, node.management})
      if (own != 0) out += fmt::format("{},{},\n", ipv4_text(own), node.name);
    for (const EndId end : node.ends)
      out += fmt::format("{},{},{}\n", ipv4_text(plan.end(end).address), node.name,
                         fabric.interface_name(plan.end(end).link));
  }
  return out;
}

std::string mac_text(const Mac& mac) { return fmt::format("{:02x}", fmt::join(mac, ":")); }

}  // namespace weft::adapt::lab
