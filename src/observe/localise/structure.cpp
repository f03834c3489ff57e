#include "observe/localise/structure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace weft::observe::localise {

using model::NodeKind;

std::string_view to_text(EntityKind kind) {
  constexpr std::array<std::string_view, 6> names{"link", "cable", "nic", "card", "switch", "host"};
  return names[static_cast<std::size_t>(kind)];
}

std::string_view to_text(Flow flow) {
  constexpr std::array<std::string_view, 3> names{"both", "in", "out"};
  return names[static_cast<std::size_t>(flow)];
}

std::string name(const Fabric& fabric, const Entity& entity) {
  switch (entity.kind) {
    case EntityKind::link:
      return fabric.name(LinkId(entity.id));
    case EntityKind::cable:
      return fabric.name(model::CableId(entity.id));
    case EntityKind::card:
      return fmt::format("{}/{}-{}", fabric.name(NodeId(entity.id)), entity.port_first,
                         entity.port_last);
    default:
      return fabric.name(NodeId(entity.id));
  }
}

Structure::Structure(const Fabric& fabric) : fabric_(fabric) {
  kind_.reserve(fabric.link_count());
  for (const LinkId link : fabric.links()) {
    const bool inside = fabric.is_switch(fabric.from(link)) && fabric.is_switch(fabric.to(link));
    kind_.push_back(inside ? Kind::switch_link : Kind::edge_link);
  }
  add_ends();
  add_groups();
  index_groups();
}

void Structure::add_ends() {
  end_of_.resize(fabric_.node_count());
  const auto add = [&](NodeId node) {
    end_of_[node] = kind_.push_back(Kind::end);
    kind_.push_back(Kind::end);
    end_nodes_.insert(end_nodes_.end(), 2, node);
  };
  const auto in_host = [&](NodeId node) {
    const NodeId host = fabric_.host_of(node);
    return host.valid() && host != node;
  };
  for (const NodeId node : fabric_.nodes())
    if (!in_host(node)) add(node);
  for (const NodeId node : fabric_.nodes())
    if (in_host(node)) end_of_[node] = end_of_[fabric_.host_of(node)];
}

Entity Structure::entity(ComponentId component) const {
  if (is_link(component)) return {EntityKind::link, component.value, 0, 0, Flow::both};
  const NodeId node = end_nodes_[component.index() - link_count()];
  const bool nic = fabric_.kind(node) == NodeKind::nic;
  return {nic ? EntityKind::nic : EntityKind::host, node.value, 0, 0, Flow::both};
}

std::vector<LinkId> Structure::ports(NodeId node) const {
  std::vector<LinkId> out;
  for (const LinkId link : fabric_.out(node))
    if (fabric_.on_wire(link)) out.push_back(link);
  std::ranges::sort(out, {}, [&](LinkId link) { return fabric_.port(link); });
  return out;
}

Group Structure::range(NodeId node, std::span<const LinkId> ports, Flow flow) const {
  Group group;
  group.entity = {EntityKind::card, node.value, fabric_.port(ports.front()),
                  fabric_.port(ports.back()), flow};
  for (const LinkId out : ports) {
    if (flow != Flow::in) group.members.push_back(of(out));
    if (flow != Flow::out) group.members.push_back(of(model::reverse(out)));
  }
  // All that passes a rack's switch also passes a host of the rack.
  for (const LinkId out : fabric_.out(node)) {
    if (!fabric_.on_wire(out) || fabric_.is_switch(fabric_.to(out))) continue;
    group.rivals.push_back(receiving(fabric_.to(out)));
    group.rivals.push_back(sending(fabric_.to(out)));
  }
  std::ranges::sort(group.members);
  std::ranges::sort(group.rivals);
  const auto twice = std::ranges::unique(group.rivals);
  group.rivals.erase(twice.begin(), twice.end());
  return group;
}

void Structure::add_cables() {
  for (const auto cable : ids<model::CableId>(fabric_.cable_count())) {
    const LinkId link = model::forward(cable);
    if (!fabric_.on_wire(link)) continue;
    groups_.push_back({{EntityKind::cable, cable.value, 0, 0, Flow::both},
                       {of(link), of(model::reverse(link))},
                       {}});
  }
}

// A NIC with one cable is that cable.
void Structure::add_nic(NodeId nic) {
  const std::vector<LinkId> out = ports(nic);
  if (out.size() < 2) return;
  Group group = range(nic, out, Flow::both);
  group.entity = {EntityKind::nic, nic.value, 0, 0, Flow::both};
  group.rivals.clear();
  groups_.push_back(std::move(group));
}

// Each path enters and leaves a switch once, so faults of all its inputs and of all its outputs
// look alike: one group.
void Structure::add_switch(NodeId node) {
  const std::vector<LinkId> out = ports(node);
  if (out.size() < 2) return;
  switches_.push_back(node);
  Group group = range(node, out, Flow::both);
  group.entity = {EntityKind::fabric_switch, node.value, 0, 0, Flow::both};
  groups_.push_back(std::move(group));
}

void Structure::add_hosts() {
  for (std::size_t c = link_count(); c < component_count(); c += 2)
    groups_.push_back({entity(ComponentId(c)), {ComponentId(c), ComponentId(c + 1)}, {}});
}

void Structure::add_groups() {
  add_cables();
  add_hosts();
  for (const NodeId node : fabric_.nodes()) {
    if (fabric_.kind(node) == NodeKind::nic) add_nic(node);
    if (fabric_.is_switch(node)) add_switch(node);
  }
}

void Structure::index_groups() {
  group_first_.assign(component_count() + 1, 0);
  for (const Group& group : groups_)
    for (const ComponentId member : group.members) ++group_first_[member.index() + 1];
  for (std::size_t c = 0; c < component_count(); ++c) group_first_[c + 1] += group_first_[c];
  group_ids_.resize(group_first_.back());
  std::vector<std::uint32_t> at = group_first_;
  for (const GroupId group : ids<GroupId>(groups_.size()))
    for (const ComponentId member : groups_[group].members)
      group_ids_[at[member.index()]++] = group;
}

}  // namespace weft::observe::localise
