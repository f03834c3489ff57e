// What devices, hosts and probers say of faults, and when.
#include <fmt/format.h>

#include <algorithm>

#include "adapt/sim/operations.hpp"
#include "base/json_text.hpp"

namespace weft::adapt::sim {

using model::CableId;
using model::Entity;
using model::entity;
using model::EventKind;
using model::LinkId;
using model::NodeId;
using model::port_of;
using model::Source;

namespace {

constexpr std::uint32_t flaps_of_burst = 6;
constexpr std::uint32_t quick_samples = 30;  // of light levels; later ones come seldom
constexpr std::uint32_t quick_probes = 20;
constexpr std::uint32_t quick_polls = 5;
constexpr std::int64_t seldom_ns = 10 * ns_per_minute;
constexpr std::int64_t poll_ns = 30 * ns_per_s;
constexpr std::int64_t rate_again_ns = 10 * ns_per_s;  // of agents
// A localiser names a part after so long, and the longer the less it loses.
constexpr double sight_s = 3, sight_per_loss_s = 0.02;

}  // namespace

// Ids follow from the fault, not from what else was said before.
JsonObject Operations::line(std::uint32_t fault, std::int64_t t_ns, const Word& word) {
  Script& story = stories_[fault];
  return JsonObject()
      .add("id", fmt::format("op-{:016x}-{}", story.key, ++story.records))
      .add("t", fmt::format("{}", t_ns))
      .add("source", word.source)
      .add("entity", name(fabric_, word.entity))
      .add("kind", word.kind)
      .add("value", word.value, digits(6));
}

void Operations::say(std::uint32_t fault, const Word& word, std::int64_t after_ns) {
  const std::int64_t t = now_.ns + after_ns;
  JsonObject said = line(fault, t, word);
  if (!word.reason.empty()) said.add("attrs", JsonObject().add("reason", word.reason));
  said_.emplace(std::pair(Timestamp{t + voice(fault, 0.01, 0.3)}, ++serial_), said.text());
}

// As the service's localiser writes its verdicts.
void Operations::say_probe(std::uint32_t fault, const Entity& part, EventKind kind, double loss) {
  if (!settings_.tells_probes) return;
  JsonObject said = line(fault, now_.ns, {Source::probe, part, kind, loss});
  said.add("attrs", JsonObject()
                        .add("finding", kind == EventKind::probe_host ? "dead" : "loss")
                        .add("probability", "0.9900"));
  said_.emplace(std::pair(now_, ++serial_), said.text());
}

// The speeds that drivers report, as agents on both ends tell them.
void Operations::say_rate(const Fault& fault, std::uint32_t index, double share) {
  for (const CableId cable : cables_of(fault.part))
    for (const LinkId out : {model::forward(cable), model::reverse(model::forward(cable))}) {
      const NodeId node = fabric_.from(out);
      const bool is_switch = fabric_.is_switch(node);
      if (is_mute(is_switch ? node : fabric_.host_of(node))) continue;
      const std::int64_t t = now_.ns + voice(index, 0.1, 1);
      JsonObject said = line(index, t,
                             {Source::agent, is_switch ? port_of(out) : entity(node),
                              share < 1 ? EventKind::link_slow : EventKind::link_speed_ok, share});
      said.add("attrs", JsonObject().add("rate_share", fmt::format("{:.4g}", share)));
      said_.emplace(std::pair(Timestamp{t}, ++serial_), said.text());
    }
}

// Returns when it goes on, 0: never.
std::int64_t Operations::tell(Fault& fault, std::uint32_t index) {
  switch (fault.kind) {
    case FaultKind::cable:
      if (fault.turns > 0) return poll_ports(index);
      all_off(fault, index, 0);
      return pace(index, 30, 600);
    case FaultKind::grey:
    case FaultKind::corrupt:
      return tell_grey(fault, index);
    case FaultKind::optic:
      return tell_optic(fault, index);
    case FaultKind::flap:
      return tell_flap(fault, index);
    case FaultKind::device:
      return tell_device(fault, index);
    case FaultKind::card:
      return tell_card(fault, index);
    case FaultKind::control_plane:
      return tell_sessions(fault, index);
    case FaultKind::nic:
      return tell_nic(fault, index);
    case FaultKind::host:
      return tell_host(fault, index);
    case FaultKind::dead_link:
      return tell_dead_link(fault, index);
    case FaultKind::lossy_switch:
    case FaultKind::lossy_nic:
      return tell_lossy(fault, index);
    case FaultKind::daemon_kill:
    case FaultKind::daemon_stop:
    case FaultKind::daemon_hang:
      return tell_daemon(fault, index);
    case FaultKind::degraded:
      say_rate(fault, index, fault.rate_factor);
      return fault.turns < quick_probes ? rate_again_ns : seldom_ns;
    case FaultKind::delay:
    case FaultKind::jitter:
    case FaultKind::reorder:
    case FaultKind::duplicate:
    case FaultKind::blackhole:
    case FaultKind::icmp_ratelimit:
      return 0;  // no device says anything of it
  }
  return 0;
}

// ---- carriers ----

void Operations::carrier_off(std::uint32_t fault, CableId cable, std::int64_t after_ns) {
  const bool was_in_use = is_in_use(cable);
  if (cables_[cable.index()].downs++ > 0) return;
  ++version_;
  weigh_all();
  for (const LinkId out : {model::forward(cable), model::reverse(model::forward(cable))}) {
    const NodeId node = fabric_.from(out);
    const std::int64_t seen = after_ns + voice(fault, 0.005, 0.3);
    if (!fabric_.is_switch(node)) {
      const NodeId host = fabric_.host_of(node);
      if (host.valid() && !is_mute(host))
        say(fault, {Source::agent, entity(node), EventKind::nic_down},
            seen + voice(fault, 0.05, 0.2));
      continue;
    }
    if (is_mute(node)) continue;
    say(fault, {Source::syslog, port_of(out), EventKind::link_down}, seen);
    if (fabric_.is_switch(fabric_.to(out)))
      say(fault, {.entity = port_of(out), .kind = EventKind::bgp_down, .reason = "interface"},
          seen + voice(fault, 0.02, 0.4));
  }
  if (was_in_use && faults_[fault].kind != FaultKind::host)
    add_blow(fault, entity(cable), voice(fault, 0.05, 0.5));
}

void Operations::carrier_on(std::uint32_t fault, CableId cable, std::int64_t after_ns) {
  if (--cables_[cable.index()].downs > 0) return;
  ++version_;
  weigh_all();
  for (const LinkId out : {model::forward(cable), model::reverse(model::forward(cable))}) {
    const NodeId node = fabric_.from(out);
    const std::int64_t up = after_ns + voice(fault, 0.4, 0.8);
    if (!fabric_.is_switch(node)) {
      const NodeId host = fabric_.host_of(node);
      if (host.valid() && !is_mute(host))
        say(fault, {Source::agent, entity(node), EventKind::nic_up}, up + voice(fault, 0.1, 0.5));
      continue;
    }
    if (is_mute(node)) continue;
    say(fault, {Source::syslog, port_of(out), EventKind::link_up}, up);
    if (fabric_.is_switch(fabric_.to(out)))
      say(fault, {.entity = port_of(out), .kind = EventKind::bgp_up}, up + voice(fault, 1, 6));
  }
}

void Operations::all_off(const Fault& fault, std::uint32_t index, double spread_s) {
  for (const CableId cable : cables_of(fault.part))
    carrier_off(index, cable, spread_s > 0 ? voice(index, 0, spread_s) : 0);
}

void Operations::tell_end(Fault& fault, std::uint32_t index) {
  const auto all_on = [&](double spread_s) {
    for (const CableId cable : cables_of(fault.part))
      carrier_on(index, cable, voice(index, 0, spread_s));
  };
  const NodeId node(fault.part.id);
  switch (fault.kind) {
    case FaultKind::grey:
    case FaultKind::optic:
    case FaultKind::corrupt:
    case FaultKind::delay:
    case FaultKind::jitter:
    case FaultKind::reorder:
    case FaultKind::duplicate:
    case FaultKind::lossy_switch:
    case FaultKind::lossy_nic:
    case FaultKind::blackhole:
    case FaultKind::icmp_ratelimit:
      return;
    case FaultKind::degraded:
      return say_rate(fault, index, 1);
    case FaultKind::dead_link:
    case FaultKind::daemon_kill:
    case FaultKind::daemon_stop:
    case FaultKind::daemon_hang:
      return sessions_on(fault, index);
    case FaultKind::flap:
      if (fault.has_no_carrier) carrier_on(index, CableId(fault.part.id), 0);
      fault.has_no_carrier = fault.is_in_burst = false;
      return;
    case FaultKind::control_plane:
      for (const LinkId own : fabric_.out(node)) {
        if (!fabric_.is_switch(fabric_.to(own))) continue;
        const std::int64_t up = voice(index, 1, 20);
        say(index, {.entity = port_of(own), .kind = EventKind::bgp_up}, up);
        say(index, {.entity = port_of(model::reverse(own)), .kind = EventKind::bgp_up}, up);
      }
      return;
    case FaultKind::device:
    case FaultKind::host:
      if (fault.is_silent) --mute_[node.index()];
      say(index,
          {fault.kind == FaultKind::host ? Source::agent : Source::syslog, fault.part,
           fault.kind == FaultKind::host ? EventKind::host_boot : EventKind::device_boot},
          0);
      return all_on(5);
    case FaultKind::card:
      say(index, {Source::syslog, fault.part, EventKind::card_ok}, 0);
      return all_on(5);
    case FaultKind::cable:
    case FaultKind::nic:
      return all_on(0);
  }
}

// ---- cables ----

// What is down is found so again and again by whoever polls.
std::int64_t Operations::poll_ports(std::uint32_t index) {
  for (const CableId cable : cables_of(faults_[index].part))
    for (const LinkId out : {model::forward(cable), model::reverse(model::forward(cable))})
      if (fabric_.is_switch(fabric_.from(out)) && !is_mute(fabric_.from(out)))
        say(index, {Source::snmp, port_of(out), EventKind::interface_down}, 0);
  return seldom_ns;
}

std::int64_t Operations::tell_grey(const Fault& fault, std::uint32_t index) {
  const CableId cable(fault.part.id);
  const LinkId link =
      fault.way == Way::reverse ? model::reverse(model::forward(cable)) : model::forward(cable);
  if (fault.turns == 0)
    return static_cast<std::int64_t>((sight_s + sight_per_loss_s / fault.loss) * 1e9);
  if (!is_in_use(cable)) return settings_.probe_later_ns;
  const bool is_corrupt = fault.kind == FaultKind::corrupt;
  say_probe(index, fault.way == Way::both ? fault.part : entity(link),
            is_corrupt ? EventKind::probe_corruption : EventKind::probe_loss, fault.loss);
  if (!is_corrupt && stories_[index].voice.uniform() < 0.2)
    say(index,
        {Source::gnmi, port_of(model::reverse(link)), EventKind::crc_errors, 1e3 * fault.loss},
        voice(index, 0, 1));
  return fault.turns < quick_probes ? settings_.probe_every_ns : settings_.probe_later_ns;
}

// Nothing passes and the ports do not know; their session does, after its hold time.
std::int64_t Operations::tell_dead_link(Fault& fault, std::uint32_t index) {
  const CableId cable(fault.part.id);
  if (fault.turns == 0) return pace(index, 3, 4);
  if (fault.turns == 1) {
    if (is_in_use(cable)) say_probe(index, fault.part, EventKind::probe_loss, 1);
    return pace(index, 3, 5);
  }
  const LinkId link = model::forward(cable);
  for (const LinkId out : {link, model::reverse(link)})
    if (fabric_.is_switch(fabric_.from(out)) && fabric_.is_switch(fabric_.to(out)) &&
        !is_mute(fabric_.from(out)))
      say(index, {.entity = port_of(out), .kind = EventKind::bgp_down, .reason = "hold_timer"},
          voice(index, 0, 0.5));
  sessions_off(fault);
  return 0;
}

std::int64_t Operations::tell_optic(const Fault& fault, std::uint32_t index) {
  const CableId cable(fault.part.id);
  const LinkId in = model::forward(cable);
  const Entity port = port_of(model::reverse(in));
  const double age = std::min(1.0, fault.turns / 20.0);
  if (!is_mute(fabric_.to(in))) {
    say(index, {Source::gnmi, port, EventKind::rx_power, -8 - 7 * age}, 0);
    if (stories_[index].voice.uniform() < 0.6)
      say(index, {Source::gnmi, port, EventKind::prefec_ber, 1e-5 * (1 + 1000 * age)}, 0);
    if (fault.turns > optic_turns) say(index, {Source::gnmi, port, EventKind::crc_errors, 100}, 0);
  }
  if (loss_now(fault) > 0 && is_in_use(cable))
    say_probe(index, entity(in), EventKind::probe_loss, loss_now(fault));
  return fault.turns < quick_samples ? pace(index, 10, 40) : seldom_ns + pace(index, 0, 60);
}

std::int64_t Operations::tell_flap(Fault& fault, std::uint32_t index) {
  const CableId cable(fault.part.id);
  if (fault.has_no_carrier) {
    fault.has_no_carrier = false;
    carrier_on(index, cable, 0);
    if ((fault.turns / 2 + 1) % flaps_of_burst != 0) return pace(index, 3, 20);
    fault.is_in_burst = false;
    return pace(index, 600, 3600);
  }
  fault.is_in_burst = fault.has_no_carrier = true;
  carrier_off(index, cable, 0);
  return pace(index, 0.3, 2);
}

// All cables of a switch or NIC lose; no port of them knows.
std::int64_t Operations::tell_lossy(const Fault& fault, std::uint32_t index) {
  if (fault.turns == 0)
    return static_cast<std::int64_t>((sight_s + sight_per_loss_s / fault.loss) * 1e9);
  if (drained_.contains(fault.part)) return settings_.probe_later_ns;
  say_probe(index, fault.part, EventKind::probe_loss, fault.loss);
  const NodeId host = fabric_.host_of(NodeId(fault.part.id));
  if (fault.kind == FaultKind::lossy_nic && host.valid() && !is_mute(host))
    say(index, {Source::agent, fault.part, EventKind::nic_errors, 1e3 * fault.loss},
        voice(index, 0, 1));
  return fault.turns < quick_probes ? settings_.probe_every_ns : settings_.probe_later_ns;
}

// ---- devices ----

void Operations::sessions_off(Fault& fault) {
  if (fault.has_no_session) return;
  fault.has_no_session = true;
  ++version_;
  for (const CableId cable : cables_of(fault.part)) ++cables_[cable.index()].timed_out;
}

// They come back one by one.
void Operations::sessions_on(Fault& fault, std::uint32_t index) {
  if (!fault.has_no_session) return;
  fault.has_no_session = false;
  ++version_;
  for (const CableId cable : cables_of(fault.part)) {
    --cables_[cable.index()].timed_out;
    const LinkId link = model::forward(cable);
    if (!fabric_.is_switch(fabric_.from(link)) || !fabric_.is_switch(fabric_.to(link))) continue;
    const std::int64_t up = voice(index, 1, 6);
    for (const LinkId out : {link, model::reverse(link)})
      if (!is_mute(fabric_.from(out)))
        say(index, {.entity = port_of(out), .kind = EventKind::bgp_up}, up);
  }
}

// Killed, it is missed at once; stopped, it says good-bye; hung, its neighbours wait for their
// timers. Without graceful restart they then route around it.
std::int64_t Operations::tell_daemon(Fault& fault, std::uint32_t index) {
  const NodeId device(fault.part.id);
  if (is_mute(device)) return 0;
  if (fault.kind == FaultKind::daemon_hang && fault.turns == 0) return pace(index, 6, 9);
  if (fault.kind == FaultKind::daemon_kill)
    say(index, {Source::syslog, fault.part, EventKind::process_crash}, voice(index, 0.1, 1));
  const std::string_view reason = fault.kind == FaultKind::daemon_hang ? "hold_timer" : "reset";
  for (const LinkId own : fabric_.out(device)) {
    const NodeId peer = fabric_.to(own);
    if (!fabric_.is_switch(peer) || is_mute(peer)) continue;
    say(index,
        {.entity = port_of(model::reverse(own)), .kind = EventKind::bgp_down, .reason = reason},
        voice(index, 0.01, 0.6));
  }
  sessions_off(fault);
  return 0;
}

// Half of them die with their CPU, and others have to say so.
std::int64_t Operations::tell_device(Fault& fault, std::uint32_t index) {
  const NodeId device(fault.part.id);
  const bool has_hosts = std::ranges::any_of(
      fabric_.out(device), [&](LinkId out) { return !fabric_.is_switch(fabric_.to(out)); });
  if (fault.turns == 0) {
    fault.is_silent = stories_[index].pace.uniform() < 0.5;
    if (fault.is_silent) ++mute_[device.index()];
    for (int i = 0; i < 3 && !fault.is_silent; ++i)
      say(index, {Source::syslog, fault.part, EventKind::asic_error}, voice(index, 0, 2));
    if (has_hosts) open_harm(index, fault.part, 1);
    all_off(fault, index, 0.6);
    return pace(index, 5, 30);
  }
  if (fault.is_silent)
    say(index, {Source::snmp, fault.part, EventKind::device_unreachable}, 0);
  else
    say(index, {Source::syslog, fault.part, EventKind::asic_error}, 0);
  if (has_hosts) tell_hosts_behind(index, device);
  return fault.turns < quick_polls ? poll_ns : seldom_ns;
}

// Hosts that have no other switch answer nobody.
void Operations::tell_hosts_behind(std::uint32_t fault, NodeId device) {
  std::set<NodeId> hosts;
  for (const LinkId port : fabric_.out(device))
    if (const NodeId host = fabric_.host_of(fabric_.to(port)); host.valid()) hosts.insert(host);
  for (const NodeId host : hosts) {
    const bool has_other = std::ranges::any_of(fabric_.nics_of(host), [&](NodeId nic) {
      return std::ranges::any_of(fabric_.out(nic), [&](LinkId up) {
        return fabric_.is_switch(fabric_.to(up)) && fabric_.to(up) != device;
      });
    });
    if (!has_other) say_probe(fault, entity(host), EventKind::probe_host, 1);
  }
}

std::int64_t Operations::tell_card(const Fault& fault, std::uint32_t index) {
  if (!is_mute(NodeId(fault.part.id)))
    say(index, {Source::syslog, fault.part, EventKind::card_fail}, voice(index, 0, 1));
  if (fault.turns == 0) all_off(fault, index, 0.8);
  return seldom_ns;
}

// The process dies, its neighbours wait for their timers.
std::int64_t Operations::tell_sessions(const Fault& fault, std::uint32_t index) {
  const NodeId device(fault.part.id);
  if (is_mute(device)) return 0;
  say(index, {Source::syslog, fault.part, EventKind::process_crash}, 0);
  for (const LinkId own : fabric_.out(device)) {
    const NodeId peer = fabric_.to(own);
    if (!fabric_.is_switch(peer) || is_mute(peer)) continue;
    say(index,
        {.entity = port_of(model::reverse(own)),
         .kind = EventKind::bgp_down,
         .reason = "hold_timer"},
        voice(index, 6, 9));
  }
  return 0;
}

// ---- hosts ----

std::int64_t Operations::tell_nic(const Fault& fault, std::uint32_t index) {
  const NodeId nic(fault.part.id);
  if (fault.turns > 0) return poll_ports(index);
  for (int i = 0; i < 3; ++i)
    if (const NodeId host = fabric_.host_of(nic); host.valid() && !is_mute(host))
      say(index, {Source::agent, fault.part, EventKind::nic_errors, 100}, voice(index, 0, 1));
  all_off(fault, index, 0);
  const std::vector<CableId> cables = cables_of(fault.part);
  for (const CableId cable : cables) open_harm(index, entity(cable), 1);
  return pace(index, 30, 600);
}

std::int64_t Operations::tell_host(const Fault& fault, std::uint32_t index) {
  const NodeId host(fault.part.id);
  if (fault.turns == 0) {
    faults_[index].is_silent = true;
    ++mute_[host.index()];
    all_off(fault, index, 2);
    return pace(index, 3, 8);
  }
  if (fault.turns == 1)
    say(index, {Source::agent, fault.part, EventKind::agent_silent}, voice(index, 10, 30));
  say_probe(index, fault.part, EventKind::probe_host, 1);
  return fault.turns < quick_polls ? 10 * ns_per_s : seldom_ns;
}

}  // namespace weft::adapt::sim
