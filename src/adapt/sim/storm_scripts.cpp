#include "adapt/sim/storm_scripts.hpp"

#include <algorithm>
#include <cmath>

namespace weft::adapt::sim {

using model::CableId;
using model::EventKind;
using model::LinkId;
using model::NodeId;
using model::port_of;
using observe::telemetry::Reason;

namespace {

constexpr std::int64_t second = ns_per_s;
constexpr std::int64_t resend_every = 60 * second;  // of pollers, once a thing is known

std::int64_t part_of(const StormFault& fault, double share) {
  return fault.start +
         static_cast<std::int64_t>(static_cast<double>(fault.end - fault.start) * share);
}

}  // namespace

StormScripts::StormScripts(const StormContext& context, const std::vector<StormFault>& faults,
                           StormVoice& voice)
    : context_(context),
      fabric_(context.fabric),
      faults_(faults),
      voice_(voice),
      of_circuit_(fabric_.cable_count()) {
  for (std::uint32_t i = 0; i < faults_.size(); ++i)
    for (const CableId cable : faults_[i].cables) of_circuit_[cable.index()].push_back(i);
}

double StormScripts::log_between(double low, double high) {
  return std::exp(voice_.between(std::log(low), std::log(high)));
}

LinkId StormScripts::either_way(CableId cable) {
  const LinkId link = model::forward(cable);
  return voice_.chance(0.5) ? link : model::reverse(link);
}

bool StormScripts::talks(NodeId node) const { return !std::ranges::binary_search(mute_, node); }

bool StormScripts::is_held(CableId cable, std::int64_t t) const {
  return std::ranges::any_of(of_circuit_[cable.index()], [&](std::uint32_t other) {
    return other != current_ && faults_[other].start <= t && t < faults_[other].end;
  });
}

std::int64_t StormScripts::up_again(CableId cable, std::int64_t to) const {
  const StormFault& own = faults_[current_];
  for (const std::uint32_t other : of_circuit_[cable.index()]) {
    const StormFault& fault = faults_[other];
    if (other == current_ || fault.end <= own.start || own.end <= fault.start) continue;
    if (other < current_) return 0;
    to = std::max(to, fault.end);
  }
  return to;
}

void StormScripts::tell(std::size_t index) {
  const StormFault& fault = faults_[index];
  current_ = static_cast<std::uint32_t>(index);
  mute_.clear();
  voice_.turn_to(current_ + 1, current_ + 1);
  switch (fault.type) {
    case ProblemType::port_flap:
      return tell_flap(fault);
    case ProblemType::optic:
      return tell_optic(fault);
    case ProblemType::cable:
      return tell_cable(fault);
    case ProblemType::line_card:
      return tell_card(fault);
    case ProblemType::fabric_switch:
    case ProblemType::rack_switch:
      return tell_device(fault);
    case ProblemType::control_plane:
      return tell_control_plane(fault);
    case ProblemType::power:
    case ProblemType::zone:
      return tell_power(fault);
    case ProblemType::host_nic:
      return tell_nic(fault);
    case ProblemType::host:
      return tell_host(fault);
    case ProblemType::misconfiguration:
      return tell_push(fault);
    case ProblemType::congestion:
      return tell_congestion(fault);
  }
}

// Of a session over the port `out`, by its end. Fast detection does not see what software does.
void StormScripts::tell_session_end(LinkId out, std::int64_t t, Reason reason) {
  const NodeId node = fabric_.from(out);
  if (!talks(node)) return;
  if (voice_.has_bfd(node) && reason != Reason::policy && reason != Reason::reset)
    voice_.log(node, t - ns_between(0, 0.02), {EventKind::bfd_down, port_of(out), 1, reason});
  voice_.log(node, t, {EventKind::bgp_down, port_of(out), 1, reason});
}

void StormScripts::tell_session_return(LinkId out, std::int64_t t) {
  const NodeId node = fabric_.from(out);
  if (voice_.has_bfd(node))
    voice_.log(node, t - ns_between(0, 0.5), {EventKind::bfd_up, port_of(out)});
  voice_.log(node, t, {EventKind::bgp_up, port_of(out)});
}

void StormScripts::tell_switch_end(LinkId out, const Outage& outage) {
  const NodeId node = fabric_.from(out);
  const std::int64_t seen = outage.from + ns_between(0.005, 0.3);
  // An end says what it has seen: never the return before the loss.
  const std::int64_t up = std::max(outage.to, seen) + ns_between(0.01, 0.5);
  if (talks(node)) {
    voice_.log(node, seen, {EventKind::link_down, port_of(out)});
    voice_.stream(node, seen, {EventKind::link_down, port_of(out)});
    if (voice_.poll_at(node, seen) < outage.to) {
      voice_.poll(node, seen, {EventKind::interface_down, port_of(out)});
      voice_.poll(node, up, {EventKind::link_up, port_of(out)});
    }
  }
  voice_.log(node, up, {EventKind::link_up, port_of(out)});
  voice_.stream(node, up, {EventKind::link_up, port_of(out)});
  if (!fabric_.is_switch(fabric_.to(out))) return;
  using enum Outage::Depth;
  if (outage.depth == lost || outage.depth == sessions)
    tell_session_end(out, seen + ns_between(0.02, 0.4), Reason::interface);
  if (outage.depth == back || outage.depth == sessions)
    tell_session_return(out, up + ns_between(1, 6));
}

void StormScripts::tell_nic_end(LinkId out, const Outage& outage) {
  const NodeId nic = fabric_.from(out);
  const NodeId host = fabric_.host_of(nic);
  if (!host.valid()) return;
  const std::int64_t seen = outage.from + ns_between(0.05, 0.5);
  if (talks(host)) voice_.agent(host, seen, {EventKind::nic_down, entity(nic)});
  voice_.agent(host, std::max(outage.to, seen) + ns_between(0.1, 1),
               {EventKind::nic_up, entity(nic)});
}

void StormScripts::tell_end(LinkId out, const Outage& outage) {
  if (fabric_.is_switch(fabric_.from(out)))
    tell_switch_end(out, outage);
  else
    tell_nic_end(out, outage);
}

void StormScripts::tell_outage(CableId cable, const Outage& outage) {
  const LinkId link = model::forward(cable);
  tell_end(link, outage);
  tell_end(model::reverse(link), outage);
  // Traffic moves to other paths within a second, of a window of 10.
  const bool trunk = fabric_.is_switch(fabric_.from(link)) && fabric_.is_switch(fabric_.to(link));
  const bool deep = outage.depth == Outage::Depth::sessions || outage.depth == Outage::Depth::lost;
  if (trunk && voice_.chance(deep ? 0.85 : 0.3))
    voice_.probe(outage.from,
                 {EventKind::probe_loss, entity(either_way(cable)), voice_.between(0.01, 0.1)});
}

// ---- ports and cables ----

// A session ends with an outage that damping lets through, and returns when the pause is long
// enough.
void StormScripts::tell_flap(const StormFault& fault) {
  constexpr int flaps_min = 3, flaps_max = 25;
  constexpr double damped_s = 0.3, session_s = 7;
  using enum Outage::Depth;
  std::int64_t t = fault.start;
  bool is_up = true;
  for (int i = 0; i < flaps_max && (i < flaps_min || t < fault.end); ++i) {
    const double down_s = log_between(0.05, 4), gap_s = log_between(2, 60);
    const std::int64_t to = t + static_cast<std::int64_t>(down_s * 1e9);
    const std::int64_t next = to + static_cast<std::int64_t>(gap_s * 1e9);
    const bool is_last = i + 1 == flaps_max || (i + 1 >= flaps_min && next >= fault.end);
    const bool ends = is_up && down_s > damped_s;
    const bool returns = (ends || !is_up) && (gap_s > session_s || is_last);
    tell_outage(fault.cables.front(), {t, to,
                                       ends && returns ? sessions
                                       : ends          ? lost
                                       : returns       ? back
                                                       : link});
    is_up = (is_up && !ends) || returns;
    t = next;
  }
}

void StormScripts::tell_fading(const StormFault& fault, LinkId in, std::int64_t until) {
  const NodeId node = fabric_.to(in);
  const model::Entity port = port_of(model::reverse(in));
  const double span = static_cast<double>(fault.end - fault.start);
  const bool hot = fault.shape < 0.3;
  voice_.log(node, fault.start + ns_between(0, 20), {EventKind::rx_power, port});
  for (std::int64_t t = fault.start; t < until; t += ns_between(10, 40)) {
    const double age = static_cast<double>(t - fault.start) / span;
    voice_.sample(node, t, {EventKind::prefec_ber, port, 1e-5 * std::pow(10, 3 * age)});
    if (voice_.chance(0.6)) voice_.sample(node, t, {EventKind::rx_power, port, -8 - 7 * age});
    if (voice_.chance(0.25)) voice_.poll(node, t, {EventKind::rx_power, port, -8 - 7 * age});
    if (hot && voice_.chance(0.4))
      voice_.sample(node, t, {EventKind::optic_temperature, port, voice_.between(70, 85)});
    if (age < 0.4) continue;
    voice_.sample(node, t, {EventKind::crc_errors, port, voice_.between(10, 5000)});
    if (voice_.chance(0.2)) voice_.log(node, t, {EventKind::crc_errors, port});
    if (voice_.chance(0.6))
      voice_.probe(t, {EventKind::probe_loss, entity(in), voice_.between(0.0005, 0.02)});
  }
  voice_.log(node, until, {EventKind::rx_power, port});
}

// One end receives less and less light; most links fail before somebody comes.
void StormScripts::tell_optic(const StormFault& fault) {
  const CableId cable = fault.cables.front();
  const LinkId in = either_way(cable);
  if (fault.shape >= 0.6) return tell_fading(fault, in, fault.end);
  const std::int64_t gone = part_of(fault, 0.75);
  tell_fading(fault, in, gone);
  const auto flaps = static_cast<int>(voice_.rng().below(4));
  std::int64_t t = gone - ns_between(5, 40) * flaps;
  for (int i = 0; i < flaps; ++i) {
    const std::int64_t to = t + ns_between(0.1, 2);
    tell_outage(cable, {t, to, Outage::Depth::link});
    t = std::max(to + 2 * second, t + ns_between(5, 30));
  }
  tell_outage(cable, {std::max(t, gone), fault.end});
}

void StormScripts::tell_cable(const StormFault& fault) {
  if (fault.shape < 0.7) return tell_outage(fault.cables.front(), {fault.start, fault.end});
  if (fault.shape < 0.8) return tell_black_hole(fault);
  tell_grey(fault);
}

// Carrier stays, packets do not pass: only timers notice.
void StormScripts::tell_black_hole(const StormFault& fault) {
  const LinkId link = either_way(fault.cables.front());
  const double hold_s = voice_.chance(0.5) ? 3 : 9;
  for (const LinkId out : {link, model::reverse(link)}) {
    const bool fast = voice_.has_bfd(fabric_.from(out));
    const std::int64_t seen =
        fault.start + (fast ? ns_between(0.3, 0.9) : ns_between(hold_s * 2 / 3, hold_s));
    tell_session_end(out, seen, Reason::hold_timer);
    tell_session_return(out, fault.end + ns_between(1, 6));
  }
  for (std::int64_t t = fault.start; t < fault.start + 10 * second; t += StormVoice::window_step)
    voice_.probe(t, {EventKind::probe_loss, entity(link), voice_.between(0.2, 0.9)});
}

// Few packets are lost, for long; sometimes the receiver counts why.
void StormScripts::tell_grey(const StormFault& fault) {
  const LinkId link = either_way(fault.cables.front());
  const NodeId node = fabric_.to(link);
  const model::Entity port = port_of(model::reverse(link));
  const bool counted = voice_.chance(0.6);
  const double loss = log_between(0.002, 0.05);
  for (std::int64_t t = fault.start; t < fault.end; t += StormVoice::window_step) {
    if (voice_.chance(0.85))
      voice_.probe(t, {EventKind::probe_loss, entity(link), loss * voice_.between(0.5, 1.5)});
    if (!counted) continue;
    if (voice_.chance(0.5))
      voice_.sample(node, t, {EventKind::crc_errors, port, voice_.between(10, 2000)});
    if (voice_.chance(0.1)) voice_.log(node, t, {EventKind::crc_errors, port});
  }
}

// ---- devices ----

void StormScripts::tell_all_down(const StormFault& fault, double spread_s) {
  for (const CableId cable : fault.cables) {
    const std::int64_t from = fault.start + ns_between(0, spread_s);
    const std::int64_t to = up_again(cable, fault.end);
    const std::int64_t up = to + ns_between(0, 20);
    if (to != 0) tell_outage(cable, {from, up});
  }
}

void StormScripts::tell_card(const StormFault& fault) {
  const NodeId device = fault.nodes.front();
  const model::Entity card = model::card_of(device, fault.card);
  const auto said = static_cast<int>(1 + voice_.rng().below(2));
  for (int i = 0; i < said; ++i)
    voice_.log(device, fault.start + ns_between(0, 1), {EventKind::card_fail, card});
  if (voice_.chance(0.4))
    voice_.log(device, fault.start + ns_between(0, 1), {EventKind::asic_error, entity(device)});
  StormFault hit = fault;
  if (fault.shape >= 0.85) {  // one of its two chips
    const std::size_t half = fault.cables.size() / 2;
    const std::size_t first = fault.shape < 0.925 ? 0 : half;
    hit.cables.assign(fault.cables.begin() + static_cast<std::ptrdiff_t>(first),
                      fault.cables.begin() + static_cast<std::ptrdiff_t>(first + half));
  }
  if (voice_.chance(0.25)) mute_ = {device};  // the ports vanish with the card, unmentioned
  tell_all_down(hit, 0.8);
  mute_.clear();
  voice_.log(device, fault.end, {EventKind::card_ok, card});
}

void StormScripts::tell_unreachable(NodeId device, std::int64_t from, std::int64_t to) {
  std::int64_t step = StormVoice::poll_step;
  for (std::int64_t t = voice_.poll_at(device, from); t < to; t += step) {
    voice_.miss(device, t, {EventKind::device_unreachable, entity(device)});
    if (t > from + 120 * second) step = 2 * StormVoice::poll_step;
  }
}

void StormScripts::tell_boot(NodeId node, std::int64_t t) {
  if (fabric_.is_switch(node))
    voice_.log(node, t, {EventKind::device_boot, entity(node)});
  else
    voice_.agent(node, t, {EventKind::host_boot, entity(node)});
}

// Nobody reaches a host: probe windows, at first each, then one a minute.
void StormScripts::tell_host_gone(NodeId host, std::int64_t from, std::int64_t to) {
  std::int64_t step = StormVoice::window_step;
  for (std::int64_t t = from; t < to; t += step) {
    voice_.probe(t, {EventKind::probe_host, entity(host), 1});
    if (t > from + 60 * second) step = resend_every;
  }
}

void StormScripts::tell_hosts_behind(const StormFault& fault) {
  const NodeId device = fault.nodes.front();
  std::vector<NodeId> hosts;
  for (const LinkId port : context_.host_ports_of(device))
    hosts.push_back(fabric_.host_of(fabric_.to(port)));
  std::ranges::sort(hosts);
  hosts.erase(std::ranges::unique(hosts).begin(), hosts.end());
  for (const NodeId host : hosts) {
    const bool elsewhere = std::ranges::any_of(fabric_.nics_of(host), [&](NodeId nic) {
      return std::ranges::any_of(fabric_.out(nic), [&](LinkId up) {
        return fabric_.is_switch(fabric_.to(up)) && fabric_.to(up) != device;
      });
    });
    if (!elsewhere) tell_host_gone(host, fault.start, fault.end);
  }
}

// Forwarding dead and the CPU alive; all dead; a crash with reload; or one of two chips dead.
void StormScripts::tell_device(const StormFault& fault) {
  const NodeId device = fault.nodes.front();
  const bool half = fault.shape >= 0.9 && fault.cables.size() >= 8;
  const bool alive = fault.shape < 0.45 || half;
  if (alive) {
    const auto said = static_cast<int>(2 + voice_.rng().below(3));
    for (int i = 0; i < said; ++i)
      voice_.log(device, fault.start + ns_between(0, 2), {EventKind::asic_error, entity(device)});
  } else {
    if (fault.shape >= 0.8)  // it had time for a last word
      voice_.log(device, fault.start - ns_between(0, 0.5),
                 {EventKind::process_crash, entity(device)});
    mute_ = {device};
    tell_unreachable(device, fault.start, fault.end);
    if (voice_.chance(0.9)) tell_boot(device, fault.end - ns_between(1, 20));
  }
  StormFault hit = fault;
  if (half) hit.cables.resize(fault.cables.size() / 2);
  tell_all_down(hit, 0.6);
  if (!half && fault.type == ProblemType::rack_switch) tell_hosts_behind(fault);
}

void StormScripts::tell_control_plane(const StormFault& fault) {
  const NodeId device = fault.nodes.front();
  if (voice_.chance(0.3))
    voice_.log(device, fault.start - ns_between(1, 15), {EventKind::memory_error, entity(device)});
  voice_.log(device, fault.start, {EventKind::process_crash, entity(device)});
  voice_.log(device, fault.start + ns_between(2, 15), {EventKind::process_start, entity(device)});
  const bool timed = fault.shape < 0.5;
  const double hold_s = voice_.chance(0.5) ? 3 : 9;
  for (const LinkId own : context_.trunks_of(device)) {
    if (!voice_.chance(0.95) || up_again(model::cable_of(own), fault.end) == 0) continue;
    const LinkId theirs = model::reverse(own);
    const std::int64_t down =
        fault.start + (timed ? ns_between(hold_s * 2 / 3, hold_s) : ns_between(0, 0.3));
    const std::int64_t up = fault.end + ns_between(0, 20);
    const NodeId peer = fabric_.from(theirs);
    voice_.log(
        peer, down,
        {EventKind::bgp_down, port_of(theirs), 1, timed ? Reason::hold_timer : Reason::reset});
    voice_.log(peer, up, {EventKind::bgp_up, port_of(theirs)});
    voice_.log(device, up, {EventKind::bgp_up, port_of(own)});
    if (voice_.chance(0.2))
      voice_.probe(down, {EventKind::probe_loss, entity(own), voice_.between(0.01, 0.2)});
  }
}

// ---- power ----

void StormScripts::tell_power(const StormFault& fault) {
  mute_ = fault.nodes;
  std::ranges::sort(mute_);
  const bool whole_racks = fault.type == ProblemType::power || fault.shape >= 0.5;
  if (whole_racks) tell_dark_racks(fault);
  for (const NodeId node : fault.nodes) {
    if (fabric_.kind(node) == model::NodeKind::nic) continue;
    const std::int64_t from = fault.start + ns_between(0, 1);
    for (std::int64_t t = from; t < fault.end; t += resend_every) {
      voice_.out_of_band(t, {EventKind::oob_unreachable, entity(node)});
      if (!whole_racks && t == from) voice_.out_of_band(t, {EventKind::power_lost, entity(node)});
    }
    if (fabric_.is_switch(node)) {
      tell_unreachable(node, from, fault.end);
    } else {
      voice_.heartbeat(from, {EventKind::agent_silent, entity(node)});
      tell_host_gone(node, from, fault.end);
    }
    tell_boot(node, fault.end + ns_between(15, 60));
    if (!whole_racks) voice_.out_of_band(fault.end, {EventKind::power_ok, entity(node)});
  }
  tell_all_down(fault, 0.5);
}

// Two feeds of each rack, by its power distribution unit.
void StormScripts::tell_dark_racks(const StormFault& fault) {
  std::vector<model::ScopeId> racks;
  for (const NodeId node : fault.nodes)
    racks.push_back(fabric_.enclosing(node, model::ScopeKind::rack));
  std::ranges::sort(racks);
  racks.erase(std::ranges::unique(racks).begin(), racks.end());
  for (const model::ScopeId rack : racks) {
    if (!rack.valid()) continue;
    voice_.out_of_band(fault.start, {EventKind::power_lost, entity(rack)});
    voice_.out_of_band(fault.start + 10 * second, {EventKind::power_lost, entity(rack)});
    voice_.out_of_band(fault.end, {EventKind::power_ok, entity(rack)});
  }
}

// ---- hosts ----

// Errors first, then the link is gone; or it hangs with the carrier on.
void StormScripts::tell_nic(const StormFault& fault) {
  const NodeId nic = fault.nodes.front();
  const NodeId host = fabric_.host_of(nic);
  const bool hangs = fault.shape < 0.2;
  const std::int64_t from = fault.start - (hangs ? 0 : ns_between(10, 40));
  const std::int64_t to = hangs ? fault.end : fault.start;
  for (std::int64_t t = from; t < to; t += ns_between(5, hangs ? 40 : 15)) {
    voice_.agent_sample(host, t, {EventKind::nic_errors, entity(nic), voice_.between(1, 500)});
    if (hangs && voice_.chance(0.5))
      voice_.probe(t, {EventKind::probe_loss, entity(model::reverse(fabric_.out(nic).front())),
                       voice_.between(0.05, 1)});
  }
  if (!hangs) tell_outage(fault.cables.front(), {fault.start, fault.end});
}

void StormScripts::tell_host(const StormFault& fault) {
  const NodeId host = fault.nodes.front();
  mute_ = {host};
  tell_all_down(fault, 2);
  tell_host_gone(host, fault.start, fault.end);
  voice_.heartbeat(fault.start, {EventKind::agent_silent, entity(host)});
  tell_boot(host, fault.end + ns_between(0, 5));
}

// ---- changes and load ----

// One change, device by device; each loses sessions by it, and both ends say by policy or reset.
void StormScripts::tell_push(const StormFault& fault) {
  const double apart_s = voice_.between(0.5, 6);
  std::int64_t t = fault.start;
  for (const NodeId device : fault.nodes) {
    StormWord word{EventKind::config_commit, entity(device)};
    word.change = fault.change;
    voice_.log(device, t, word);
    word.kind = EventKind::config_error;
    if (voice_.chance(0.6)) voice_.log(device, t + ns_between(0.2, 2), word);
    word.kind = EventKind::config_commit;
    voice_.log(device, fault.end - ns_between(0, 3), word);  // rolled back
    for (const LinkId own : context_.trunks_of(device)) {
      if (!std::ranges::binary_search(fault.cables, model::cable_of(own))) continue;
      if (up_again(model::cable_of(own), fault.end) == 0) continue;
      const std::int64_t down = t + ns_between(0.2, 4), up = fault.end + ns_between(0.5, 10);
      tell_session_end(own, down, Reason::policy);
      tell_session_end(model::reverse(own), down + ns_between(0, 0.2), Reason::reset);
      tell_session_return(own, up);
      tell_session_return(model::reverse(own), up + ns_between(0, 0.2));
      if (voice_.chance(0.4))
        voice_.probe(down, {EventKind::probe_loss, entity(own), voice_.between(0.01, 0.3)});
    }
    t += ns_between(0.2, apart_s);
  }
}

// Incast: the port to one host fills, marks and pauses spread upstream.
void StormScripts::tell_congestion(const StormFault& fault) {
  const LinkId link = model::forward(fault.cables.front());
  const LinkId port = fabric_.is_switch(fabric_.from(link)) ? link : model::reverse(link);
  const NodeId device = fabric_.from(port);
  const auto trunks = context_.trunks_of(device);
  for (std::int64_t t = fault.start; t < fault.end; t += ns_between(8, 14)) {
    voice_.sample(device, t, {EventKind::queue_depth, port_of(port), voice_.between(0.6, 1)});
    if (voice_.chance(0.9))
      voice_.sample(device, t, {EventKind::ecn_marks, port_of(port), voice_.between(1e3, 1e5)});
    if (voice_.chance(0.5))
      voice_.poll(device, t, {EventKind::discards, port_of(port), voice_.between(1, 500)});
    for (const LinkId up : trunks) {
      const LinkId down = model::reverse(up);
      if (voice_.chance(0.25) && !is_held(model::cable_of(up), t))
        voice_.sample(fabric_.from(down), t + ns_between(0, 3),
                      {EventKind::pfc_pauses, port_of(down), voice_.between(10, 5000)});
    }
    if (voice_.chance(0.5))
      voice_.probe(t, {EventKind::probe_latency, entity(port), voice_.between(100, 3000)});
  }
}

}  // namespace weft::adapt::sim
