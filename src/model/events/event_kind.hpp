// What can be said of a part of the fabric: the vocabulary of all feeds, of triage and of cases.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft::model {

// Kinds come in the pairs down and up, or are repeated while they last.
enum class EventKind : std::uint8_t {
  info,  // anything that says nothing about health
  // Ports and links.
  link_down,
  link_up,
  interface_down,  // found so by a poll, not told
  link_slow,       // runs at less than its rate; attribute "rate_share": how much of it is left
  link_speed_ok,   // at its rate again
  crc_errors,
  discards,
  // Optics.
  prefec_ber,
  rx_power,
  tx_power,
  optic_temperature,
  // Sessions.
  bgp_down,
  bgp_up,
  bfd_down,
  bfd_up,
  // Probes.
  probe_loss,
  probe_latency,
  probe_corruption,  // probes come with wrong payloads
  probe_duplicates,  // probes come twice
  probe_delay,       // probes take longer than any queue explains
  probe_route,       // a switch does not forward what goes to one host
  probe_host,        // a host answers nobody
  // Devices.
  card_fail,
  card_ok,
  asic_error,
  memory_error,
  storage_error,
  cpu_high,
  temperature_high,
  fan_fail,
  psu_fail,
  process_crash,
  process_start,
  device_boot,
  device_unreachable,  // by its management address
  oob_unreachable,     // by the console or power network
  power_lost,
  power_ok,
  // Hosts.
  nic_down,
  nic_up,
  nic_errors,
  host_boot,
  agent_silent,
  // Changes.
  config_commit,
  config_error,
  // Congestion.
  pfc_pauses,
  ecn_marks,
  queue_depth,
  // Orders: what somebody does to a part on purpose. "until" of a drain or of maintenance: it ends
  // by itself then.
  drain,
  undrain,
  maintenance,
  // Jobs.
  job_slow,    // a training job waits for it longer than for its like
  job_hang,    // a training job is stalled and waits for it
  corruption,  // a training job's replicas differ because of it
  // Capacity: what weft itself makes of several faults.
  capacity_low,  // a rack, or one plane of it, keeps less of its uplinks than the policy wants
  capacity_ok,
};
inline constexpr std::size_t event_kind_count = 57;

std::string_view to_text(EventKind kind);
std::optional<EventKind> event_kind(std::string_view name);
std::vector<std::string> event_kind_names();

// Of a pair: the kind that ends what `kind` began; info for those that end by themselves.
EventKind clears(EventKind kind);

// Where a record comes from.
enum class Source : std::uint8_t {
  syslog,
  snmp,
  gnmi,
  probe,
  agent,
  oob,
  colltrace,
  prometheus,
  alertmanager,
  twin,
  controller,  // weft itself: its orders
};
inline constexpr std::size_t source_count = 11;
std::string_view to_text(Source source);
std::optional<Source> source(std::string_view name);
std::vector<std::string> source_names();

}  // namespace weft::model
