#include "adapt/gnmi/mapping.hpp"

#include <algorithm>
#include <array>

namespace weft::adapt::gnmi {
namespace {

using enum port::Metric;
using enum Reading;

// Paths of the OpenConfig models (release 2024) and, under qos .../pfc, of SONiC's extension.
constexpr std::array rows{
    Row{"bfd/interfaces/interface/peers/peer/state/session-state", up, bfd_up, "id", ""},
    Row{"components/component/cpu/utilization/state/instant", percent, cpu_share, "name", ""},
    Row{"components/component/state/memory/available", share_whole, memory_share, "name", ""},
    Row{"components/component/state/memory/utilized", share_used, memory_share, "name", ""},
    Row{"components/component/state/oper-status", part_status, card_ok, "name", ""},
    Row{"components/component/state/temperature/instant", part_celsius, celsius, "name", ""},
    Row{"components/component/state/type", part_type, celsius, "name", ""},
    Row{"components/component/transceiver/physical-channels/channel/state/input-power/instant",
        decibel_milliwatt, rx_power_dbm, "name", "index"},
    Row{"components/component/transceiver/physical-channels/channel/state/output-power/instant",
        decibel_milliwatt, tx_power_dbm, "name", "index"},
    Row{"components/component/transceiver/state/pre-fec-ber/instant", error_ratio, prefec_ber,
        "name", "", 1, true},
    Row{"interfaces/interface/ethernet/state/counters/in-crc-errors", count, in_errors, "name", "",
        2, true},
    Row{"interfaces/interface/ethernet/state/pre-fec-ber/instant", error_ratio, prefec_ber, "name",
        "", 0, true},
    Row{"interfaces/interface/state/admin-status", up, admin_up, "name", ""},
    Row{"interfaces/interface/state/counters/carrier-transitions", count, carrier_changes, "name",
        ""},
    Row{"interfaces/interface/state/counters/in-discards", count, in_discards, "name", ""},
    Row{"interfaces/interface/state/counters/in-errors", count, in_errors, "name", "", 0, true},
    Row{"interfaces/interface/state/counters/in-fcs-errors", count, in_errors, "name", "", 1, true},
    Row{"interfaces/interface/state/counters/in-octets", count, in_octets, "name", ""},
    Row{"interfaces/interface/state/counters/in-pkts", count, in_packets, "name", ""},
    Row{"interfaces/interface/state/counters/out-discards", count, out_discards, "name", ""},
    Row{"interfaces/interface/state/counters/out-octets", count, out_octets, "name", ""},
    Row{"interfaces/interface/state/oper-status", up, oper_up, "name", ""},
    Row{"interfaces/interface/state/transceiver", optic_name, celsius, "name", ""},
    Row{"network-instances/network-instance/protocols/protocol/bgp/neighbors/neighbor/state/"
        "session-state",
        established, bgp_established, "neighbor-address", ""},
    Row{"qos/interfaces/interface/output/queues/queue/state/avg-queue-len", count, queue_bytes,
        "interface-id", "name", 0, true},
    Row{"qos/interfaces/interface/output/queues/queue/state/dropped-pkts", count, queue_drops,
        "interface-id", "name"},
    Row{"qos/interfaces/interface/output/queues/queue/state/ecn-marked-pkts", count, ecn_marked,
        "interface-id", "name"},
    Row{"qos/interfaces/interface/output/queues/queue/state/max-queue-len", count, queue_bytes,
        "interface-id", "name", 1, true},
    Row{"qos/interfaces/interface/pfc/pfc-priorities/pfc-priority/state/statistics/pause-frames-rx",
        count, pfc_pauses_in, "interface-id", "dot1p"},
    Row{"qos/interfaces/interface/pfc/pfc-priorities/pfc-priority/state/statistics/pause-frames-tx",
        count, pfc_pauses_out, "interface-id", "dot1p"},
    Row{"system/cpus/cpu/state/total/instant", percent_of_all, cpu_share, "", "index"},
    Row{"system/memory/state/counters/total-ecc-errors", count, memory_errors, "", ""},
    Row{"system/memory/state/physical", share_whole, memory_share, "", ""},
    Row{"system/memory/state/used", share_used, memory_share, "", ""},
    Row{"system/mount-points/mount-point/state/size", share_whole, storage_share, "name", ""},
    Row{"system/mount-points/mount-point/state/utilized", share_used, storage_share, "name", ""},
    Row{"system/state/boot-time", boot_time, uptime_s, "", "", 1, true},
    Row{"system/state/up-time", nanoseconds, uptime_s, "", "", 0, true},
};
static_assert(std::ranges::is_sorted(rows, {}, &Row::path));

struct SaiRow {
  std::string_view name;
  port::Metric metric;
};
constexpr std::array sai_rows{
    SaiRow{"SAI_PORT_STAT_IF_IN_DISCARDS", in_discards},
    SaiRow{"SAI_PORT_STAT_IF_IN_ERRORS", in_errors},
    SaiRow{"SAI_PORT_STAT_IF_IN_OCTETS", in_octets},
    SaiRow{"SAI_PORT_STAT_IF_OUT_DISCARDS", out_discards},
    SaiRow{"SAI_PORT_STAT_IF_OUT_OCTETS", out_octets},
};

}  // namespace

std::span<const Row> mapping() { return rows; }

const Row* find_row(std::string_view path) {
  const auto* const at = std::ranges::lower_bound(rows, path, {}, &Row::path);
  return at != rows.end() && at->path == path ? at : nullptr;
}

SaiField sai_field(std::string_view name) {
  for (const SaiRow& row : sai_rows)
    if (row.name == name) return {row.metric, 0, true};
  constexpr std::string_view pfc = "SAI_PORT_STAT_PFC_";
  if (!name.starts_with(pfc) || name.size() < pfc.size() + 1) return {oper_up};
  const char priority = name[pfc.size()];
  const std::string_view rest = name.substr(pfc.size() + 1);
  if (priority < '0' || priority > '7') return {oper_up};
  const auto index = static_cast<std::uint32_t>(priority - '0');
  if (rest == "_RX_PKTS") return {pfc_pauses_in, index, true};
  if (rest == "_TX_PKTS") return {pfc_pauses_out, index, true};
  return {oper_up};
}

}  // namespace weft::adapt::gnmi
