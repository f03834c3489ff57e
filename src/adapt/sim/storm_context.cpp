#include "adapt/sim/storm_context.hpp"

#include <algorithm>

namespace weft::adapt::sim {

using model::CableId;
using model::LinkId;
using model::NodeId;
using model::NodeKind;
using model::ScopeId;
using model::ScopeKind;

StormContext::StormContext(const model::Fabric& context, std::uint32_t card_ports)
    : fabric(context), ports_per_card(card_ports), on_hosts(context.node_count(), false) {
  for (const LinkId link : fabric.links()) {
    if (!fabric.on_wire(link)) continue;
    const bool leaves_switch = fabric.is_switch(fabric.from(link));
    const bool to_switch = fabric.is_switch(fabric.to(link));
    if (leaves_switch && !to_switch) on_hosts[fabric.from(link).index()] = true;
    if (leaves_switch && to_switch && (link.value & 1u) == 0)
      trunks.push_back(model::cable_of(link));
  }
  for (const NodeId node : fabric.nodes()) {
    if (fabric.kind(node) == NodeKind::nic && fabric.host_of(node).valid() &&
        !wires_of(node).empty())
      nics.push_back(node);
    if (!fabric.is_switch(node) || wires_of(node).empty()) continue;
    switches.push_back(node);
    (on_hosts[node.index()] ? rack_switches : core_switches).push_back(node);
    if (has_cards(node)) carded.push_back(node);
  }
  for (const NodeId nic : nics)
    if (const ScopeId rack = fabric.enclosing(fabric.host_of(nic), ScopeKind::rack); rack.valid())
      racks.push_back(rack);
  std::ranges::sort(racks);
  racks.erase(std::ranges::unique(racks).begin(), racks.end());
}

std::vector<CableId> StormContext::wires_of(NodeId node) const {
  std::vector<CableId> out;
  for (const LinkId link : fabric.out(node))
    if (fabric.on_wire(link)) out.push_back(model::cable_of(link));
  return out;
}

std::vector<LinkId> StormContext::trunks_of(NodeId node) const {
  std::vector<LinkId> out;
  for (const LinkId link : fabric.out(node))
    if (fabric.is_switch(fabric.to(link))) out.push_back(link);
  return out;
}

std::vector<LinkId> StormContext::host_ports_of(NodeId node) const {
  std::vector<LinkId> out;
  for (const LinkId link : fabric.out(node))
    if (fabric.kind(fabric.to(link)) == NodeKind::nic && fabric.host_of(fabric.to(link)).valid())
      out.push_back(link);
  return out;
}

}  // namespace weft::adapt::sim
