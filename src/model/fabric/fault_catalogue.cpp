#include "model/fabric/fault_catalogue.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.hpp"

namespace weft::model {
namespace {

using enum FaultKind;
using Effect = FaultEffect;
using enum FaultEffect::Measure;
using enum FaultEffect::Spread;

constexpr std::uint8_t lab_and_world = by_lab | by_world;
constexpr std::uint8_t lab_and_scenario = by_scenario | by_lab | by_world;
constexpr std::uint8_t sim = by_storm | by_rehearsal | by_world;
constexpr Effect unchanged{};
constexpr Effect is_down{Health::down, none, node};
constexpr Effect drains{Health::draining, none, node};

constexpr std::string_view hpn_link = "HPN (SIGCOMM 2024): 0.057 % of NIC-ToR links fail a month";
constexpr std::string_view hpn_tor = "HPN (SIGCOMM 2024): 0.051 % of ToRs fail a month";
constexpr std::string_view llama_nic = "Llama 3 (2024): 7 NICs of 16,384 in 54 days";
constexpr std::string_view llama_host =
    "Llama 3 (2024): 41 of 2,048 hosts in 54 days: maintenance, power, chassis, CPU";
constexpr std::string_view assumed = "assumed";

constexpr std::array<FaultEntry, fault_kind_count> catalogue{{
    {link_down, "link_down", "link", lab_and_scenario | sim, is_down, "no carrier at either end",
     "link_down bgp_down bfd_down interface_down",
     "both ends after 5-300 ms, their sessions 20-400 ms later, polls at their next turn",
     "the carrier is lost at both ends", "cable", 0.00057, hpn_link},
    {dead_link, "dead_link", "link", lab_and_world, unchanged,
     "nothing passes either way, the carrier stays", "bgp_down bfd_down probe_loss",
     "sessions at their hold time or BFD's; probes within seconds",
     "all frames are lost, the carrier stays up", "cable", 0, ""},
    {link_lossy,
     "link_lossy",
     "link",
     lab_and_scenario | by_rehearsal,
     {Health::up, loss, node},
     "a share of the packets is lost, carrier up",
     "probe_loss crc_errors",
     "probes after 3 s + 0.02 s / loss; CRC errors sometimes",
     "frames vanish silently",
     "cable",
     0.003,
     assumed},
    {link_degraded,
     "link_degraded",
     "link",
     lab_and_scenario,
     {Health::up, factor, node},
     "a share of the rate is left",
     "link_slow queue_depth ecn_marks probe_latency",
     "agents within a second where ports come up slower, then every 10 s; the rest when loaded",
     "the link is slower",
     "cable",
     0,
     ""},
    {link_drain, "link_drain", "link", by_scenario, drains,
     "carries what cannot go elsewhere, attracts nothing new", "drain", "at once", "", "", 0, ""},
    {port_flap, "port_flap", "link", by_lab | sim, unchanged, "the carrier comes and goes",
     "link_down link_up bgp_down bgp_up", "each loss as for link_down", "the carrier flaps",
     "port_flap", 0.002, assumed},
    {optic, "optic", "link", sim, unchanged,
     "one end gets less and less light; in the end packets are lost",
     "rx_power prefec_ber crc_errors probe_loss",
     "light and bit errors every 10-40 s, probes from the eleventh sample on", "", "optic", 0.003,
     assumed},
    {corrupt, "corrupt", "link", lab_and_world, unchanged,
     "a share of the frames arrives with one bit flipped, which no frame check detects",
     "probe_corruption probe_loss", "the next windows of probes, as for loss",
     "one bit of a frame flips", "cable", 0, ""},
    {delay, "delay", "link", lab_and_world, unchanged, "a fixed time more", "probe_delay",
     "the next window of probes", "frames are delayed", "cable", 0, ""},
    {jitter, "jitter", "link", lab_and_world, unchanged, "a random time more, order kept",
     "probe_delay", "the next window of probes", "frames arrive with jitter, in order", "cable", 0,
     ""},
    {reorder, "reorder", "link", lab_and_world, unchanged, "a share of the frames is overtaken", "",
     "", "frames are reordered", "cable", 0, ""},
    {duplicate, "duplicate", "link", lab_and_world, unchanged, "a share of the frames comes twice",
     "probe_duplicates", "the next windows of probes, as for loss", "frames are duplicated",
     "cable", 0, ""},
    {ecn_mark, "ecn_mark", "link switch", by_lab, unchanged, "ECT packets become CE", "ecn_marks",
     "counters at their next turn", "ECT packets become CE", "congestion", 0, ""},
    {switch_down, "switch_down", "switch", lab_and_scenario | sim, is_down,
     "all of its cables lose carrier", "link_down bgp_down device_unreachable probe_host",
     "neighbours as for link_down; the switch itself falls silent, polls fail",
     "a whole switch loses power", "switch rack_switch", 0.00051, hpn_tor},
    {switch_lossy,
     "switch_lossy",
     "switch",
     lab_and_scenario,
     {Health::up, loss, cables},
     "a share of the packets is lost on all of its cables",
     "probe_loss asic_error",
     "probes as for link_lossy",
     "frames vanish silently",
     "switch rack_switch",
     0,
     ""},
    {switch_degraded,
     "switch_degraded",
     "switch",
     by_scenario,
     {Health::up, factor, cables},
     "a share of the rate of all of its cables is left",
     "queue_depth ecn_marks probe_latency",
     "when loaded",
     "",
     "switch rack_switch",
     0,
     ""},
    {switch_drain, "switch_drain", "switch", by_scenario, drains,
     "carries what cannot go elsewhere, attracts nothing new", "drain", "at once", "", "", 0, ""},
    {switch_part, "switch_part", "switch", by_none, unchanged,
     "many of a switch's ports fail at once, not all", "link_down asic_error", "within seconds", "",
     "switch_part", 0, ""},
    {line_card, "line_card", "card", sim, unchanged, "its ports lose carrier",
     "card_fail link_down bgp_down", "the card and the neighbours, as for link_down", "",
     "line_card", 0.001, assumed},
    {platform, "platform", "switch", by_none, unchanged,
     "a power supply, fan, memory or storage fails; it forwards on",
     "psu_fail fan_fail temperature_high memory_error storage_error", "at once", "", "platform", 0,
     ""},
    {control_plane, "control_plane", "switch", sim, unchanged,
     "its sessions time out, forwarding goes on", "bgp_down process_crash cpu_high",
     "neighbours after 6-9 s, the process itself at once", "", "control_plane", 0.01, assumed},
    {daemon_kill, "daemon_kill", "switch", lab_and_world, unchanged, "SIGKILL of a routing daemon",
     "bgp_down process_crash", "bgpd: its sessions close at once", "a routing daemon crashes",
     "control_plane", 0, ""},
    {daemon_stop, "daemon_stop", "switch", lab_and_world, unchanged,
     "SIGTERM of a routing daemon: it notifies its neighbours", "bgp_down", "at once",
     "a routing daemon is stopped gracefully", "control_plane", 0, ""},
    {daemon_hang, "daemon_hang", "switch", lab_and_world, unchanged, "SIGSTOP of a routing daemon",
     "bgp_down", "at the neighbours' hold time", "a routing daemon hangs", "control_plane", 0, ""},
    {blackhole, "blackhole", "switch", lab_and_world, unchanged,
     "a route drops what it should forward", "probe_route",
     "the next window of probes, where at least four flows take that route",
     "a route drops the traffic it should forward", "control_plane", 0, ""},
    {icmp_ratelimit, "icmp_ratelimit", "switch host", lab_and_world, unchanged,
     "traceroute is answered sparingly; no traffic suffers", "", "", "ICMP errors are rate-limited",
     "", 0, ""},
    {misconfiguration, "misconfiguration", "switch", by_storm, unchanged,
     "a change takes links or sessions of several devices",
     "config_commit config_error bgp_down link_down", "seconds after the change", "",
     "misconfiguration", 0, ""},
    {congestion, "congestion", "switch", by_storm, unchanged, "its ports fill up",
     "queue_depth ecn_marks pfc_pauses", "counters at their next turn", "", "congestion", 0, ""},
    {nic_down, "nic_down", "nic", by_scenario | sim, is_down, "its cables lose carrier",
     "nic_down link_down", "the host at once, the switch as for link_down", "", "host_nic", 0.00024,
     llama_nic},
    {nic_lossy,
     "nic_lossy",
     "nic",
     by_scenario | by_world,
     {Health::up, loss, cables},
     "a share of the packets of its cables is lost",
     "nic_errors probe_loss",
     "probes as for link_lossy",
     "",
     "host_nic",
     0,
     ""},
    {nic_degraded,
     "nic_degraded",
     "nic",
     by_scenario,
     {Health::up, factor, cables},
     "a share of its rate is left",
     "queue_depth pfc_pauses",
     "when loaded",
     "",
     "host_nic",
     0,
     ""},
    {nic_slow_receiver,
     "nic_slow_receiver",
     "nic",
     by_scenario,
     {Health::up, factor, inward},
     "it takes in a share of the rate",
     "pfc_pauses queue_depth",
     "when loaded",
     "",
     "host_nic",
     0,
     ""},
    {nic_drain, "nic_drain", "nic", by_scenario, drains,
     "carries what cannot go elsewhere, attracts nothing new", "drain", "at once", "", "", 0, ""},
    {host_down,
     "host_down",
     "host",
     by_scenario | sim,
     {Health::down, none, with_parts},
     "a host with its NICs and GPUs",
     "link_down agent_silent probe_host host_boot",
     "the switch as for link_down, its agent's silence after three heartbeats",
     "",
     "host",
     0.011,
     llama_host},
    {host_slow,
     "host_slow",
     "host",
     by_scenario,
     {Health::up, slowdown, node},
     "all of its GPUs compute more slowly",
     "",
     "seen in collective traces alone",
     "",
     "host",
     0,
     ""},
    {gpu_slow,
     "gpu_slow",
     "gpu",
     by_scenario,
     {Health::up, slowdown, node},
     "a GPU computes more slowly",
     "",
     "seen in collective traces alone",
     "",
     "host",
     0,
     ""},
    {rack, "rack", "rack", by_none, unchanged, "every device of the rack is down",
     "link_down device_unreachable agent_silent probe_host", "within seconds", "", "rack", 0, ""},
    {power, "power", "rack", by_storm, unchanged, "a rack without power",
     "power_lost link_down device_unreachable oob_unreachable probe_host", "within seconds", "",
     "power", 0, ""},
    {zone, "zone", "zone", by_storm, unchanged, "every device of the zone is down",
     "link_down device_unreachable oob_unreachable power_lost", "within seconds", "", "zone", 0,
     ""},
}};

constexpr bool is_in_order() {
  for (std::size_t i = 0; i < catalogue.size(); ++i)
    if (static_cast<std::size_t>(catalogue[i].kind) != i) return false;
  return true;
}
static_assert(is_in_order());

// Names that kinds had in one of the tables before this one.
constexpr auto renamed = std::to_array<std::pair<std::string_view, FaultKind>>({
    {"loss", link_lossy},
    {"grey_loss", link_lossy},
    {"rate", link_degraded},
    {"flap", port_flap},
    {"cable", link_down},
    {"switch", switch_down},
    {"rack_switch", switch_down},
    {"host_nic", nic_down},
    {"host", host_down},
});

}  // namespace

std::span<const FaultEntry, fault_kind_count> fault_catalogue() { return catalogue; }

const FaultEntry& fault_entry(FaultKind kind) { return catalogue[static_cast<std::size_t>(kind)]; }

std::vector<std::string> fault_names(std::uint8_t makers) {
  std::vector<std::string> out;
  for (const FaultEntry& entry : catalogue)
    if (makers == by_none || (entry.makers & makers) != 0) out.emplace_back(entry.name);
  return out;
}

std::vector<std::string_view> fault_causes() {
  std::vector<std::string_view> out;
  for (const FaultEntry& entry : catalogue)
    for (const std::string_view cause : split(entry.cause, ' '))
      if (!cause.empty() && std::ranges::find(out, cause) == out.end()) out.push_back(cause);
  return out;
}

Result<FaultKind> find_fault(const Token& token) {
  const std::string_view name = trim(token.text);
  const auto* const at = std::ranges::find(catalogue, name, &FaultEntry::name);
  if (at != catalogue.end()) return at->kind;
  const std::vector<std::string> names = fault_names(by_none);
  return fail(Errc::unknown, token.where,
              fmt::format("unknown fault kind {}{}", quote(name), fault_hint(name, names)),
              fmt::format("one of {}", fmt::join(names, ", ")));
}

std::string fault_hint(std::string_view name, std::span<const std::string> known) {
  for (const auto& [old, kind] : renamed)
    if (old == name && std::ranges::find(known, to_text(kind)) != known.end())
      return fmt::format(" (did you mean {}?)", quote(to_text(kind)));
  return did_you_mean(name, known);
}

}  // namespace weft::model
