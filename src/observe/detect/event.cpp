#include "observe/detect/event.hpp"

#include <algorithm>

#include "base/hash.hpp"

namespace weft::observe::detect {

using model::Entity;
using model::EntityKind;
using model::LinkId;
using model::NodeId;
using model::NodeKind;

Event event_of(const model::Record& record, std::uint64_t serial) {
  return {.t = record.t,
          .entity = record.entity,
          .signal = signal(record.kind),
          .source = record.source,
          .value = record.value,
          .serial = serial};
}

Event event_of(const port::Sample& sample, const Entity& entity) {
  return {.t = sample.t,
          .entity = entity,
          .signal = signal(sample.metric),
          .series = mix64(hash_text(sample.component) + sample.index),
          .value = sample.value};
}

Context::Context(const model::Fabric& fabric, std::uint32_t ports_per_card)
    : fabric_(&fabric),
      ports_per_card_(std::max(ports_per_card, 1u)),
      wired_ports_(fabric.node_count()) {
  for (const LinkId link : fabric.links())
    if (fabric.on_wire(link)) ++wired_ports_[fabric.from(link)];
}

NodeId Context::node_of(const Entity& entity) const {
  switch (entity.kind) {
    case EntityKind::node:
    case EntityKind::card:
      return NodeId(entity.id);
    case EntityKind::port:
    case EntityKind::link:
      return fabric_->from(LinkId(entity.id));
    default:
      return {};
  }
}

Entity Context::port_part(const Entity& entity) const {
  if (entity.kind == EntityKind::port || entity.kind == EntityKind::link)
    return model::port_of(LinkId(entity.id));
  if (entity.kind != EntityKind::node) return {};
  const NodeId node(entity.id);
  if (fabric_->kind(node) != NodeKind::nic || wired_ports_[node] != 1) return {};
  const auto links = fabric_->out(node);
  return model::port_of(
      *std::ranges::find_if(links, [&](LinkId link) { return fabric_->on_wire(link); }));
}

Entity Context::card_part(const Entity& entity) const {
  const NodeId node = node_of(entity);
  if (!node.valid() || !fabric_->is_switch(node) || wired_ports_[node] <= ports_per_card_)
    return {};
  if (entity.kind == EntityKind::card) return entity;
  if (entity.kind == EntityKind::node) return {};
  return model::card_of(node, fabric_->port(LinkId(entity.id)) / ports_per_card_);
}

Entity Context::part_of(const Entity& entity, Part part) const {
  if (part == Part::port) return port_part(entity);
  if (part == Part::card) return card_part(entity);
  const NodeId node = node_of(entity);
  if (!node.valid()) return {};
  if (part == Part::nic)
    return fabric_->kind(node) == NodeKind::nic ? model::entity(node) : Entity{};
  if (fabric_->is_switch(node)) return part == Part::device ? model::entity(node) : Entity{};
  const NodeId host = fabric_->kind(node) == NodeKind::host ? node : fabric_->host_of(node);
  return host.valid() ? model::entity(host) : Entity{};
}

std::uint32_t Context::ports(const Entity& part) const {
  if (part.kind == EntityKind::card) {
    const std::uint32_t first = part.card * ports_per_card_;
    const std::uint32_t all = wired_ports_[NodeId(part.id)];
    return std::clamp(all > first ? all - first : 1u, 1u, ports_per_card_);
  }
  if (part.kind != EntityKind::node) return 1;
  const NodeId node(part.id);
  if (fabric_->kind(node) == NodeKind::host)
    return std::max(static_cast<std::uint32_t>(fabric_->nics_of(node).size()), 1u);
  return std::max(wired_ports_[node], 1u);
}

}  // namespace weft::observe::detect
