#include "route/domains.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.hpp"

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
  for (std::size_t c = 0; c < fabric.cable_count(); ++c) {
    const LinkId link = forward(model::CableId(c));
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
  note_touched();
}

std::uint32_t Domains::Touched::of(Medium medium) const {
  return medium == Medium::network ? network : medium == Medium::nvlink ? nvlink : pcie;
}

void Domains::note_touched() {
  touched_.resize(parent_.size());
  for (const NodeId node : fabric_.nodes()) {
    Touched& touched = touched_[node.index()];
    const auto note = [&](NodeId member) {
      const Medium medium = medium_of(fabric_.kind(member));
      if (medium == Medium::none) {
        touched.outside = touched.outside || member != node;
        return;
      }
      std::uint32_t& seen = medium == Medium::network  ? touched.network
                            : medium == Medium::nvlink ? touched.nvlink
                                                       : touched.pcie;
      const std::uint32_t domain = parent_[member.index()];
      seen = seen == none || seen == domain ? domain : several;
    };
    note(node);
    const Medium own = medium_of(fabric_.kind(node));
    for (const LinkId link : fabric_.out(node)) {
      // A node of the medium itself belongs to its own domain and to no other.
      if (own == Medium::none || medium_of(fabric_.kind(fabric_.to(link))) != own)
        note(fabric_.to(link));
    }
  }
}

std::uint32_t Domains::root(std::uint32_t node) const {
  WEFT_CHECK(node < parent_.size());
  while (parent_[node] != node) node = parent_[node];
  return node;
}

bool Domains::connected(NodeId a, NodeId b, Medium medium) const {
  const Touched& from = touched_[a.index()];
  const std::uint32_t x = from.of(medium), y = touched_[b.index()].of(medium);
  if (x == none || y == none) {
    // No domain to share; a cable may still join the two.
  } else if (x == several || y == several ? share_domain(a, b, medium) : x == y) {
    return true;
  }
  // When b is of no medium, only a cable that leads out of all media can join the two directly.
  if (!from.outside && medium_of(fabric_.kind(b)) == Medium::none) return false;
  return std::ranges::any_of(fabric_.out(a), [&](LinkId link) { return fabric_.to(link) == b; });
}

bool Domains::share_domain(NodeId a, NodeId b, Medium medium) const {
  const auto is_in = [&](NodeId node) { return medium_of(fabric_.kind(node)) == medium; };
  // Calls visit(domain) for each that the end touches, until one returns true.
  const auto any_domain = [&](NodeId end, auto visit) {
    if (is_in(end)) return visit(parent_[end.index()]);
    return std::ranges::any_of(fabric_.out(end), [&](LinkId link) {
      const NodeId next = fabric_.to(link);
      return is_in(next) && visit(parent_[next.index()]);
    });
  };
  return any_domain(a, [&](std::uint32_t domain) {
    return any_domain(b, [&](std::uint32_t other) { return other == domain; });
  });
}

}  // namespace weft::route
