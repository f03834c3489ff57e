#include "observe/probe/routes.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace weft::observe::probe {
namespace {

using model::Fabric;
using model::LinkId;
using model::NodeId;

constexpr std::size_t cells_max = std::size_t{1} << 26;

// The first switch that a NIC is cabled to; none: it has no live cable.
NodeId switch_of(const Fabric& fabric, const model::LiveView& live, NodeId nic) {
  for (const LinkId link : fabric.out(nic))
    if (live.usable(link) && fabric.on_wire(link) && fabric.is_switch(fabric.to(link)))
      return fabric.to(link);
  return {};
}

}  // namespace

void Crossed::add(std::uint64_t times, std::uint64_t asked) {
  add({.parts = 1, .below = times < asked ? 1u : 0u, .least = times, .most = times, .sum = times});
}

void Crossed::add(const Crossed& other) {
  if (other.parts == 0) return;
  least = parts == 0 ? other.least : std::min(least, other.least);
  most = std::max(most, other.most);
  parts += other.parts;
  below += other.below;
  sum += other.sum;
}

RouteTable::RouteTable(const Fabric& fabric)
    : fabric_(&fabric), switch_index_(fabric.node_count()), end_index_(fabric.node_count()) {
  for (const NodeId node : fabric.nodes())
    if (fabric.is_switch(node)) {
      switch_index_[node.index()] = static_cast<std::uint32_t>(switches_.size());
      switches_.push_back(node);
    }
  for (const NodeId nic : fabric.nics()) {
    const NodeId end = end_of(nic);
    if (!ends_.empty() && ends_[end_index_[end.index()]] == end) continue;
    end_index_[end.index()] = static_cast<std::uint32_t>(ends_.size());
    ends_.push_back(end);
  }
}

NodeId RouteTable::end_of(NodeId nic) const {
  const NodeId host = fabric_->host_of(nic);
  return host.valid() ? host : nic;
}

void RouteTable::note(NodeId src, std::span<const LinkId> usable, std::size_t row) {
  const auto is_next_to_src = [&](NodeId at) {
    return std::ranges::any_of(
        usable, [&](LinkId link) { return fabric_->from(link) == src && fabric_->to(link) == at; });
  };
  for (const LinkId link : usable) {
    const NodeId at = fabric_->from(link);
    if (!fabric_->is_switch(at) || !fabric_->is_switch(fabric_->to(link))) continue;
    Kind& kind = kinds_[row * switches_.size() + switch_index_[at.index()]];
    if (kind != Kind::transit) kind = is_next_to_src(at) ? Kind::ingress : Kind::transit;
  }
}

Result<RouteTable> RouteTable::find(route::Router& router, const model::LiveView& live) {
  const Fabric& fabric = router.fabric();
  RouteTable out(fabric);
  const std::size_t cells = out.switches_.size() * out.ends_.size();
  if (cells > cells_max)
    return fail(Errc::value, {},
                fmt::format("{} switches with {} hosts have too many routes to plan probes for",
                            out.switches_.size(), out.ends_.size()),
                "plan without them: --routes 0");
  out.kinds_.resize(cells, Kind::none);
  out.flows_.resize(cells, 0);

  // NICs of one switch have the same routes: one of each host stands for the others.
  struct Attached {
    NodeId at, end, nic;
  };
  std::vector<Attached> attached;
  for (const NodeId nic : fabric.nics())
    if (const NodeId at = switch_of(fabric, live, nic); at.valid())
      attached.push_back({at, out.end_of(nic), nic});
  std::ranges::stable_sort(attached, {},
                           [](const Attached& one) { return std::pair(one.at, one.end); });
  const auto [first, last] = std::ranges::unique(
      attached, {}, [](const Attached& one) { return std::pair(one.at, one.end); });
  attached.erase(first, last);
  std::vector<LinkId> usable;
  for (const Attached& dst : attached) {
    NodeId done;
    for (const Attached& src : attached) {
      if (src.at == done || src.end == dst.end) continue;
      done = src.at;
      usable.clear();
      router.append_usable({.src = src.nic, .dst = dst.nic}, usable);
      out.note(src.nic, usable, out.end_index_[dst.end.index()]);
    }
  }
  return out;
}

bool RouteTable::is_on(std::size_t at, std::span<const LinkId> path) const {
  bool out = false;
  each_on(path, [&](std::size_t other) { out |= other == at; });
  return out;
}

std::size_t RouteTable::fresh_on(std::span<const LinkId> path, std::uint32_t wanted) const {
  std::size_t out = 0;
  each_on(path, [&](std::size_t at) {
    if (kinds_[at] == Kind::transit && flows_[at] < wanted) ++out;
  });
  return out;
}

void RouteTable::add(std::span<const LinkId> path) {
  each_on(path, [&](std::size_t at) { ++flows_[at]; });
}

Crossed RouteTable::count(Kind kind, std::uint32_t wanted) const {
  Crossed out;
  for (std::size_t at = 0; at < kinds_.size(); ++at)
    if (kinds_[at] == kind) out.add(flows_[at], wanted);
  return out;
}

}  // namespace weft::observe::probe
