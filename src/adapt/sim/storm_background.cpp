#include "adapt/sim/storm_background.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace weft::adapt::sim {

using model::CableId;
using model::EventKind;
using model::LinkId;
using model::NodeId;
using model::port_of;

namespace {

constexpr int part_tries_max = 30;
constexpr std::uint64_t background_stream = UINT64_MAX;

class Background {
 public:
  Background(const StormContext& context, const StormOptions& options,
             const std::vector<StormFault>& faults, StormScripts& scripts, StormVoice& voice)
      : context_(context),
        fabric_(context.fabric),
        options_(options),
        faults_(faults),
        scripts_(scripts),
        voice_(voice),
        of_node_(fabric_.node_count()),
        of_circuit_(fabric_.cable_count()),
        has_blipped_(fabric_.cable_count(), false) {
    voice_.turn_to(0, background_stream);
    for (std::uint32_t i = 0; i < faults.size(); ++i) {
      for (const NodeId node : faults[i].nodes) of_node_[node.index()].push_back(i);
      if (faults[i].type == ProblemType::congestion)  // pauses all uplinks of the switch
        for (const LinkId link : {model::forward(faults[i].cables.front()),
                                  model::reverse(model::forward(faults[i].cables.front()))})
          if (fabric_.is_switch(fabric_.from(link)))
            of_node_[fabric_.from(link).index()].push_back(i);
      for (const CableId cable : faults[i].cables) of_circuit_[cable.index()].push_back(i);
    }
    choose_chronic();
    choose_starved();
  }

  void tell(std::uint64_t lines) {
    // Most draws say something; those at dead devices and lost lines do not.
    const std::uint64_t draws_max = 100 * lines + 1000;
    for (std::uint64_t i = 0; i < draws_max && voice_.size() < lines; ++i)
      tell_one(lines - voice_.size());
  }

 private:
  // Shares of events, not of lines: a blip has some ten lines.
  void tell_one(std::uint64_t left) {
    constexpr std::uint64_t largest_event = 24;
    const double draw = left < largest_event ? 0 : voice_.rng().uniform();
    const std::int64_t t = moment();
    if (draw < 0.900) return tell_info(t);
    if (draw < 0.940) return tell_chronic(t);
    if (draw < 0.944) return tell_blip(t);
    if (draw < 0.952) return tell_optic_warning(t);
    if (draw < 0.962) return tell_stray_loss(t);
    if (draw < 0.966) return tell_commits(t);
    if (draw < 0.984) return tell_pressure(t);
    if (draw < 0.989) return tell_nic_error(t);
    tell_stall(t);
  }

  std::int64_t moment() {
    return static_cast<std::int64_t>(voice_.between(20, options_.hours * 3600 - 30) * 1e9);
  }
  std::int64_t ns_between(double low_s, double high_s) {
    return static_cast<std::int64_t>(voice_.between(low_s, high_s) * 1e9);
  }
  template <class T>
  const T& pick(const std::vector<T>& from) {
    return from[voice_.rng().below(from.size())];
  }

  bool is_quiet(const std::vector<std::uint32_t>& of, std::int64_t t) const {
    return std::ranges::none_of(of, [&](std::uint32_t i) {
      return t > faults_[i].start - storm_guard_ns && t < faults_[i].end + storm_guard_ns;
    });
  }
  bool is_quiet(NodeId node, std::int64_t t) const { return is_quiet(of_node_[node.index()], t); }
  bool is_quiet(CableId cable, std::int64_t t) const {
    const LinkId link = model::forward(cable);
    return is_quiet(of_circuit_[cable.index()], t) && is_quiet(fabric_.from(link), t) &&
           is_quiet(fabric_.to(link), t);
  }
  // A cable between switches with which nothing is wrong at `t`; invalid when none was met.
  CableId quiet_trunk(std::int64_t t) {
    if (context_.trunks.empty()) return {};
    for (int i = 0; i < part_tries_max; ++i)
      if (const CableId cable = pick(context_.trunks); is_quiet(cable, t)) return cable;
    return {};
  }

  // Ports that flap for weeks, with nothing plugged in that the fabric knows of.
  void choose_chronic() {
    if (context_.switches.empty()) return;
    const std::size_t count = std::clamp<std::size_t>(context_.switches.size() / 12, 2, 20);
    for (std::size_t i = 0; i < count; ++i) {
      const NodeId device = pick(context_.switches);
      const auto beyond = static_cast<std::uint32_t>(1 + voice_.rng().below(8));
      chronic_.emplace_back(device,
                            static_cast<std::uint32_t>(fabric_.out(device).size()) + beyond);
    }
  }
  void choose_starved() {
    for (const NodeId host : fabric_.hosts())
      if (voice_.chance(options_.starved)) starved_.push_back(host);
  }

  void tell_info(std::int64_t t) {
    const std::size_t hosts = fabric_.hosts().size();
    const std::uint64_t at = voice_.rng().below(context_.switches.size() * 4 + hosts);
    const NodeId node = at < hosts ? fabric_.hosts()[at]
                                   : context_.switches[(at - hosts) % context_.switches.size()];
    if (is_dark(node, t)) return;
    voice_.log(node, t, {EventKind::info, entity(node)});
  }
  // Not of devices that may be dead.
  bool is_dark(NodeId node, std::int64_t t) const {
    return std::ranges::any_of(of_node_[node.index()], [&](std::uint32_t i) {
      return t > faults_[i].start - ns_per_s && t < faults_[i].end + ns_per_s;
    });
  }

  void tell_chronic(std::int64_t t) {
    if (chronic_.empty()) return tell_info(t);
    const auto [device, port] = pick(chronic_);
    if (is_dark(device, t)) return;
    StormWord word{EventKind::link_down, {}};
    word.stray = port;
    voice_.log(device, t, word);
    word.kind = EventKind::link_up;
    voice_.log(device, t + ns_between(0.1, 2), word);
  }

  // Once down and up, and never again in this storm.
  void tell_blip(std::int64_t t) {
    const CableId cable = quiet_trunk(t);
    if (!cable.valid() || has_blipped_[cable.index()]) return tell_info(t);
    has_blipped_[cable.index()] = true;
    scripts_.tell_outage(cable, {t, t + ns_between(0.05, 3)});
  }

  void tell_optic_warning(std::int64_t t) {
    const CableId cable = quiet_trunk(t);
    if (!cable.valid()) return tell_info(t);
    const LinkId out = model::forward(cable);
    constexpr std::array<std::pair<EventKind, double>, 3> kinds{{{EventKind::prefec_ber, 2e-6},
                                                                 {EventKind::optic_temperature, 71},
                                                                 {EventKind::crc_errors, 3}}};
    const auto& [kind, value] = kinds[voice_.rng().below(kinds.size())];
    voice_.sample(fabric_.from(out), t, {kind, port_of(out), value});
  }

  void tell_stray_loss(std::int64_t t) {
    const CableId cable = quiet_trunk(t);
    if (!cable.valid()) return tell_info(t);
    if (voice_.chance(0.5))
      return voice_.probe(
          t, {EventKind::probe_loss, entity(model::forward(cable)), voice_.between(0.0003, 0.003)});
    voice_.probe(
        t, {EventKind::probe_latency, entity(model::forward(cable)), voice_.between(100, 300)});
  }

  // Changes as they are made every day: nothing comes of them.
  void tell_commits(std::int64_t t) {
    StormWord word{EventKind::config_commit, {}};
    word.change = static_cast<std::uint32_t>(100'000 + voice_.rng().below(900'000));
    const std::uint64_t devices = 1 + voice_.rng().below(6);
    for (std::uint64_t i = 0; i < devices; ++i) {
      const NodeId device = pick(context_.switches);
      word.entity = entity(device);
      if (!is_dark(device, t)) voice_.log(device, t + ns_between(0, 30), word);
    }
  }

  void tell_pressure(std::int64_t t) {
    const CableId cable = quiet_trunk(t);
    if (!cable.valid()) return tell_info(t);
    const LinkId out = model::forward(cable);
    const EventKind kind = voice_.chance(0.5) ? EventKind::pfc_pauses : EventKind::ecn_marks;
    voice_.sample(fabric_.from(out), t, {kind, port_of(out), voice_.between(1, 9)});
  }

  void tell_nic_error(std::int64_t t) {
    if (context_.nics.empty()) return tell_info(t);
    const NodeId nic = pick(context_.nics);
    const NodeId host = fabric_.host_of(nic);
    if (!is_quiet(nic, t) || !is_quiet(host, t)) return tell_info(t);
    voice_.agent_sample(host, t, {EventKind::nic_errors, entity(nic), 1});
  }

  // A host without processor time answers late, which can look like loss.
  void tell_stall(std::int64_t t) {
    if (starved_.empty()) return tell_info(t);
    const NodeId host = pick(starved_);
    const auto nics = fabric_.nics_of(host);
    if (nics.empty() || !is_quiet(host, t)) return tell_info(t);
    voice_.probe(t, {EventKind::probe_latency, entity(host), voice_.between(2e4, 2e5)});
    const NodeId nic = nics[voice_.rng().below(nics.size())];
    if (fabric_.out(nic).empty() || !is_quiet(nic, t) || !voice_.chance(0.3)) return;
    const LinkId up = fabric_.out(nic).front();
    if (fabric_.on_wire(up) && is_quiet(model::cable_of(up), t))
      voice_.probe(
          t, {EventKind::probe_loss, entity(model::reverse(up)), voice_.between(0.005, 0.05)});
  }

  const StormContext& context_;
  const model::Fabric& fabric_;
  const StormOptions& options_;
  const std::vector<StormFault>& faults_;
  StormScripts& scripts_;
  StormVoice& voice_;
  std::vector<std::vector<std::uint32_t>> of_node_, of_circuit_;
  std::vector<bool> has_blipped_;
  std::vector<std::pair<NodeId, std::uint32_t>> chronic_;
  std::vector<NodeId> starved_;
};

}  // namespace

void tell_background(const StormContext& context, const StormOptions& options,
                     const std::vector<StormFault>& faults, StormScripts& scripts,
                     StormVoice& voice, std::uint64_t lines) {
  Background(context, options, faults, scripts, voice).tell(lines);
}

}  // namespace weft::adapt::sim
