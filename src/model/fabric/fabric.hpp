// The one model of the fabric: hosts and their inside, NICs, switches, links, scopes.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/id.hpp"
#include "base/result.hpp"
#include "base/text.hpp"
#include "base/units.hpp"

namespace weft::model {

// Sizes that no fabric exceeds; larger requests are refused with the arithmetic.
inline constexpr std::int64_t gpu_count_max = 1'000'000;
inline constexpr std::int64_t link_count_max = 40'000'000;  // directed

using NodeId = Id<struct NodeTag>;
using LinkId = Id<struct LinkTag>;    // one direction of a cable
using CableId = Id<struct CableTag>;  // a cable: links 2c and 2c + 1
using ScopeId = Id<struct ScopeTag>;
using RoleId = Id<struct RoleTag>;
using TierId = Id<struct TierTag>;  // all links between two roles, in one direction

enum class NodeKind : std::uint8_t { host, gpu, nic, nvswitch, pcie_switch, fabric_switch };
// A rack is the set of hosts that share their first switches, whatever a topology calls it.
enum class ScopeKind : std::uint8_t { region, building, zone, pod, rack, host };
inline constexpr std::size_t scope_kind_count = 6;
std::string_view to_text(NodeKind kind);
std::string_view to_text(ScopeKind kind);

// Rail or plane of a node that has none.
inline constexpr std::int16_t no_lane = -1;

constexpr CableId cable_of(LinkId link) { return CableId(link.value >> 1); }
constexpr LinkId forward(CableId cable) { return LinkId(cable.value << 1); }
constexpr LinkId reverse(LinkId link) { return LinkId(link.value ^ 1u); }

// Frozen after FabricBuilder::freeze(). Everything is a column indexed by a strong id; what changes
// in time lives in State. Lookups by name are for the edge of the program; inner code holds ids.
class Fabric {
 public:
  struct Role {
    std::string name;  // "rtsw"
    NodeKind kind;
    std::vector<NodeId> nodes;  // by role index: "rtsw:3" is nodes[3]
  };
  struct Scope {
    ScopeKind kind;
    std::uint32_t index;  // among its kind, fabric-wide: "rack:17"
    ScopeId parent;       // none at the root
    std::string name;     // "" for "kind:index"
  };
  struct Tier {
    RoleId from, to;
    std::string name;           // "rtsw->ctsw"
    std::vector<LinkId> links;  // ascending
  };

  std::size_t node_count() const { return node_kind_.size(); }
  std::size_t link_count() const { return link_from_.size(); }
  std::size_t cable_count() const { return link_from_.size() / 2; }
  IdRange<NodeId> nodes() const { return ids<NodeId>(node_count()); }
  IdRange<LinkId> links() const { return ids<LinkId>(link_count()); }

  NodeKind kind(NodeId node) const { return node_kind_[node]; }
  RoleId role_id(NodeId node) const { return node_role_[node]; }
  const Role& role(RoleId role) const { return roles_[role]; }
  const std::string& role_name(NodeId node) const { return roles_[node_role_[node]].name; }
  std::uint32_t role_index(NodeId node) const { return node_role_index_[node]; }
  ScopeId scope(NodeId node) const { return node_scope_[node]; }
  std::int16_t rail(NodeId node) const { return node_rail_[node]; }
  std::int16_t plane(NodeId node) const { return node_plane_[node]; }
  bool is_switch(NodeId node) const { return kind(node) == NodeKind::fabric_switch; }
  const Column<RoleId, Role>& roles() const { return roles_; }
  // The role of that name, or an invalid id.
  RoleId find_role(std::string_view name) const;

  NodeId from(LinkId link) const { return link_from_[link]; }
  NodeId to(LinkId link) const { return link_to_[link]; }
  // Between NICs and switches: of the network, not of a host's inside.
  bool on_wire(LinkId link) const {
    const auto wire = [&](NodeId node) { return is_switch(node) || kind(node) == NodeKind::nic; };
    return wire(from(link)) && wire(to(link));
  }
  Rate rate(LinkId link) const { return link_rate_[link]; }
  Duration latency(LinkId link) const { return link_latency_[link]; }
  TierId tier_id(LinkId link) const { return link_tier_[link]; }
  const Column<TierId, Tier>& tiers() const { return tiers_; }
  // Links that leave `node`, in id order.
  std::span<const LinkId> out(NodeId node) const {
    const std::size_t i = node.index();
    return {out_links_.data() + out_first_[i], out_links_.data() + out_first_[i + 1]};
  }
  // Number of the port at the sending end, from 0, and the interface name on that device.
  std::uint32_t port(LinkId link) const { return link_port_[link]; }
  std::string interface_name(LinkId link) const;
  // Whether that name was given, rather than made by rule.
  bool has_given_interface(LinkId link) const { return interface_name_.contains(link); }

  const Column<ScopeId, Scope>& scopes() const { return scopes_; }
  // The scope of `kind` that holds `node`, or an invalid id.
  ScopeId enclosing(NodeId node, ScopeKind kind) const;

  // GPUs in order: the bare integer 17 is gpus()[17].
  std::span<const NodeId> gpus() const { return gpus_; }
  std::span<const NodeId> nics() const { return nics_; }    // back-end NICs, in order
  std::span<const NodeId> hosts() const { return hosts_; }  // that GPUs may stand in, in order
  NodeId host_of(NodeId node) const { return node_host_[node]; }  // of a GPU, NIC, ...
  // Empty for hosts of another role, such as storage.
  std::span<const NodeId> gpus_of(NodeId host) const;
  std::span<const NodeId> nics_of(NodeId host) const;
  // The NVLink domain of a GPU, called after its first host: the host itself, or, where NVSwitches
  // stand outside hosts (a rack such as NVL72), the first host that they reach. Of other nodes:
  // their host.
  NodeId domain_of(NodeId node) const {
    return kind(node) == NodeKind::gpu ? gpu_domain_[node_role_index_[node]] : node_host_[node];
  }
  // Whether both ends are in one domain, so that nothing between them crosses the network.
  bool share_domain(NodeId a, NodeId b) const {
    return domain_of(a).valid() && domain_of(a) == domain_of(b);
  }
  std::span<const NodeId> gpus_of_domain(NodeId domain) const;
  // Product name of a GPU, lower case: "h100". "" where the source of the fabric does not say.
  const std::string& gpu_model(NodeId gpu) const {
    return gpu_models_[gpu_model_[node_role_index_[gpu]]];
  }
  // Distinct names of all GPUs, in order of first appearance.
  std::span<const std::string> gpu_models() const { return gpu_models_; }
  // The NIC that `gpu` sends through: the nearest by PCIe, GPUs spread evenly over equals.
  // Invalid where the host has no NIC.
  NodeId nic_of(NodeId gpu) const { return gpu_nic_[node_role_index_[gpu]]; }
  // IPv4 address of a NIC, as hashed by switches: 10.0.0.1 + NIC index.
  std::uint32_t address(NodeId nic) const { return 0x0A000001u + node_role_index_[nic]; }

  // "rtsw:3" unless the node was given a name of its own.
  std::string name(NodeId node) const;
  bool has_given_name(NodeId node) const { return node_name_.contains(node); }
  std::string name(ScopeId scope) const;
  // "a->b", with "#k" when it is the k-th (from 1) of several parallel links.
  std::string name(LinkId link) const;
  std::string name(CableId cable) const;

  // The naming grammar: NAME, role:index, scope/role:index (index inside the scope), or a bare GPU
  // index. Fails: Errc::unknown with the nearest known name.
  Result<NodeId> find_node(const Token& token) const;
  // "a->b" or "a->b#k". Without #k and several parallel links: Errc::unknown says so.
  Result<LinkId> find_link(const Token& token) const;
  // "a--b" or "a--b#k", or a port "ctsw:5/7".
  Result<CableId> find_cable(const Token& token) const;
  // "rack:3" or a given scope name.
  Result<ScopeId> find_scope(const Token& token) const;
  // Directed links from `a` to `b`, in id order.
  std::vector<LinkId> links_between(NodeId a, NodeId b) const;
  // What its source says that it does not hold, or that is odd there; for people.
  std::span<const std::string> notes() const { return notes_; }

 private:
  friend class FabricBuilder;

  // One of hosts(): a role of another name counts its indexes for itself.
  bool is_indexed_host(NodeId node) const {
    return !hosts_.empty() && role_id(node) == role_id(hosts_.front());
  }

  Column<NodeId, NodeKind> node_kind_;
  Column<NodeId, RoleId> node_role_;
  Column<NodeId, std::uint32_t> node_role_index_;
  Column<NodeId, ScopeId> node_scope_;
  Column<NodeId, NodeId> node_host_;
  Column<NodeId, std::int16_t> node_rail_, node_plane_;
  std::map<NodeId, std::string> node_name_;  // only the names that differ from role:index
  std::map<std::string, NodeId, std::less<>> named_nodes_;

  Column<LinkId, NodeId> link_from_, link_to_;
  Column<LinkId, Rate> link_rate_;
  Column<LinkId, Duration> link_latency_;
  Column<LinkId, TierId> link_tier_;
  Column<LinkId, std::uint32_t> link_port_;
  std::map<LinkId, std::string> interface_name_;  // only given ones

  std::vector<std::uint32_t> out_first_;
  std::vector<LinkId> out_links_;
  Column<RoleId, Role> roles_;
  Column<TierId, Tier> tiers_;
  Column<ScopeId, Scope> scopes_;
  std::map<std::string, RoleId, std::less<>> role_by_name_;
  std::map<std::string, ScopeId, std::less<>> named_scopes_;
  std::array<std::vector<ScopeId>, scope_kind_count> scopes_of_kind_;
  std::vector<NodeId> gpus_, nics_, hosts_;
  std::vector<std::uint32_t> host_gpu_first_, host_nic_first_;
  std::vector<NodeId> gpu_nic_, gpu_domain_;
  std::map<NodeId, std::vector<NodeId>> rack_domains_;  // of NVSwitches outside hosts
  std::vector<std::string> gpu_models_;
  std::vector<std::uint32_t> gpu_model_;  // by GPU, into gpu_models_
  std::vector<std::string> notes_;
};

// The way to a Fabric. Nodes get their role index in order of addition, ports in order of links.
// What a reader of foreign input has to refuse before it calls (here it is a programmer's error):
//   - a role with two kinds; role "gpu" is the one role of GPUs, "host" holds the hosts and "nic"
//     the back-end NICs (other roles of these kinds, such as "storage" and "fe_nic", stand outside
//     hosts() and nics()); a GPU or back-end NIC whose host has another role;
//   - a name or scope name given twice, or one of the form "role:index" that is not the node's own;
//   - a cable from a node to itself, a rate that is not positive.
class FabricBuilder {
 public:
  struct NodeSpec {
    NodeKind kind;
    std::string_view role;
    ScopeId scope;
    NodeId host = {};             // the host a GPU, NIC or inner switch belongs to
    std::int16_t rail = no_lane;  // a GPU without one gets that of its NIC
    std::int16_t plane = no_lane;
    std::string_view name = {};   // empty: "role:index"
    std::string_view model = {};  // of a GPU: see Fabric::gpu_model
  };
  struct LinkSpec {
    Rate rate;
    Duration latency;
    std::string_view interface_a = {};  // empty: named by rule
    std::string_view interface_b = {};
  };

  ScopeId add_scope(ScopeKind kind, ScopeId parent, std::string_view name = {});
  NodeId add_node(const NodeSpec& spec);
  // A cable with both directions; the first runs a -> b.
  CableId add_circuit(NodeId a, NodeId b, const LinkSpec& spec);
  // The NIC that a GPU uses; without this call freeze() chooses as Fabric::nic_of says.
  void set_nic(NodeId gpu, NodeId nic);
  void add_note(std::string note) { fabric_.notes_.push_back(std::move(note)); }
  bool has_name(std::string_view name) const { return fabric_.named_nodes_.contains(name); }
  bool has_scope_name(std::string_view name) const { return fabric_.named_scopes_.contains(name); }
  std::size_t node_count() const { return fabric_.node_count(); }
  // Nodes, roles and scopes so far; links out, tiers and hosts are found by freeze().
  const Fabric& draft() const { return fabric_; }

  // GPUs and NICs of one host must have been added before those of the next, hosts in order;
  // those without a host come last.
  // Cost: O(nodes + links). The builder is empty afterwards.
  Fabric freeze();

 private:
  RoleId role_of(const NodeSpec& spec);
  std::uint32_t model_of(std::string_view name);
  void index_out_links();
  void index_tiers();
  void index_hosts();
  void choose_nics();
  void index_domains();

  Fabric fabric_;
  std::vector<std::uint32_t> port_count_;
  std::map<std::uint32_t, NodeId> chosen_nic_;
  std::map<std::string, std::uint32_t, std::less<>> gpu_model_index_;
};

}  // namespace weft::model
