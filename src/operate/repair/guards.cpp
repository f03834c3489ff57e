#include "operate/repair/guards.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/check.hpp"
#include "base/plural.hpp"
#include "base/text.hpp"

namespace weft::operate::repair {
namespace {

using model::EntityKind;
using model::Fabric;
using model::LinkId;
using model::NodeId;
using model::ScopeId;
using model::ScopeKind;

// Shares are sums of rates: exact in doubles but for the weighting.
constexpr double tolerance = 1e-9;

// The switches and other nodes that a part is, or ends at.
std::vector<NodeId> ends_of(const Fabric& fabric, const Entity& part) {
  if (part.kind == EntityKind::node || part.kind == EntityKind::card) return {NodeId(part.id)};
  if (part.kind == EntityKind::none || part.kind == EntityKind::scope) return {};
  const LinkId link =
      part.kind == EntityKind::cable ? model::forward(model::CableId(part.id)) : LinkId(part.id);
  return {fabric.from(link), fabric.to(link)};
}

// "ctsw", "ctsw--rtsw".
std::string role_of(const Fabric& fabric, const Entity& part) {
  std::set<std::string> roles;
  for (const NodeId end : ends_of(fabric, part)) roles.insert(fabric.role_name(end));
  return fmt::format("{}", fmt::join(roles, "--"));
}

std::set<ScopeId> zones_of(const Fabric& fabric, const Entity& part) {
  std::set<ScopeId> out;
  for (const NodeId end : ends_of(fabric, part))
    for (ScopeId at = fabric.scope(end); at.valid(); at = fabric.scopes()[at].parent)
      if (fabric.scopes()[at].kind == ScopeKind::zone) out.insert(at);
  return out;
}

bool has(const std::vector<ScopeId>& scopes, ScopeId scope) {
  return std::ranges::find(scopes, scope) != scopes.end();
}

// The same part, a switch and a cable of it, a card and its switch, or a scope and what is in it.
bool is_related(const Fabric& fabric, const Entity& a, const Entity& b) {
  const auto has_end = [&](const Entity& cable, const Entity& node) {
    return std::ranges::any_of(ends_of(fabric, cable),
                               [&](NodeId end) { return end == NodeId(node.id); });
  };
  const auto is_node = [](const Entity& e) {
    return e.kind == EntityKind::node || e.kind == EntityKind::card;
  };
  if (a.kind == EntityKind::scope)
    return std::ranges::any_of(ends_of(fabric, b),
                               [&](NodeId end) { return is_inside(fabric, end, ScopeId(a.id)); });
  if (a == b || (is_node(a) && is_node(b))) return a == b || a.id == b.id;
  if (is_node(a)) return has_end(b, a);
  return is_node(b) && has_end(a, b);
}

// Suspected parts come back: what is drained must be bearable then, too, though behind a suspected
// part it costs nothing now.
enum class Suspects : std::uint8_t { gone, back };

// Nor does what is held or suspected of the part itself, or of what it is part of, excuse its
// drain: a switch and a cable of it, both suspected, would each excuse the other, and a switch that
// is drained may be on its way back.
Gone gone_without(const Situation& s, const Entity& part, Suspects suspects) {
  Gone gone(*s.fabric);
  const auto add = [&](const std::vector<Entity>& parts) {
    for (const Entity& e : parts)
      if (!is_related(*s.fabric, e, part)) gone.add(e);
  };
  add(s.held);
  if (suspects == Suspects::gone) add(s.suspected);
  return gone;
}

bool is_recent(const Situation& s, const PastDrain& drain) {
  return drain.t.ns > s.now.ns - ns_per_hour;
}

Verdict refuse(std::string guard, std::string why, std::optional<Timestamp> until = {}) {
  return Refusal{std::move(guard), std::move(why), until};
}

}  // namespace

double needed_bps(const GuardPolicy& policy, const Uplinks& row) {
  const double share = row.of == Uplinks::Of::plane ? policy.plane_share : policy.rack_share;
  const double demand =
      row.of == Uplinks::Of::plane ? 0 : std::min(policy.demand_share * row.nic_bps, row.whole_bps);
  return std::max(share * row.whole_bps, demand);
}

bool is_short(const GuardPolicy& policy, const Uplinks& row) {
  // A switch that is drained itself keeps nothing; its rack is what counts.
  if (row.of == Uplinks::Of::first_switch && row.is_gone) return false;
  return row.live_bps < needed_bps(policy, row) - tolerance * row.whole_bps;
}

std::string names(const Fabric& fabric, std::span<const Entity> parts) {
  std::string out;
  for (std::size_t i = 0; i < parts.size() && i < 4; ++i)
    out += fmt::format("{}{}", i == 0 ? "" : ", ", model::name(fabric, parts[i]));
  if (parts.size() > 4) out += fmt::format(" and {} more", parts.size() - 4);
  return out;
}

namespace {

Verdict check_row(const Situation& s, const Entity& part, const Uplinks& before,
                  const Uplinks& after) {
  const bool loses = after.live_bps < before.live_bps - tolerance * before.whole_bps;
  if (!loses) return std::nullopt;
  if (!is_short(*s.policy, after)) return std::nullopt;
  const double needed = needed_bps(*s.policy, after);
  return refuse(
      "capacity",
      fmt::format("without {} {} would keep {:.4g} of {:.4g} Gbps upwards ({} of {} cables), but "
                  "needs {:.4g}; {} already counts as lost",
                  model::name(*s.fabric, part), after.name, after.live_bps / 1e9,
                  after.whole_bps / 1e9, after.live, after.whole, needed / 1e9,
                  before.live == before.whole ? std::string("none of it")
                                              : fmt::format("{}", before.whole - before.live)));
}

}  // namespace

Verdict guard_kill_switch(const Situation& s) {
  if (!s.is_killed) return std::nullopt;
  return refuse("kill switch", "the kill switch is on: no drains");
}

Verdict guard_freeze(const Situation& s) {
  for (const Freeze& f : s.freezes)
    if (f.from <= s.now && s.now < f.until)
      return refuse(
          "freeze",
          fmt::format("no drains until {}{}{}", to_text(f.until), f.why.empty() ? "" : ": ", f.why),
          f.until);
  return std::nullopt;
}

Verdict guard_part_rate(const Situation& s, const Entity& part) {
  const std::uint32_t most = s.policy->part_drains_per_hour;
  std::vector<Timestamp> times;
  for (const PastDrain& drain : s.drains)
    if (drain.part == part && is_recent(s, drain)) times.push_back(drain.t);
  if (times.size() < most) return std::nullopt;
  return refuse("part rate",
                fmt::format("{} was drained {} within the last hour; the limit is {}",
                            model::name(*s.fabric, part), counted(times.size(), "time"), most),
                Timestamp{times[times.size() - most].ns + ns_per_hour});
}

Verdict guard_rate(const Situation& s) {
  const auto recent =
      std::ranges::count_if(s.drains, [&](const PastDrain& d) { return is_recent(s, d); });
  if (std::cmp_less(recent, s.policy->drains_per_hour)) return std::nullopt;
  // The one that has to be an hour old before another fits in.
  std::optional<Timestamp> until;
  if (s.policy->drains_per_hour > 0 && s.drains.size() >= s.policy->drains_per_hour)
    until = Timestamp{s.drains[s.drains.size() - s.policy->drains_per_hour].t.ns + ns_per_hour};
  return refuse("rate",
                fmt::format("{} drains within the last hour; the limit is {}", recent,
                            s.policy->drains_per_hour),
                until);
}

Verdict guard_blast_radius(const Situation& s, const Entity& part) {
  const Fabric& fabric = *s.fabric;
  std::vector<Entity> others = s.held;
  std::erase(others, part);
  const auto judge = [&](std::string_view where, std::size_t out, std::uint32_t most) -> Verdict {
    if (out < most) return std::nullopt;
    return refuse("blast radius",
                  fmt::format("{} of {} already out; the limit is {}: {}",
                              counted(out, "component"), where, most, names(fabric, others)));
  };
  const auto count = [&](auto&& same) {
    return static_cast<std::size_t>(std::ranges::count_if(others, same));
  };
  if (auto no = judge("the fabric", others.size(), s.policy->total_max)) return no;
  for (const ScopeId zone : zones_of(fabric, part))
    if (auto no = judge(fabric.name(zone),
                        count([&](const Entity& e) { return zones_of(fabric, e).contains(zone); }),
                        s.policy->zone_max))
      return no;
  for (const ScopeId rack : s.reserve->racks_of(part)) {
    const auto same = [&](const Entity& e) { return has(s.reserve->racks_of(e), rack); };
    if (auto no = judge(fabric.name(rack), count(same), s.policy->rack_max)) return no;
  }
  const std::string role = role_of(fabric, part);
  return judge(fmt::format("role {}", role),
               count([&](const Entity& e) { return role_of(fabric, e) == role; }),
               s.policy->role_max);
}

Verdict guard_capacity(const Situation& s, const Entity& part) {
  for (const Suspects suspects : {Suspects::gone, Suspects::back}) {
    Gone gone = gone_without(s, part, suspects);
    const std::vector<Uplinks> before = s.reserve->uplinks(gone);
    gone.add(part);
    const std::vector<Uplinks> after = s.reserve->uplinks(gone);
    WEFT_CHECK(before.size() == after.size());
    for (std::size_t i = 0; i < after.size(); ++i)
      if (auto no = check_row(s, part, before[i], after[i])) return no;
  }
  return std::nullopt;
}

Verdict guard_isolation(const Situation& s, const Entity& part) {
  std::vector<NodeId> lost;
  for (const Suspects suspects : {Suspects::gone, Suspects::back}) {
    Gone gone = gone_without(s, part, suspects);
    const std::vector<NodeId> before = s.reserve->cut_off(gone);
    gone.add(part);
    if (lost.empty())
      std::ranges::set_difference(s.reserve->cut_off(gone), before, std::back_inserter(lost));
  }
  if (lost.empty()) return std::nullopt;
  std::set<NodeId> hosts;
  for (const NodeId nic : lost)
    if (const NodeId host = s.fabric->host_of(nic); host.valid()) hosts.insert(host);
  return refuse("isolation",
                fmt::format("without {} {} of {} would have no path into the network (first: {})",
                            model::name(*s.fabric, part), counted(lost.size(), "NIC"),
                            counted(hosts.size(), "host"), s.fabric->name(lost.front())));
}

Verdict guard_forecast(const GuardPolicy& policy, const Forecast& forecast) {
  if (forecast.stalled > policy.stalled_max)
    return refuse("forecast", fmt::format("{} of {} jobs would stall; the limit is {}",
                                          forecast.stalled, forecast.jobs, policy.stalled_max));
  // What is no number is no comfort either.
  if (!(forecast.slowdown_max <= policy.slowdown_max))
    return refuse("forecast",
                  fmt::format("job {} would take {:.3f} times as long; the limit is {:.3f}",
                              quote(forecast.worst), forecast.slowdown_max, policy.slowdown_max));
  return std::nullopt;
}

Verdict first_refusal(const Situation& s, const Entity& part) {
  if (auto no = guard_kill_switch(s)) return no;
  if (auto no = guard_freeze(s)) return no;
  if (auto no = guard_rate(s)) return no;
  if (auto no = guard_part_rate(s, part)) return no;
  if (auto no = guard_blast_radius(s, part)) return no;
  if (auto no = guard_isolation(s, part)) return no;
  return guard_capacity(s, part);
}

std::vector<Refusal> all_refusals(const Situation& s, const Entity& part) {
  std::vector<Refusal> out;
  for (Verdict verdict :
       {guard_kill_switch(s), guard_freeze(s), guard_rate(s), guard_part_rate(s, part),
        guard_blast_radius(s, part), guard_isolation(s, part), guard_capacity(s, part)})
    if (verdict) out.push_back(*std::move(verdict));
  return out;
}

}  // namespace weft::operate::repair
