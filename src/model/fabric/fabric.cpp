#include "model/fabric/fabric.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "base/check.hpp"

namespace weft::model {
namespace {

// For each host in order: where its members begin. `members` are sorted by host.
std::vector<std::uint32_t> first_of_host(std::span<const NodeId> members,
                                         const Column<NodeId, NodeId>& host_of,
                                         std::span<const NodeId> hosts) {
  std::vector<std::uint32_t> first;
  first.reserve(hosts.size() + 1);
  std::size_t at = 0;
  for (const NodeId host : hosts) {
    first.push_back(static_cast<std::uint32_t>(at));
    while (at < members.size() && host_of[members[at]] == host) ++at;
  }
  first.push_back(static_cast<std::uint32_t>(at));
  for (; at < members.size(); ++at) WEFT_CHECK(!host_of[members[at]].valid());
  return first;
}

// Distances over PCIe from one GPU to the NICs of its host: through the host and its PCIe switches,
// never through NVSwitches or another device.
class PcieSearch {
 public:
  explicit PcieSearch(const Fabric& fabric) : fabric_(fabric), seen_(fabric.node_count(), 0) {}

  // Hops to each of `nics`, or `unreachable`.
  static constexpr std::uint32_t unreachable = UINT32_MAX;
  void distances(NodeId gpu, std::span<const NodeId> nics, std::vector<std::uint32_t>& out) {
    ++round_;
    queue_.assign(1, {gpu, 0});
    seen_[gpu] = round_;
    out.assign(nics.size(), unreachable);
    for (std::size_t i = 0; i < queue_.size(); ++i) {
      const auto [node, hops] = queue_[i];
      if (fabric_.kind(node) == NodeKind::nic) {
        const auto it = std::ranges::find(nics, node);
        if (it != nics.end()) out[static_cast<std::size_t>(it - nics.begin())] = hops;
      } else {
        expand(node, hops);
      }
    }
  }

 private:
  void expand(NodeId node, std::uint32_t hops) {
    for (const LinkId link : fabric_.out(node)) {
      const NodeId next = fabric_.to(link);
      const NodeKind kind = fabric_.kind(next);
      const bool inside =
          kind == NodeKind::nic || kind == NodeKind::pcie_switch || kind == NodeKind::host;
      if (!inside || seen_[next] == round_) continue;
      seen_[next] = round_;
      queue_.push_back({next, hops + 1});
    }
  }

  struct Step {
    NodeId node;
    std::uint32_t hops;
  };
  const Fabric& fabric_;
  Column<NodeId, std::uint32_t> seen_;
  std::uint32_t round_ = 0;
  std::vector<Step> queue_;
};

}  // namespace

std::string_view to_text(NodeKind kind) {
  switch (kind) {
    case NodeKind::host:
      return "host";
    case NodeKind::gpu:
      return "gpu";
    case NodeKind::nic:
      return "nic";
    case NodeKind::nvswitch:
      return "nvswitch";
    case NodeKind::pcie_switch:
      return "pcie_switch";
    case NodeKind::fabric_switch:
      return "fabric_switch";
  }
  std::unreachable();
}

std::string_view to_text(ScopeKind kind) {
  switch (kind) {
    case ScopeKind::region:
      return "region";
    case ScopeKind::building:
      return "building";
    case ScopeKind::zone:
      return "zone";
    case ScopeKind::pod:
      return "pod";
    case ScopeKind::rack:
      return "rack";
    case ScopeKind::host:
      return "host";
  }
  std::unreachable();
}

RoleId Fabric::find_role(std::string_view name) const {
  const auto it = role_by_name_.find(name);
  return it == role_by_name_.end() ? RoleId{} : it->second;
}

ScopeId Fabric::enclosing(NodeId node, ScopeKind kind) const {
  ScopeId at = scope(node);
  while (at.valid() && scopes_[at].kind != kind) at = scopes_[at].parent;
  return at;
}

std::span<const NodeId> Fabric::gpus_of(NodeId host) const {
  if (!is_indexed_host(host)) return {};
  const std::uint32_t i = role_index(host);
  return std::span(gpus_).subspan(host_gpu_first_[i], host_gpu_first_[i + 1] - host_gpu_first_[i]);
}

std::span<const NodeId> Fabric::nics_of(NodeId host) const {
  if (!is_indexed_host(host)) return {};
  const std::uint32_t i = role_index(host);
  return std::span(nics_).subspan(host_nic_first_[i], host_nic_first_[i + 1] - host_nic_first_[i]);
}

std::span<const NodeId> Fabric::gpus_of_domain(NodeId domain) const {
  const auto it = rack_domains_.find(domain);
  return it == rack_domains_.end() ? gpus_of(domain) : std::span<const NodeId>(it->second);
}

std::vector<LinkId> Fabric::links_between(NodeId a, NodeId b) const {
  std::vector<LinkId> links;
  for (const LinkId link : out(a))
    if (to(link) == b) links.push_back(link);
  return links;
}

ScopeId FabricBuilder::add_scope(ScopeKind kind, ScopeId parent, std::string_view name) {
  auto& same_kind = fabric_.scopes_of_kind_[static_cast<std::size_t>(kind)];
  const ScopeId id = fabric_.scopes_.push_back(
      {kind, static_cast<std::uint32_t>(same_kind.size()), parent, std::string(name)});
  same_kind.push_back(id);
  if (!name.empty()) WEFT_CHECK(fabric_.named_scopes_.emplace(name, id).second);
  return id;
}

RoleId FabricBuilder::role_of(const NodeSpec& spec) {
  RoleId role = fabric_.find_role(spec.role);
  if (!role.valid()) {
    WEFT_CHECK((spec.role == "gpu") == (spec.kind == NodeKind::gpu));
    WEFT_CHECK(spec.role != "host" || spec.kind == NodeKind::host);
    role = fabric_.roles_.push_back({std::string(spec.role), spec.kind, {}});
    fabric_.role_by_name_.emplace(spec.role, role);
  }
  WEFT_CHECK(fabric_.roles_[role].kind == spec.kind);
  return role;
}

// Index of a GPU model, which is added when it is new.
std::uint32_t FabricBuilder::model_of(std::string_view name) {
  if (const auto known = gpu_model_index_.find(name); known != gpu_model_index_.end())
    return known->second;
  const auto index = static_cast<std::uint32_t>(fabric_.gpu_models_.size());
  fabric_.gpu_models_.emplace_back(name);
  gpu_model_index_.emplace(name, index);
  return index;
}

NodeId FabricBuilder::add_node(const NodeSpec& spec) {
  const RoleId role = role_of(spec);
  auto& peers = fabric_.roles_[role].nodes;
  const NodeId node = fabric_.node_kind_.push_back(spec.kind);
  fabric_.node_role_.push_back(role);
  fabric_.node_role_index_.push_back(static_cast<std::uint32_t>(peers.size()));
  fabric_.node_scope_.push_back(spec.scope);
  fabric_.node_host_.push_back(spec.kind == NodeKind::host ? node : spec.host);
  fabric_.node_rail_.push_back(spec.rail);
  fabric_.node_plane_.push_back(spec.plane);
  peers.push_back(node);
  if (spec.kind == NodeKind::gpu) fabric_.gpu_model_.push_back(model_of(spec.model));
  port_count_.push_back(0);
  if (!spec.name.empty() && spec.name != fabric_.name(node)) {
    WEFT_CHECK(fabric_.named_nodes_.emplace(spec.name, node).second);
    fabric_.node_name_.emplace(node, spec.name);
  }
  return node;
}

CableId FabricBuilder::add_circuit(NodeId a, NodeId b, const LinkSpec& spec) {
  WEFT_CHECK(a != b && spec.rate.bps > 0 && spec.latency.ps >= 0);
  const auto add = [&](NodeId from, NodeId to, std::string_view interface) {
    const LinkId link = fabric_.link_from_.push_back(from);
    fabric_.link_to_.push_back(to);
    fabric_.link_rate_.push_back(spec.rate);
    fabric_.link_latency_.push_back(spec.latency);
    fabric_.link_port_.push_back(port_count_[from.index()]++);
    if (!interface.empty()) fabric_.interface_name_.emplace(link, interface);
    return link;
  };
  const LinkId link = add(a, b, spec.interface_a);
  add(b, a, spec.interface_b);
  return cable_of(link);
}

void FabricBuilder::set_nic(NodeId gpu, NodeId nic) {
  WEFT_CHECK(fabric_.kind(gpu) == NodeKind::gpu && fabric_.kind(nic) == NodeKind::nic);
  chosen_nic_[gpu.value] = nic;
}

void FabricBuilder::index_out_links() {
  Fabric& f = fabric_;
  f.out_first_.assign(f.node_count() + 1, 0);
  for (std::size_t i = 0; i < port_count_.size(); ++i)
    f.out_first_[i + 1] = f.out_first_[i] + port_count_[i];
  f.out_links_.resize(f.link_count());
  // Ports are numbered in link order, so a link's place is its sender's first one plus its port.
  for (const LinkId link : f.links())
    f.out_links_[f.out_first_[f.from(link).index()] + f.port(link)] = link;
}

void FabricBuilder::index_tiers() {
  Fabric& f = fabric_;
  std::map<std::pair<RoleId, RoleId>, TierId> known;
  const auto tier_of = [&](RoleId from, RoleId to) {
    const auto [it, is_new] = known.try_emplace({from, to}, TierId(f.tiers_.size()));
    if (is_new) f.tiers_.push_back({from, to, f.role(from).name + "->" + f.role(to).name, {}});
    return it->second;
  };
  f.link_tier_.reserve(f.link_count());
  for (const LinkId link : f.links()) {
    const TierId tier = tier_of(f.role_id(f.from(link)), f.role_id(f.to(link)));
    f.link_tier_.push_back(tier);
    f.tiers_[tier].links.push_back(link);
  }
}

void FabricBuilder::index_hosts() {
  Fabric& f = fabric_;
  const auto nodes_of = [&](std::string_view role) {
    const RoleId id = f.find_role(role);
    return id.valid() ? f.roles_[id].nodes : std::vector<NodeId>{};
  };
  f.gpus_ = nodes_of("gpu");
  f.nics_ = nodes_of("nic");
  f.hosts_ = nodes_of("host");
  f.host_gpu_first_ = first_of_host(f.gpus_, f.node_host_, f.hosts_);
  f.host_nic_first_ = first_of_host(f.nics_, f.node_host_, f.hosts_);
}

void FabricBuilder::choose_nics() {
  Fabric& f = fabric_;
  f.gpu_nic_.assign(f.gpus_.size(), NodeId{});
  PcieSearch search(f);
  std::vector<std::uint32_t> hops, users;
  for (const NodeId host : f.hosts_) {
    const std::span<const NodeId> nics = f.nics_of(host);
    if (nics.empty()) continue;
    users.assign(nics.size(), 0);
    for (const NodeId gpu : f.gpus_of(host)) {
      search.distances(gpu, nics, hops);
      std::size_t best = 0;
      for (std::size_t i = 1; i < nics.size(); ++i)
        if (std::pair(hops[i], users[i]) < std::pair(hops[best], users[best])) best = i;
      ++users[best];
      f.gpu_nic_[f.role_index(gpu)] = nics[best];
    }
  }
  for (const auto& [gpu, nic] : chosen_nic_) f.gpu_nic_[f.role_index(NodeId(gpu))] = nic;
  for (const NodeId gpu : f.gpus_)
    if (f.nic_of(gpu).valid() && f.rail(gpu) == no_lane) f.node_rail_[gpu] = f.rail(f.nic_of(gpu));
}

// From each NVSwitch outside hosts, over GPUs too: planes of NVSwitches meet in them.
void FabricBuilder::index_domains() {
  Fabric& f = fabric_;
  for (const NodeId gpu : f.gpus_) f.gpu_domain_.push_back(f.host_of(gpu));
  std::set<NodeId> seen;
  const auto joins = [&](NodeId node) {
    return f.kind(node) == NodeKind::gpu ||
           (f.kind(node) == NodeKind::nvswitch && !f.host_of(node).valid());
  };
  for (const Fabric::Role& role : f.roles_) {
    if (role.kind != NodeKind::nvswitch) continue;
    for (const NodeId first : role.nodes) {
      if (!joins(first) || !seen.insert(first).second) continue;
      std::vector<NodeId> found{first};
      for (std::size_t i = 0; i < found.size(); ++i)
        for (const LinkId link : f.out(found[i]))
          if (joins(f.to(link)) && seen.insert(f.to(link)).second) found.push_back(f.to(link));
      std::erase_if(found, [&](NodeId node) { return f.kind(node) != NodeKind::gpu; });
      std::ranges::sort(found);
      const NodeId name = found.empty() ? NodeId{} : f.host_of(found.front());
      if (!name.valid()) continue;
      for (const NodeId gpu : found) f.gpu_domain_[f.role_index(gpu)] = name;
      f.rack_domains_.emplace(name, std::move(found));
    }
  }
}

Fabric FabricBuilder::freeze() {
  index_out_links();
  index_tiers();
  index_hosts();
  choose_nics();
  index_domains();
  port_count_.clear();
  chosen_nic_.clear();
  gpu_model_index_.clear();
  return std::exchange(fabric_, Fabric{});
}

}  // namespace weft::model
