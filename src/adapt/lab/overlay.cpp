#include "adapt/lab/overlay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "adapt/lab/netns.hpp"
#include "base/text.hpp"

namespace weft::adapt::lab {
namespace {

using port::RouteMark;

// Empty for switches without NICs.
std::vector<EndId> uplinks_of(const LabPlan& plan, const LabNode& node) {
  std::vector<EndId> out;
  bool has_nics = false;
  for (const EndId end : node.ends) {
    if (plan.cables[end.cable].to_host)
      has_nics = true;
    else
      out.push_back(end);
  }
  if (!has_nics) out.clear();
  return out;
}

}  // namespace

Overlay::Overlay(Key, const Lab& lab) : lab_(&lab) {}
Overlay::~Overlay() = default;

Result<std::unique_ptr<Overlay>> Overlay::open(const Lab& lab) {
  auto out = std::make_unique<Overlay>(Key{}, lab);
  for (const LabNodeId node : lab.plan.switches()) WEFT_TRY_STATUS(out->open_rack(node));
  return out;
}

Status Overlay::open_rack(LabNodeId id) {
  const LabNode& node = lab_->plan.nodes[id];
  std::vector<EndId> ends = uplinks_of(lab_->plan, node);
  if (ends.empty()) return {};
  std::vector<OverlayUplink> uplinks;
  for (const EndId end : ends)
    uplinks.push_back({lab_->plan.end(end).interface, lab_->plan.end(end.peer()).address});
  return run_in_netns(node.netns, [&]() -> Status {
    WEFT_TRY(SwitchOverlay overlay, SwitchOverlay::open(node.name, std::move(uplinks)));
    racks_.emplace(id, Rack{std::move(ends), std::move(overlay)});
    return {};
  });
}

Status Overlay::renew() {
  Status out;
  for (auto& [node, rack] : racks_)
    if (Status done = rack.overlay.renew(); !done && out) out = std::move(done);
  return out;
}

Status Overlay::restore(std::span<const model::CableId> cables) {
  for (const LabCable& cable : lab_->plan.cables) {
    if (std::ranges::find(cables, cable.cable) == cables.end()) continue;
    for (const CableEnd& end : cable.ends)
      if (const auto rack = racks_.find(end.node); rack != racks_.end())
        WEFT_TRY_STATUS(rack->second.overlay.write_routes());
  }
  return {};
}

Status Overlay::apply(std::span<const RouteMark> changes) {
  std::map<LabNodeId, std::vector<RouteMark>> by_rack;
  for (const RouteMark& mark : changes) {
    const LabNode& host = lab_->plan.nodes[lab_->plan.lab_of[mark.src]];
    const auto end = std::ranges::find_if(
        host.ends, [&](EndId e) { return lab_->plan.end(e).device == mark.src; });
    if (end == host.ends.end())
      return fail(Errc::unknown, {}, lab_->fabric.name(mark.src) + " has no cable in the lab");
    by_rack[lab_->plan.end(end->peer()).node].push_back(mark);
  }
  for (const auto& [node, marks] : by_rack) {
    const auto rack = racks_.find(node);
    if (rack == racks_.end())
      return fail(Errc::unknown, {}, lab_->plan.nodes[node].name + " has no uplinks");
    WEFT_TRY_STATUS(write_rack(rack->second, marks));
  }
  return {};
}

Status Overlay::write_rack(Rack& rack, std::span<const RouteMark> changes) {
  std::vector<FlowMark> out;
  for (const RouteMark& mark : changes) {
    FlowMark one{
        .flow = {lab_->fabric.address(mark.src), lab_->fabric.address(mark.dst), mark.port},
        .uplink = {}};
    if (mark.uplink.valid()) {
      const auto uplink = std::ranges::find(rack.uplinks, mark.uplink,
                                            [&](EndId end) { return lab_->plan.end(end).link; });
      if (uplink == rack.uplinks.end())
        return fail(Errc::unknown, {},
                    fmt::format("{} leaves another rack than that of {}",
                                lab_->fabric.name(mark.uplink), lab_->fabric.name(mark.src)));
      one.uplink = static_cast<std::uint32_t>(uplink - rack.uplinks.begin());
    }
    out.push_back(one);
  }
  return rack.overlay.apply(out);
}

Result<std::vector<RouteMark>> Overlay::installed() {
  std::map<Ipv4, model::NodeId> nics;
  for (const model::NodeId nic : lab_->fabric.nics()) nics[lab_->fabric.address(nic)] = nic;
  std::vector<RouteMark> out;
  for (const auto& [node, rack] : racks_)
    for (const auto& [flow, uplink] : rack.overlay.installed()) {
      const auto src = nics.find(flow.src), dst = nics.find(flow.dst);
      if (src == nics.end() || dst == nics.end())
        return fail(
            Errc::io, {},
            fmt::format("{}: {} to {} is not a flow of this lab", lab_->plan.nodes[node].name,
                        ipv4_text(flow.src), ipv4_text(flow.dst)),
            "run weft lab te --off, then start again");
      out.push_back(
          {src->second, dst->second, flow.port, lab_->plan.end(rack.uplinks[uplink]).link});
    }
  std::ranges::sort(out);
  return out;
}

Status Overlay::remove(const Lab& lab) {
  for (const LabNodeId id : lab.plan.switches()) {
    const LabNode& node = lab.plan.nodes[id];
    const std::size_t uplinks = uplinks_of(lab.plan, node).size();
    if (uplinks == 0) continue;
    WEFT_TRY_STATUS(
        run_in_netns(node.netns, [&] { return SwitchOverlay::remove(node.name, uplinks); }));
  }
  return {};
}

}  // namespace weft::adapt::lab
