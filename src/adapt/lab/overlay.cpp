#include "adapt/lab/overlay.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <map>

#include "adapt/lab/injector.hpp"
#include "adapt/lab/netlink.hpp"
#include "adapt/lab/netns.hpp"
#include "base/text.hpp"
#include "os/error.hpp"

namespace weft::adapt::lab {
namespace {

using model::LinkId;
using port::RouteMark;
using Uplink = OverlayUplink;

constexpr std::string_view overlay_table = "weft_te";
constexpr std::uint32_t overlay_mark_base = 0x7e000001;  // of the first port
constexpr std::uint32_t overlay_table_base = 20'000;
constexpr std::uint32_t overlay_priority = 1'000;  // before the main table's 32,766
constexpr std::uint8_t overlay_protocol = 0x58;
constexpr std::uint16_t renewal_port = 4'797;  // of the switch's loopback alone

std::uint32_t mark_of(const Uplink& uplink) { return overlay_mark_base + uplink.place; }
std::uint32_t table_of(const Uplink& uplink) { return overlay_table_base + uplink.place; }

// Empty for switches without NICs.
std::vector<Uplink> uplinks_of(const LabPlan& plan, const LabNode& node) {
  std::vector<Uplink> out;
  bool has_nics = false;
  for (std::uint32_t i = 0; i < node.ends.size(); ++i) {
    if (plan.cables[node.ends[i].cable].to_host)
      has_nics = true;
    else
      out.push_back({i, node.ends[i]});
  }
  if (!has_nics) out.clear();
  return out;
}

// Routes over interfaces that are down cannot be written, and are not missed.
Status write_routes(const LabPlan& plan, const LabNode& node, std::span<const Uplink> uplinks) {
  return run_in_netns(node.netns, [&]() -> Status {
    WEFT_TRY(Netlink netlink, Netlink::open(node.name));
    WEFT_TRY(const auto interfaces, netlink.links());
    for (const Uplink& uplink : uplinks) {
      const auto found =
          std::ranges::find(interfaces, plan.end(uplink.end).interface, &LinkState::name);
      if (found == interfaces.end() || !found->up) continue;
      const NextHop hop{.interface = found->index, .gateway = plan.end(uplink.end.peer()).address};
      WEFT_TRY_STATUS(netlink.add_route({.prefix_length = 0,
                                         .hops = {hop},
                                         .protocol = overlay_protocol,
                                         .table = table_of(uplink)},
                                        RouteWrite::replace));
    }
    return netlink.flush();
  });
}

enum class RuleWrite : std::uint8_t { add, remove };
Status write_rules(const LabNode& node, std::span<const Uplink> uplinks, RuleWrite write) {
  return run_in_netns(node.netns, [&]() -> Status {
    WEFT_TRY(Netlink netlink, Netlink::open(node.name));
    for (const Uplink& uplink : uplinks)
      WEFT_TRY_STATUS(
          write == RuleWrite::add
              ? netlink.add_mark_rule(mark_of(uplink), table_of(uplink), overlay_priority)
              : netlink.delete_mark_rule(mark_of(uplink), table_of(uplink), overlay_priority));
    return netlink.flush();
  });
}

Result<Fd> renewal_socket(const LabNode& node) {
  WEFT_TRY(Fd out, socket_in_netns(node.netns, AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(renewal_port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(out.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0)
    return system_failure(node.name, errno);
  return out;
}

// "10.0.0.1 . 10.0.0.9 . 49152"
std::string key_text(const model::Fabric& fabric, const RouteMark& mark) {
  return fmt::format("{} . {} . {}", ipv4_text(fabric.address(mark.src)),
                     ipv4_text(fabric.address(mark.dst)), mark.port);
}

// What nft lists: "elements = { 10.0.0.1 . 10.0.0.9 . 49152 : 0x7e000001, ... }".
std::map<std::string, std::uint32_t> listed_marks(std::string_view text) {
  std::map<std::string, std::uint32_t> out;
  constexpr std::string_view head = "elements = {", colon = " : 0x";
  const std::size_t from = text.find(head);
  if (from == std::string_view::npos) return out;
  text = text.substr(from + head.size());
  for (const std::string_view entry : split(text.substr(0, text.find('}')), ',')) {
    const std::string_view element = trim(entry);
    const std::size_t at = element.find(colon);
    if (at == std::string_view::npos) continue;
    std::uint32_t mark = 0;
    std::from_chars(element.data() + at + colon.size(), element.data() + element.size(), mark, 16);
    out.emplace(element.substr(0, at), mark);
  }
  return out;
}

}  // namespace

struct Overlay::Rack {
  std::vector<Uplink> uplinks;
  Nft nft;
  Fd renewal;                                  // a packet on it renews the lease
  std::map<std::string, std::uint32_t> marks;  // installed, by key_text()
};

Overlay::Overlay(Key, const Lab& lab) : lab_(&lab) {}
Overlay::~Overlay() = default;

Result<std::unique_ptr<Overlay>> Overlay::open(const Lab& lab) {
  auto out = std::make_unique<Overlay>(Key{}, lab);
  for (const LabNodeId node : lab.plan.switches()) WEFT_TRY_STATUS(out->open_rack(node));
  return out;
}

// The nft table is made last, so that where it stands the rest does too.
Status Overlay::open_rack(LabNodeId id) {
  const LabNode& node = lab_->plan.nodes[id];
  std::vector<Uplink> uplinks = uplinks_of(lab_->plan, node);
  if (uplinks.empty()) return {};
  WEFT_TRY(Nft nft, Nft::open(node.netns));
  const auto listed = nft.run(fmt::format("list map ip {} paths\n", overlay_table));
  if (!listed) {
    static_cast<void>(write_rules(node, uplinks, RuleWrite::remove));  // remains of a killed one
    WEFT_TRY_STATUS(write_rules(node, uplinks, RuleWrite::add));
    // The lease holds 0, the mark that packets come with, while somebody renews it. Packets do
    // that, since a transaction would make those of apply() wait for it.
    WEFT_TRY_STATUS(nft.run(
        fmt::format("table ip {} {{\n"
                    " map paths {{ type ipv4_addr . ipv4_addr . inet_service : mark; }}\n"
                    " set lease {{ type mark; flags dynamic, timeout; size 16; }}\n"
                    " chain choose {{ type filter hook prerouting priority mangle; policy accept;\n"
                    "  meta mark @lease meta mark set "
                    "ip saddr . ip daddr . udp sport map @paths; }}\n"
                    " chain renew {{ type filter hook input priority filter; policy accept;\n"
                    "  iifname lo udp dport {} update @lease {{ meta mark timeout {}s }} drop; "
                    "}}\n}}\n",
                    overlay_table, renewal_port, overlay_lease.ps / (1'000 * ps_per_ms))));
  }
  WEFT_TRY_STATUS(write_routes(lab_->plan, node, uplinks));
  WEFT_TRY(Fd renewal, renewal_socket(node));
  Rack rack{.uplinks = std::move(uplinks),
            .nft = std::move(nft),
            .renewal = std::move(renewal),
            .marks = {}};
  if (listed) rack.marks = listed_marks(*listed);
  racks_.emplace(id, std::move(rack));
  return {};
}

Status Overlay::renew() {
  Status out;
  for (auto& [node, rack] : racks_)
    if (::send(rack.renewal.get(), "", 0, 0) < 0 && out)
      out = system_failure(lab_->plan.nodes[node].name, errno);
  return out;
}

Status Overlay::restore(std::span<const model::CableId> cables) {
  for (const LabCable& cable : lab_->plan.cables) {
    if (std::ranges::find(cables, cable.cable) == cables.end()) continue;
    for (const CableEnd& end : cable.ends)
      if (const auto rack = racks_.find(end.node); rack != racks_.end())
        WEFT_TRY_STATUS(write_routes(lab_->plan, lab_->plan.nodes[end.node], rack->second.uplinks));
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
  std::map<std::string, std::uint32_t> after = rack.marks;
  std::string gone, added;
  for (const RouteMark& mark : changes) {
    const std::string key = key_text(lab_->fabric, mark);
    if (after.erase(key) > 0) gone += fmt::format("{}{}", gone.empty() ? "" : ", ", key);
    if (!mark.uplink.valid()) continue;
    const auto uplink = std::ranges::find(
        rack.uplinks, mark.uplink, [&](const Uplink& u) { return lab_->plan.end(u.end).link; });
    if (uplink == rack.uplinks.end())
      return fail(Errc::unknown, {},
                  fmt::format("{} leaves another rack than that of {}",
                              lab_->fabric.name(mark.uplink), lab_->fabric.name(mark.src)));
    added += fmt::format("{}{} : {:#x}", added.empty() ? "" : ", ", key, mark_of(*uplink));
    after[key] = mark_of(*uplink);
  }
  std::string commands;
  if (!gone.empty())
    commands += fmt::format("delete element ip {} paths {{ {} }}\n", overlay_table, gone);
  if (!added.empty())
    commands += fmt::format("add element ip {} paths {{ {} }}\n", overlay_table, added);
  if (commands.empty()) return {};
  WEFT_TRY_STATUS(rack.nft.run(commands));
  rack.marks = std::move(after);
  return {};
}

Result<std::vector<RouteMark>> Overlay::installed() {
  std::map<std::string, model::NodeId, std::less<>> nics;
  for (const model::NodeId nic : lab_->fabric.nics())
    nics[ipv4_text(lab_->fabric.address(nic))] = nic;
  std::vector<RouteMark> out;
  for (const auto& [node, rack] : racks_)
    for (const auto& [key, mark] : rack.marks) {
      const std::size_t middle = key.find(" . "), last = key.rfind(" . ");
      const auto src = nics.find(key.substr(0, middle));
      const auto dst = nics.find(key.substr(middle + 3, last - middle - 3));
      std::uint16_t port = 0;
      std::from_chars(key.data() + last + 3, key.data() + key.size(), port);
      const auto uplink = std::ranges::find(rack.uplinks, mark, mark_of);
      if (src == nics.end() || dst == nics.end() || uplink == rack.uplinks.end())
        return fail(
            Errc::io, {},
            fmt::format("{}: {} is not a mark of this lab", lab_->plan.nodes[node].name, key),
            "run weft lab te --off, then start again");
      out.push_back({src->second, dst->second, port, lab_->plan.end(uplink->end).link});
    }
  std::ranges::sort(out);
  return out;
}

Status Overlay::remove(const Lab& lab) {
  for (const LabNodeId id : lab.plan.switches()) {
    const LabNode& node = lab.plan.nodes[id];
    const std::vector<Uplink> uplinks = uplinks_of(lab.plan, node);
    if (uplinks.empty()) continue;
    WEFT_TRY(Nft nft, Nft::open(node.netns));
    WEFT_TRY_STATUS(nft.run(fmt::format("add table ip {0}\ndelete table ip {0}\n", overlay_table)));
    static_cast<void>(write_rules(node, uplinks, RuleWrite::remove));  // those that are there
  }
  return {};
}

}  // namespace weft::adapt::lab
