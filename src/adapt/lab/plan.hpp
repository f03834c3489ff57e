// What a lab is made of, computed from a fabric alone: namespaces, cables, names, addresses.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "adapt/linux_switch/netlink.hpp"
#include "base/id.hpp"
#include "base/result.hpp"
#include "base/text.hpp"
#include "model/fabric/fabric.hpp"

namespace weft::adapt::lab {

using LabNodeId = Id<struct LabNodeTag>;    // row of LabPlan::nodes
using LabCableId = Id<struct LabCableTag>;  // row of LabPlan::cables
using adapt::Ipv4;
using adapt::Mac;

inline constexpr std::size_t lab_switch_count_max = 1'000;
inline constexpr std::size_t lab_node_count_max = 4'000;
inline constexpr std::size_t lab_cable_count_max = 32'000;
inline constexpr std::size_t lab_name_length_max = 12;
inline constexpr std::size_t interface_length_max = 15;  // IFNAMSIZ less the final zero

// One end of a cable, as an index: LabPlan::end() gives the row.
struct EndId {
  LabCableId cable;
  std::uint8_t side = 0;  // 0 or 1
  EndId peer() const { return {cable, static_cast<std::uint8_t>(1 - side)}; }
  friend auto operator<=>(const EndId&, const EndId&) = default;
};

struct CableEnd {
  LabNodeId node;         // the namespace it is in
  model::NodeId device;   // the switch or NIC of the fabric
  model::LinkId link;     // the direction that leaves by this end
  std::string interface;  // in that namespace; at most interface_length_max characters
  Mac mac{};
  Ipv4 address = 0;  // of the interface; a NIC's is Fabric::address(nic)
};

struct LabCable {
  model::CableId cable;
  std::array<CableEnd, 2> ends;  // ends[0].link is forward(cable)
  bool to_host = false;          // one end is a NIC
};

enum class LabNodeKind : std::uint8_t { network_switch, host };

// One network namespace: a switch, or a host with all of its back-end NICs.
struct LabNode {
  model::NodeId node;  // a NIC stands for itself where the fabric has no host for it
  LabNodeKind kind = LabNodeKind::network_switch;
  std::string name;           // as in the fabric: "rtsw:3"
  std::string netns;          // "weft-lab0-rtsw-3", a file of /run/netns
  std::vector<EndId> ends;    // its ends of cables, in the order of the fabric's ports
  std::uint32_t asn = 0;      // of switches
  Ipv4 loopback = 0;          // of switches
  Ipv4 management = 0;        // of switches: address of mgmt0
  std::uint32_t hash_seed{};  // of switches: what makes its ECMP hash its own
  bool is_switch() const { return kind == LabNodeKind::network_switch; }
};

struct LabPlan {
  std::string lab;                          // its name
  Column<LabNodeId, LabNode> nodes;         // all switches, then all hosts, in the fabric's order
  Column<LabCableId, LabCable> cables;      // in the order of cables
  std::size_t switch_count = 0;             // nodes [0, switch_count) are switches
  std::string management_netns;             // the namespace with the bridge of the management net
  Column<model::NodeId, LabNodeId> lab_of;  // of each switch, host and NIC; invalid for others

  const CableEnd& end(EndId id) const { return cables[id.cable].ends[id.side]; }
  const LabNode& node_of(EndId id) const { return nodes[end(id).node]; }
  IdRange<LabNodeId> switches() const { return ids<LabNodeId>(switch_count); }

  // The node of that name in the lab (a switch, host or NIC; the naming grammar of `fabric`).
  // Fails: Errc::unknown, also for nodes that are no part of a lab.
  Result<LabNodeId> find_node(const model::Fabric& fabric, const Token& name) const;
  // The cable "a--b" or "a--b#k", or a port. Fails: Errc::unknown, as above.
  Result<LabCableId> find_cable(const model::Fabric& fabric, const Token& name) const;
  // The end by which the direction "a->b" or "a->b#k" leaves. Fails: as above.
  Result<EndId> find_sender(const model::Fabric& fabric, const Token& name) const;
};

enum class HashSeeds : std::uint8_t {
  distinct,  // every switch hashes for itself
  equal,     // on purpose: tiers polarise
};
struct PlanOptions {
  std::string lab = "lab0";
  HashSeeds seeds = HashSeeds::distinct;
};

// The plan of a lab. Addresses: NICs as the fabric says (10.0.0.1 + index), cables /31 from
// 10.128.0.0, loopbacks from 10.127.0.0, management from 172.31.0.2. ASNs: switches with NICs have
// one each; the others of a role in one pod share one where no shortest path would visit an ASN
// twice (else one each), so that eBGP finds exactly the shortest paths.
// Fails: Errc::value on a bad lab name, Errc::unsupported on a fabric with more than
// lab_switch_count_max switches (or the other bounds) or without a switch, and on cables that no
// lab can have: between NICs, or of NICs outside the back-end network.
// Cost: O(switches * links) time for the ASNs, O(nodes + links) else. Deterministic.
Result<LabPlan> make_plan(const model::Fabric& fabric, const PlanOptions& options);

// Letters a-z, digits and "_", at most lab_name_length_max of them: no name is then the start of
// another's namespaces. Fails: Errc::value.
Status check_lab_name(std::string_view name);

// "weft-lab0-": what the names of all namespaces of that lab begin with.
std::string netns_prefix(std::string_view lab);

// Who has which address, as CSV with address, device and interface: for whoever reads the lab's
// logs.
std::string inventory_csv(const model::Fabric& fabric, const LabPlan& plan);

std::string mac_text(const Mac& mac);

}  // namespace weft::adapt::lab
