#include "operate/repair/reserve.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/check.hpp"

namespace weft::operate::repair {
namespace {

using model::Entity;
using model::EntityKind;
using model::Fabric;
using model::LinkId;
using model::NodeId;
using model::NodeKind;
using model::ScopeId;
using model::ScopeKind;

constexpr std::uint32_t none = UINT32_MAX;

bool is_nic(const Fabric& fabric, NodeId node) { return fabric.kind(node) == NodeKind::nic; }

bool has_nics(const Fabric& fabric, NodeId node) {
  return std::ranges::any_of(fabric.out(node),
                             [&](LinkId out) { return is_nic(fabric, fabric.to(out)); });
}

// The rack of the first NIC below; none where it stands in no rack.
ScopeId rack_below(const Fabric& fabric, NodeId node) {
  for (const LinkId out : fabric.out(node))
    if (is_nic(fabric, fabric.to(out))) return fabric.enclosing(fabric.to(out), ScopeKind::rack);
  return {};
}

}  // namespace

bool is_inside(const Fabric& fabric, NodeId node, ScopeId outer) {
  for (ScopeId at = fabric.scope(node); at.valid(); at = fabric.scopes()[at].parent)
    if (at == outer) return true;
  return false;
}

Gone::Gone(const Fabric& fabric)
    : fabric_(&fabric), nodes_(fabric.node_count()), cables_(fabric.cable_count()) {}

void Gone::add(const Entity& entity) {
  switch (entity.kind) {
    case EntityKind::none:
      return;
    case EntityKind::node:
    case EntityKind::card:
      nodes_[entity.id] = 1;
      return;
    case EntityKind::port:
    case EntityKind::link:
      cables_[model::cable_of(LinkId(entity.id)).index()] = 1;
      return;
    case EntityKind::cable:
      cables_[entity.id] = 1;
      return;
    case EntityKind::scope:
      for (const NodeId node : fabric_->nodes())
        if (is_inside(*fabric_, node, ScopeId(entity.id))) nodes_[node.index()] = 1;
      return;
  }
}

Reserve::Reserve(const Fabric& fabric) : fabric_(fabric), index_(fabric.node_count(), none) {
  find_levels();
  find_groups();
}

// Breadth first from the switches that NICs hang on; then upper switches come first.
void Reserve::find_levels() {
  std::vector<std::uint32_t> level(fabric_.node_count(), none);
  std::vector<NodeId> queue;
  for (const NodeId node : fabric_.nodes())
    if (fabric_.is_switch(node) && has_nics(fabric_, node)) {
      level[node.index()] = 0;
      queue.push_back(node);
    }
  for (std::size_t i = 0; i < queue.size(); ++i)
    for (const LinkId out : fabric_.out(queue[i])) {
      const NodeId next = fabric_.to(out);
      if (!fabric_.is_switch(next) || level[next.index()] != none) continue;
      level[next.index()] = level[queue[i].index()] + 1;
      queue.push_back(next);
    }
  std::ranges::stable_sort(queue, [&](NodeId a, NodeId b) {
    return std::tuple(level[b.index()], a) < std::tuple(level[a.index()], b);
  });
  for (const NodeId node : queue) {
    index_[node.index()] = static_cast<std::uint32_t>(order_.size());
    order_.push_back({.node = node});
  }
  WEFT_CHECK(order_.size() == queue.size());
  const bool is_flat = queue.empty() || level[queue.front().index()] == 0;
  for (Switch& at : order_) {
    at.first_hop = static_cast<std::uint32_t>(hops_.size());
    for (const LinkId out : fabric_.out(at.node)) {
      const NodeId next = fabric_.to(out);
      if (!fabric_.is_switch(next)) continue;
      if (!is_flat && level[next.index()] <= level[at.node.index()]) continue;
      hops_.push_back(
          {model::cable_of(out), index_[next.index()], static_cast<double>(fabric_.rate(out).bps)});
      at.whole_bps += hops_.back().bps;
    }
    at.hop_end = static_cast<std::uint32_t>(hops_.size());
    if (level[at.node.index()] == 0) first_.push_back(index_[at.node.index()]);
  }
  std::ranges::sort(first_, {}, [&](std::uint32_t i) { return order_[i].node; });
}

void Reserve::find_groups() {
  std::map<ScopeId, std::vector<std::uint32_t>> racks;
  std::map<std::pair<ScopeId, std::int16_t>, std::vector<std::uint32_t>> planes;
  const Gone nothing(fabric_);
  const std::vector<double> all = shares(nothing);
  for (const std::uint32_t at : first_) {
    const NodeId node = order_[at].node;
    const ScopeId rack = rack_below(fabric_, node);
    const Entity place = rack.valid() ? model::entity(rack) : model::entity(node);
    groups_.push_back({{.name = fabric_.name(node), .at = place}, {at}});
    if (!rack.valid()) continue;
    racks[rack].push_back(at);
    if (fabric_.plane(node) != model::no_lane) planes[{rack, fabric_.plane(node)}].push_back(at);
  }
  for (auto& [rack, switches] : racks)
    groups_.push_back(
        {{.name = fabric_.name(rack), .of = Uplinks::Of::rack, .at = model::entity(rack)},
         switches});
  for (auto& [key, switches] : planes)
    groups_.push_back({{.name = fmt::format("{} in plane {}", fabric_.name(key.first), key.second),
                        .of = Uplinks::Of::plane,
                        .at = model::entity(key.first)},
                       switches});
  for (Group& group : groups_) {
    for (const std::uint32_t at : group.switches) add_row(all, nothing, group.base, at);
    group.base.whole = group.base.live;
    group.base.whole_bps = group.base.live_bps;
    group.base.live = 0;
    group.base.live_bps = 0;
    for (const std::uint32_t at : group.switches)
      for (const LinkId out : fabric_.out(order_[at].node))
        if (is_nic(fabric_, fabric_.to(out)))
          group.base.nic_bps += static_cast<double>(fabric_.rate(out).bps);
  }
}

std::vector<double> Reserve::shares(const Gone& gone) const {
  std::vector<double> out(order_.size());
  // A flat fabric's cables lead nowhere further up: their ends count as tops.
  const bool is_flat = first_.size() == order_.size();
  for (std::size_t i = 0; i < order_.size(); ++i) {
    const Switch& at = order_[i];
    if (gone.node(at.node)) continue;
    if (is_flat || at.first_hop == at.hop_end) {
      out[i] = 1;
      continue;
    }
    double live = 0;
    for (std::uint32_t h = at.first_hop; h < at.hop_end; ++h) {
      WEFT_CHECK(hops_[h].up < i);  // upper switches are known first
      if (!gone.cable(hops_[h].cable)) live += hops_[h].bps * out[hops_[h].up];
    }
    WEFT_CHECK(live <= at.whole_bps * (1 + 1e-9));
    out[i] = live / at.whole_bps;
  }
  return out;
}

void Reserve::add_row(const std::vector<double>& shares, const Gone& gone, Uplinks& row,
                      std::uint32_t at) const {
  const Switch& first = order_[at];
  if (gone.node(first.node)) return;
  for (std::uint32_t h = first.first_hop; h < first.hop_end; ++h) {
    const double share = shares[hops_[h].up];  // 0 of a switch that is gone
    if (gone.cable(hops_[h].cable) || share <= 0) continue;
    ++row.live;
    row.live_bps += hops_[h].bps * share;
  }
}

std::vector<Uplinks> Reserve::uplinks(const Gone& gone) const {
  const std::vector<double> left = shares(gone);
  std::vector<Uplinks> out;
  out.reserve(groups_.size());
  for (const Group& group : groups_) {
    Uplinks row = group.base;
    row.is_gone = std::ranges::all_of(group.switches,
                                      [&](std::uint32_t at) { return gone.node(order_[at].node); });
    for (const std::uint32_t at : group.switches) add_row(left, gone, row, at);
    WEFT_CHECK(row.live <= row.whole);
    out.push_back(std::move(row));
  }
  return out;
}

std::vector<NodeId> Reserve::cut_off(const Gone& gone) const {
  const std::vector<double> left = shares(gone);
  std::vector<char> leads_up(order_.size());
  for (const std::uint32_t at : first_) {
    const Switch& first = order_[at];
    // Of a flat fabric the switch's own share says nothing of its cables.
    Uplinks row;
    add_row(left, gone, row, at);
    leads_up[at] = first.first_hop == first.hop_end || row.live > 0 ? 1 : 0;
  }
  std::vector<NodeId> out;
  for (const NodeId node : fabric_.nodes()) {
    if (!is_nic(fabric_, node)) continue;
    const bool has_way = std::ranges::any_of(fabric_.out(node), [&](LinkId link) {
      const std::uint32_t at = index_[fabric_.to(link).index()];
      return at != none && !gone.link(link) && leads_up[at] != 0;
    });
    const bool had_way = std::ranges::any_of(
        fabric_.out(node), [&](LinkId link) { return index_[fabric_.to(link).index()] != none; });
    if (had_way && !has_way) out.push_back(node);
  }
  return out;
}

std::vector<ScopeId> Reserve::racks_of(const Entity& part) const {
  std::vector<NodeId> ends;
  if (part.kind == EntityKind::node || part.kind == EntityKind::card) {
    ends.push_back(NodeId(part.id));
  } else if (part.kind != EntityKind::none && part.kind != EntityKind::scope) {
    const LinkId link =
        part.kind == EntityKind::cable ? model::forward(model::CableId(part.id)) : LinkId(part.id);
    ends = {fabric_.from(link), fabric_.to(link)};
  }
  std::set<ScopeId> racks;
  for (const NodeId end : ends) {
    const std::uint32_t at = index_[end.index()];
    if (at == none || !has_nics(fabric_, end)) continue;
    if (const ScopeId rack = rack_below(fabric_, end); rack.valid()) racks.insert(rack);
  }
  return {racks.begin(), racks.end()};
}

}  // namespace weft::operate::repair
