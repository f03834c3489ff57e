#include "port/sample.hpp"

#include <algorithm>
#include <cmath>

#include "base/json_text.hpp"

namespace weft::port {
namespace {

constexpr std::array<std::string_view, metric_count> names{
    "admin_up",       "oper_up",       "carrier_changes", "in_octets",       "out_octets",
    "in_packets",     "in_errors",     "in_discards",     "out_discards",    "pfc_pauses_in",
    "pfc_pauses_out", "ecn_marked",    "queue_bytes",     "queue_drops",     "rx_power_dbm",
    "tx_power_dbm",   "optic_celsius", "prefec_ber",      "bgp_established", "bfd_up",
    "celsius",        "fan_ok",        "psu_ok",          "card_ok",         "cpu_share",
    "memory_share",   "storage_share", "asic_errors",     "memory_errors",   "storage_errors",
    "uptime_s",       "reachable",     "pcie_errors",     "rdma_errors",     "load_per_cpu",
    "speed_bps"};
static_assert(static_cast<std::size_t>(Metric::speed_bps) + 1 == metric_count);

}  // namespace

std::string_view to_text(Metric metric) { return names[static_cast<std::size_t>(metric)]; }

std::optional<Metric> metric(std::string_view name) {
  const auto* const at = std::ranges::find(names, name);
  if (at == names.end()) return std::nullopt;
  return static_cast<Metric>(at - names.begin());
}

bool is_counter(Metric metric) {
  switch (metric) {
    case Metric::carrier_changes:
    case Metric::in_octets:
    case Metric::out_octets:
    case Metric::in_packets:
    case Metric::in_errors:
    case Metric::in_discards:
    case Metric::out_discards:
    case Metric::pfc_pauses_in:
    case Metric::pfc_pauses_out:
    case Metric::ecn_marked:
    case Metric::queue_drops:
    case Metric::asic_errors:
    case Metric::memory_errors:
    case Metric::storage_errors:
    case Metric::pcie_errors:
    case Metric::rdma_errors:
      return true;
    default:
      return false;
  }
}

std::string to_json(const Sample& sample) {
  return JsonObject()
      .add("t", sample.t)
      .add("device", sample.device)
      .add("component", sample.component)
      .add("metric", sample.metric)
      .add("index", sample.index)
      .add("value", sample.value)
      .text();
}

}  // namespace weft::port
