#include "app/rehearse/minutes.hpp"

#include <algorithm>

namespace weft::app {

using Harm = adapt::sim::Operations::Harm;
using model::LinkId;
using model::NodeId;

namespace {

constexpr std::uint32_t none = UINT32_MAX;

}  // namespace

Minutes::Minutes(const model::Fabric& fabric, const std::vector<model::Entity>& rack_switches,
                 const adapt::sim::Operations& net, Timestamp from, Timestamp until)
    : fabric_(fabric), net_(net), from_(from), minutes_((until.ns - from.ns) / ns_per_minute) {
  for (const NodeId nic : fabric.nics()) {
    const model::ScopeId rack = fabric.enclosing(nic, model::ScopeKind::rack);
    const auto [at, is_new] = index_.emplace(rack, static_cast<std::uint32_t>(racks_.size()));
    if (is_new) racks_.emplace_back();
    racks_[at->second].nics += 1;
  }
  for (const model::Entity& entity : rack_switches) {
    const NodeId node(entity.id);
    const auto outs = fabric.out(node);
    const auto nic =
        std::ranges::find_if(outs, [&](LinkId out) { return !fabric.is_switch(fabric.to(out)); });
    const auto rack = index_.find(fabric.enclosing(fabric.to(*nic), model::ScopeKind::rack));
    if (rack == index_.end()) continue;
    rack_of_[node] = rack->second;
    for (const LinkId out : outs)
      if (fabric.is_switch(fabric.to(out)))
        racks_[rack->second].uplink_bps += static_cast<double>(fabric.rate(out).bps);
  }
  for (const Harm& harm : net.harms()) add(harm);
}

std::uint32_t Minutes::rack_of(NodeId node) const {
  const auto at = rack_of_.find(node);
  return at == rack_of_.end() ? none : at->second;
}

void Minutes::add(const Harm& harm) {
  const bool is_switch = harm.part.kind == model::EntityKind::node;
  const std::uint32_t rack = is_switch ? rack_of(NodeId(harm.part.id)) : none;
  if (rack == none) {
    for (const model::CableId cable : net_.cables_of(harm.part)) add_cable(harm, cable);
    return;
  }
  double nics = 0;
  for (const LinkId out : fabric_.out(NodeId(harm.part.id)))
    nics += fabric_.is_switch(fabric_.to(out)) ? 0 : 1;
  for (const bool is_across : {false, true})
    add(rack, is_across, std::min(1.0, nics / racks_[rack].nics), harm);
}

void Minutes::add_cable(const Harm& harm, model::CableId cable) {
  const LinkId link = model::forward(cable);
  const NodeId a = fabric_.from(link), b = fabric_.to(link);
  const auto rate = static_cast<double>(fabric_.rate(link).bps);
  const std::uint32_t rack = rack_of(a) == none ? rack_of(b) : rack_of(a);
  if (!fabric_.is_switch(a) || !fabric_.is_switch(b)) {
    for (const bool is_across : {false, true})
      if (rack != none) add(rack, is_across, 1 / racks_[rack].nics, harm);
  } else if (rack != none) {
    add(rack, true, rate / racks_[rack].uplink_bps, harm);
  } else {
    const model::Fabric::Tier& tier = fabric_.tiers()[fabric_.tier_id(link)];
    double whole = 0;
    for (const LinkId other : tier.links) whole += static_cast<double>(fabric_.rate(other).bps);
    for (std::uint32_t r = 0; r < racks_.size(); ++r) add(r, true, rate / whole, harm);
  }
}

void Minutes::add(std::uint32_t rack, bool is_across, double share, const Harm& harm) {
  for (std::int64_t t = harm.from.ns; t < harm.to.ns;) {
    const std::int64_t minute = (t - from_.ns) / ns_per_minute;
    const std::int64_t end = std::min(harm.to.ns, from_.ns + (minute + 1) * ns_per_minute);
    if (minute >= 0 && minute < minutes_)
      lost_[{rack, is_across, minute}][harm.fault] +=
          harm.loss * share * static_cast<double>(end - t) / static_cast<double>(ns_per_minute);
    t = end;
  }
}

std::vector<Minutes::Bad> Minutes::bad(double loss) const {
  std::vector<Bad> out;
  for (const auto& [cell, faults] : lost_) {
    double sum = 0;
    for (const auto& [fault, lost] : faults) sum += lost;
    if (sum <= loss) continue;
    const auto worst = std::ranges::max_element(faults, {}, [](const auto& f) { return f.second; });
    out.push_back({worst->first, cell.is_across});
  }
  return out;
}

}  // namespace weft::app
