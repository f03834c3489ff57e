#include "model/events/event_kind.hpp"

#include <algorithm>
#include <array>

namespace weft::model {
namespace {

constexpr std::array<std::string_view, event_kind_count> event_kinds{"info",
                                                                     "link_down",
                                                                     "link_up",
                                                                     "interface_down",
                                                                     "link_slow",
                                                                     "link_speed_ok",
                                                                     "crc_errors",
                                                                     "discards",
                                                                     "prefec_ber",
                                                                     "rx_power",
                                                                     "tx_power",
                                                                     "optic_temperature",
                                                                     "bgp_down",
                                                                     "bgp_up",
                                                                     "bfd_down",
                                                                     "bfd_up",
                                                                     "probe_loss",
                                                                     "probe_latency",
                                                                     "probe_corruption",
                                                                     "probe_duplicates",
                                                                     "probe_delay",
                                                                     "probe_route",
                                                                     "probe_host",
                                                                     "card_fail",
                                                                     "card_ok",
                                                                     "asic_error",
                                                                     "memory_error",
                                                                     "storage_error",
                                                                     "cpu_high",
                                                                     "temperature_high",
                                                                     "fan_fail",
                                                                     "psu_fail",
                                                                     "process_crash",
                                                                     "process_start",
                                                                     "device_boot",
                                                                     "device_unreachable",
                                                                     "oob_unreachable",
                                                                     "power_lost",
                                                                     "power_ok",
                                                                     "nic_down",
                                                                     "nic_up",
                                                                     "nic_errors",
                                                                     "host_boot",
                                                                     "agent_silent",
                                                                     "config_commit",
                                                                     "config_error",
                                                                     "pfc_pauses",
                                                                     "ecn_marks",
                                                                     "queue_depth",
                                                                     "drain",
                                                                     "undrain",
                                                                     "maintenance",
                                                                     "job_slow",
                                                                     "job_hang",
                                                                     "corruption",
                                                                     "capacity_low",
                                                                     "capacity_ok"};
static_assert(static_cast<std::size_t>(EventKind::capacity_ok) + 1 == event_kind_count);

constexpr std::array<std::string_view, source_count> sources{
    "syslog",    "snmp",       "gnmi",         "probe", "agent",     "oob",
    "colltrace", "prometheus", "alertmanager", "twin",  "controller"};
static_assert(static_cast<std::size_t>(Source::controller) + 1 == source_count);

template <class Value, class Names>
std::optional<Value> find(const Names& names, std::string_view name) {
  const auto at = std::ranges::find(names, name);
  if (at == names.end()) return std::nullopt;
  return static_cast<Value>(at - names.begin());
}

}  // namespace

std::string_view to_text(EventKind kind) { return event_kinds[static_cast<std::size_t>(kind)]; }
std::optional<EventKind> event_kind(std::string_view name) {
  return find<EventKind>(event_kinds, name);
}
std::vector<std::string> event_kind_names() { return {event_kinds.begin(), event_kinds.end()}; }

EventKind clears(EventKind kind) {
  using enum EventKind;
  switch (kind) {
    case link_down:
    case interface_down:
      return link_up;
    case link_slow:
      return link_speed_ok;
    case bgp_down:
      return bgp_up;
    case bfd_down:
      return bfd_up;
    case card_fail:
      return card_ok;
    case process_crash:
      return process_start;
    case power_lost:
      return power_ok;
    case nic_down:
      return nic_up;
    case capacity_low:
      return capacity_ok;
    default:
      return info;
  }
}

std::string_view to_text(Source source) { return sources[static_cast<std::size_t>(source)]; }
std::optional<Source> source(std::string_view name) { return find<Source>(sources, name); }
std::vector<std::string> source_names() { return {sources.begin(), sources.end()}; }

}  // namespace weft::model
