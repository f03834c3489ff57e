#include "observe/probe/routes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace weft::observe::probe {
namespace {

using model::Fabric;
using model::LinkId;
using model::NodeId;

constexpr std::size_t cells_max = std::size_t{1} << 26;

// Those that a NIC has live cables to, by id.
std::vector<NodeId> switches_of(const Fabric& fabric, const model::LiveView& live, NodeId nic) {
  std::vector<NodeId> out;
  for (const LinkId link : fabric.out(nic))
    if (live.usable(link) && fabric.on_wire(link) && fabric.is_switch(fabric.to(link)))
      out.push_back(fabric.to(link));
  std::ranges::sort(out);
  return out;
}

}  // namespace

NodeId end_of(const Fabric& fabric, NodeId nic) {
  const NodeId host = fabric.host_of(nic);
  return host.valid() ? host : nic;
}

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
    const NodeId end = end_of(fabric, nic);
    if (!ends_.empty() && ends_[end_index_[end.index()]] == end) continue;
    end_index_[end.index()] = static_cast<std::uint32_t>(ends_.size());
    ends_.push_back(end);
  }
}

void RouteTable::note(NodeId src, std::span<const LinkId> usable, std::vector<Kind>& row) const {
  const auto is_next_to_src = [&](NodeId at) {
    return std::ranges::any_of(fabric_->out(src), [&](LinkId link) {
      return fabric_->to(link) == at && std::ranges::binary_search(usable, link);
    });
  };
  for (const LinkId link : usable) {
    const NodeId at = fabric_->from(link);
    if (!fabric_->is_switch(at) || !fabric_->is_switch(fabric_->to(link))) continue;
    Kind& kind = row[switch_index_[at.index()]];
    kind = std::max(kind, is_next_to_src(at) ? Kind::ingress : Kind::transit);
  }
}

void RouteTable::raise(NodeId end, std::span<const Kind> row) {
  const auto kinds =
      std::span(kinds_).subspan(end_index_[end.index()] * switches_.size(), switches_.size());
  for (std::size_t i = 0; i < row.size(); ++i) kinds[i] = std::max(kinds[i], row[i]);
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

  // NICs of the same switches have the same routes to any other rack and from it.
  std::map<std::vector<NodeId>, std::vector<NodeId>> racks;
  for (const NodeId nic : fabric.nics())
    if (std::vector<NodeId> at = switches_of(fabric, live, nic); !at.empty())
      racks[std::move(at)].push_back(nic);
  std::vector<LinkId> usable;
  // What all streams to `dst` may cross, but those of its own host.
  const auto row_to = [&](std::span<const NodeId> own_rack, NodeId dst) {
    std::vector<Kind> row(out.switches_.size(), Kind::none);
    for (const auto& [at, nics] : racks) {
      const auto src = std::ranges::find_if(
          nics, [&](NodeId nic) { return end_of(fabric, nic) != end_of(fabric, dst); });
      if (src == nics.end() || nics.data() == own_rack.data()) continue;
      usable.clear();
      router.append_usable({.src = *src, .dst = dst}, usable);
      out.note(*src, usable, row);
    }
    return row;
  };
  // Hosts that have a rack for themselves: they get other streams than their neighbours elsewhere.
  std::set<NodeId> alone;
  for (const auto& [at, nics] : racks)
    if (const NodeId end = end_of(fabric, nics.front());
        std::ranges::all_of(nics, [&](NodeId nic) { return end_of(fabric, nic) == end; }))
      alone.insert(end);
  for (const auto& [at, nics] : racks) {
    std::vector<Kind> shared;
    NodeId done;
    for (const NodeId dst : nics) {
      const NodeId end = end_of(fabric, dst);
      if (end == done) continue;
      done = end;
      const bool is_alone = alone.contains(end);
      if (!is_alone && shared.empty()) shared = row_to(nics, dst);
      out.raise(end, is_alone ? row_to(nics, dst) : shared);
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
    if (is_short(at, wanted)) ++out;
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
