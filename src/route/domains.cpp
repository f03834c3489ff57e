#include "route/domains.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace weft::route {

Medium medium_of(model::NodeKind kind) {
  using enum model::NodeKind;
  switch (kind) {
    case fabric_switch:
      return Medium::network;
    case nvswitch:
      return Medium::nvlink;
    case pcie_switch:
    case host:
      return Medium::pcie;
    case gpu:
    case nic:
      break;
  }
  return Medium::none;
}

Domains::Domains(const Fabric& fabric) : fabric_(fabric), parent_(fabric.node_count()) {
  std::iota(parent_.begin(), parent_.end(), 0u);
  for (std::size_t c = 0; c < fabric.circuit_count(); ++c) {
    const LinkId link = forward(model::CircuitId(c));
    const NodeId a = fabric.from(link), b = fabric.to(link);
    const Medium medium = medium_of(fabric.kind(a));
    if (medium == Medium::none || medium != medium_of(fabric.kind(b))) continue;
    std::uint32_t x = root(a.value), y = root(b.value);
    if (x != y) parent_[std::max(x, y)] = std::min(x, y);
    // Point straight at the root: searches stay short without ranks.
    for (std::uint32_t node : {a.value, b.value}) {
      const std::uint32_t top = std::min(x, y);
      while (parent_[node] > top) node = std::exchange(parent_[node], top);
    }
  }
  for (std::uint32_t node = 0; node < parent_.size(); ++node) parent_[node] = root(node);
}

std::uint32_t Domains::root(std::uint32_t node) const {
  while (parent_[node] != node) node = parent_[node];
  return node;
}

bool Domains::connected(NodeId a, NodeId b, Medium medium) const {
  const auto is_in = [&](NodeId node) { return medium_of(fabric_.kind(node)) == medium; };
  // Calls visit(domain) for each that the end touches, until one returns true.
  const auto any_domain = [&](NodeId end, auto visit) {
    if (is_in(end)) return visit(parent_[end.index()]);
    return std::ranges::any_of(fabric_.out(end), [&](LinkId link) {
      const NodeId next = fabric_.to(link);
      return is_in(next) && visit(parent_[next.index()]);
    });
  };
  const bool shared = any_domain(a, [&](std::uint32_t domain) {
    return any_domain(b, [&](std::uint32_t other) { return other == domain; });
  });
  return shared ||
         std::ranges::any_of(fabric_.out(a), [&](LinkId link) { return fabric_.to(link) == b; });
}

}  // namespace weft::route
