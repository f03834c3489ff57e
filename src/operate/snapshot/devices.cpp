#include "operate/snapshot/devices.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace weft::operate::snapshot {
namespace {

using model::EntityKind;
using model::Fabric;
using model::LinkId;
using model::NodeId;

// Devices by standing; each keeps the first that it was given.
class Circle {
 public:
  explicit Circle(const Fabric& fabric) : fabric_(fabric) {}

  void add(NodeId node, Standing standing) {
    if (!node.valid()) return;
    const NodeId device = device_of(node);
    if (standing == Standing::neighbour && !fabric_.is_switch(device)) standing = Standing::host;
    standing_.try_emplace(device, standing);
  }
  // What hangs on what is there already.
  void add_neighbours() {
    const auto centre = standing_;
    for (const auto& [device, standing] : centre) {
      add_neighbours_of(device);
      if (fabric_.kind(device) == model::NodeKind::host)
        for (const NodeId nic : fabric_.nics_of(device)) add_neighbours_of(nic);
    }
  }
  std::vector<NodeId> of(Standing standing) const {
    std::vector<NodeId> out;
    for (const auto& [device, its] : standing_)
      if (its == standing) out.push_back(device);
    return out;
  }

 private:
  NodeId device_of(NodeId node) const {
    if (fabric_.is_switch(node) || fabric_.kind(node) == model::NodeKind::host) return node;
    const NodeId host = fabric_.host_of(node);
    return host.valid() ? host : node;
  }
  void add_neighbours_of(NodeId node) {
    for (const LinkId link : fabric_.out(node))
      if (fabric_.on_wire(link)) add(fabric_.to(link), Standing::neighbour);
  }

  const Fabric& fabric_;
  std::map<NodeId, Standing> standing_;
};

void add_scope(const Fabric& fabric, model::ScopeId scope, Circle& circle) {
  const model::ScopeKind kind = fabric.scopes()[scope].kind;
  for (const NodeId node : fabric.nodes())
    if (fabric.enclosing(node, kind) == scope &&
        (fabric.is_switch(node) || fabric.kind(node) == model::NodeKind::host))
      circle.add(node, Standing::inside);
}

void add_root(const Fabric& fabric, const model::Entity& root, Circle& circle) {
  switch (root.kind) {
    case EntityKind::none:
      return;
    case EntityKind::node:
    case EntityKind::card:
      circle.add(NodeId(root.id), Standing::suspect);
      return;
    case EntityKind::port:
      circle.add(fabric.from(LinkId(root.id)), Standing::suspect);
      circle.add(fabric.to(LinkId(root.id)), Standing::end);
      return;
    case EntityKind::link:
    case EntityKind::cable: {
      const LinkId link =
          root.kind == EntityKind::link ? LinkId(root.id) : forward(model::CableId(root.id));
      circle.add(fabric.from(link), Standing::end);
      circle.add(fabric.to(link), Standing::end);
      return;
    }
    case EntityKind::scope:
      add_scope(fabric, model::ScopeId(root.id), circle);
      return;
  }
}

}  // namespace

std::string_view to_text(Standing standing) {
  constexpr std::array<std::string_view, 5> names{"suspect", "end of cable", "inside", "neighbour",
                                                  "host"};
  return names[static_cast<std::size_t>(standing)];
}

DeviceChoice devices_to_ask(const Fabric& fabric, const model::Case& c, std::size_t devices_max) {
  Circle circle(fabric);
  add_root(fabric, c.root, circle);
  circle.add_neighbours();
  DeviceChoice out;
  for (const Standing standing :
       {Standing::suspect, Standing::end, Standing::inside, Standing::neighbour, Standing::host}) {
    const std::vector<NodeId> all = circle.of(standing);
    const std::size_t taken = std::min(all.size(), devices_max - out.asked.size());
    for (std::size_t i = 0; i < taken; ++i)
      out.asked.push_back({fabric.name(all[i * all.size() / taken]), standing});
    out.left_out += all.size() - taken;
  }
  return out;
}

}  // namespace weft::operate::snapshot
