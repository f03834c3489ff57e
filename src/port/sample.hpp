// A value that somebody measured on a device: what counters, sensors and sessions say when asked.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/timestamp.hpp"

namespace weft::port {

// Counters grow until they wrap or the device starts again; the others are as they are just now.
enum class Metric : std::uint8_t {
  // Of an interface.
  admin_up,         // 0 or 1
  oper_up,          // 0 or 1
  carrier_changes,  // how often oper_up changed
  in_octets,
  out_octets,
  in_packets,
  in_errors,  // bad frames, of which CRC errors are most
  in_discards,
  out_discards,
  pfc_pauses_in,   // by traffic class
  pfc_pauses_out,  // by traffic class
  ecn_marked,      // by traffic class, packets
  queue_bytes,     // by traffic class
  queue_drops,     // by traffic class, packets; out_discards has them too
  // Of its optic, by lane.
  rx_power_dbm,
  tx_power_dbm,
  optic_celsius,
  prefec_ber,
  // Of a session: `component` is the interface or the address of the other end.
  bgp_established,  // 0 or 1
  bfd_up,           // 0 or 1
  // Of a device or one of its parts, by index.
  celsius,
  fan_ok,     // 0 or 1
  psu_ok,     // 0 or 1
  card_ok,    // 0 or 1
  cpu_share,  // 0 to 1
  memory_share,
  storage_share,
  asic_errors,
  memory_errors,  // that were corrected, or not
  storage_errors,
  uptime_s,
  reachable,  // 0 or 1: whether the device answered at all
  // Of a host and its NICs.
  pcie_errors,   // as the bus reports them (AER), corrected or not
  rdma_errors,   // retries, time-outs and bad packets that a NIC's transport counted
  load_per_cpu,  // tasks that run or want to, over processors
  speed_bps,     // that the link of an interface came up with
};
inline constexpr std::size_t metric_count = 36;
std::string_view to_text(Metric metric);
std::optional<Metric> metric(std::string_view name);
bool is_counter(Metric metric);

struct Sample {
  Timestamp t;
  std::string device;     // as the feed calls it: a name of the fabric or an address
  std::string component;  // interface, sensor, fan, supply, neighbour; "": the device
  Metric metric = Metric::reachable;
  std::uint32_t index = 0;  // traffic class or lane
  double value = 0;
};

// {"t", "device", "component", "metric", "index", "value"} in one line, without its end; the value
// reads back as the same, and is null where it is no finite number.
std::string to_json(const Sample& sample);

}  // namespace weft::port
