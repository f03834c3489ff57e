#include "observe/telemetry/prometheus.hpp"

namespace weft::observe::telemetry {

namespace {

// Names and labels as their exporters' public sources and test data have them.
constexpr std::string_view prometheus_yaml = R"yaml(
metrics:
  # node_exporter, collectors netclass, netdev, ethtool (as mlx5 counts), infiniband, hwmon, stat.
  - {name: node_network_up, metric: oper_up, component: "{device}"}
  - {name: node_network_carrier_changes_total, metric: carrier_changes, component: "{device}"}
  - {name: node_network_receive_bytes_total, metric: in_octets, component: "{device}"}
  - {name: node_network_transmit_bytes_total, metric: out_octets, component: "{device}"}
  - {name: node_network_receive_packets_total, metric: in_packets, component: "{device}"}
  - {name: node_network_receive_errs_total, metric: in_errors, component: "{device}"}
  # Not node_network_receive_drop_total: Linux counts there what merely has no listener.
  - {name: node_network_transmit_drop_total, metric: out_discards, component: "{device}"}
  - {name: node_ethtool_received_discards_phy, metric: in_discards, component: "{device}"}
  - {name: node_ethtool_received_prio0_pause, metric: pfc_pauses_in, component: "{device}"}
  - {name: node_ethtool_received_prio3_pause, metric: pfc_pauses_in, component: "{device}",
     index: "3"}
  - {name: node_ethtool_received_prio4_pause, metric: pfc_pauses_in, component: "{device}",
     index: "4"}
  - {name: node_ethtool_transmitted_prio0_pause, metric: pfc_pauses_out, component: "{device}"}
  - {name: node_ethtool_transmitted_prio3_pause, metric: pfc_pauses_out, component: "{device}",
     index: "3"}
  - {name: node_ethtool_transmitted_prio4_pause, metric: pfc_pauses_out, component: "{device}",
     index: "4"}
  - {name: node_infiniband_state_id, metric: oper_up, component: "{device}", equals: 4}
  # Each is a down and an up.
  - {name: node_infiniband_link_downed_total, metric: carrier_changes, component: "{device}",
     factor: 2}
  - {name: node_infiniband_port_packets_received_total, metric: in_packets, component: "{device}"}
  - {name: node_infiniband_port_errors_received_total, metric: in_errors, component: "{device}"}
  - {name: node_infiniband_port_discards_transmitted_total, metric: out_discards,
     component: "{device}"}
  - {name: node_hwmon_temp_celsius, metric: celsius, component: "{chip}/{sensor}"}
  - {name: node_boot_time_seconds, metric: uptime_s, since: true}
  # A processor that waits for a disk is idle. All processors together, as the agent has it.
  - {name: node_cpu_seconds_total, metric: cpu_share, share: left, growth: true,
     where: {mode: idle}}
  - {name: node_cpu_seconds_total, metric: cpu_share, share: left, growth: true,
     where: {mode: iowait}}
  - {name: node_cpu_seconds_total, metric: cpu_share, share: used, growth: true,
     where: {mode: "*"}}
  - {name: node_memory_MemTotal_bytes, metric: memory_share, share: total}
  - {name: node_memory_MemAvailable_bytes, metric: memory_share, share: left}
  # What users may still write, of disks; images are full by nature, others live in memory.
  - {name: node_filesystem_size_bytes, metric: storage_share, component: "{mountpoint}",
     share: total, where: {fstype: "ext*"}}
  - {name: node_filesystem_avail_bytes, metric: storage_share, component: "{mountpoint}",
     share: left, where: {fstype: "ext*"}}
  - {name: node_filesystem_size_bytes, metric: storage_share, component: "{mountpoint}",
     share: total, where: {fstype: xfs}}
  - {name: node_filesystem_avail_bytes, metric: storage_share, component: "{mountpoint}",
     share: left, where: {fstype: xfs}}
  - {name: node_filesystem_size_bytes, metric: storage_share, component: "{mountpoint}",
     share: total, where: {fstype: btrfs}}
  - {name: node_filesystem_avail_bytes, metric: storage_share, component: "{mountpoint}",
     share: left, where: {fstype: btrfs}}
  - {name: node_filesystem_size_bytes, metric: storage_share, component: "{mountpoint}",
     share: total, where: {fstype: zfs}}
  - {name: node_filesystem_avail_bytes, metric: storage_share, component: "{mountpoint}",
     share: left, where: {fstype: zfs}}

  # snmp_exporter, modules if_mib and system: columns by their MIB names; a target is a device.
  - {name: ifAdminStatus, metric: admin_up, component: "{ifName}", equals: 1}
  - {name: ifOperStatus, metric: oper_up, component: "{ifName}", equals: 1}
  - {name: ifHCInOctets, metric: in_octets, component: "{ifName}"}
  - {name: ifHCOutOctets, metric: out_octets, component: "{ifName}"}
  - {name: ifHCInUcastPkts, metric: in_packets, component: "{ifName}"}
  - {name: ifInErrors, metric: in_errors, component: "{ifName}"}
  - {name: ifInDiscards, metric: in_discards, component: "{ifName}"}
  - {name: ifOutDiscards, metric: out_discards, component: "{ifName}"}
  - {name: bgpPeerState, metric: bgp_established, component: "{bgpPeerRemoteAddr}", equals: 6}
  - {name: sysUpTime, metric: uptime_s, factor: 0.01}

  # sonic-exporter (vinted) names an interface "device", sonic_exporter (STORDIS) "interface".
  - {name: sonic_interface_admin_status, metric: admin_up, component: "{interface}",
     where: {interface: "*"}}
  - {name: sonic_interface_admin_status, metric: admin_up, component: "{device}"}
  - {name: sonic_interface_operational_status, metric: oper_up, component: "{interface}",
     where: {interface: "*"}}
  - {name: sonic_interface_operational_status, metric: oper_up, component: "{device}"}
  - {name: sonic_interface_received_bytes_total, metric: in_octets, component: "{interface}"}
  - {name: sonic_interface_transmitted_bytes_total, metric: out_octets, component: "{interface}"}
  - {name: sonic_interface_received_packets_total, metric: in_packets, component: "{interface}",
     where: {delivery_mode: unicast}}
  - {name: sonic_interface_receive_error_input_packets_total, metric: in_errors,
     component: "{interface}", where: {cause: error}}
  - {name: sonic_interface_receive_error_input_packets_total, metric: in_discards,
     component: "{interface}", where: {cause: discard}}
  - {name: sonic_interface_receive_optic_power_dbm, metric: rx_power_dbm,
     component: "{interface}", index: "{optic_unit}"}
  - {name: sonic_interface_transmit_optic_power_dbm, metric: tx_power_dbm,
     component: "{interface}", index: "{optic_unit}"}
  - {name: sonic_interface_optic_celsius, metric: optic_celsius, component: "{interface}"}

  # gnmic's prometheus output of OpenConfig paths, with its default names.
  - {name: interfaces_interface_state_counters_in_octets, metric: in_octets, device: "{source}",
     component: "{interface_name}"}
  - {name: interfaces_interface_state_counters_out_octets, metric: out_octets,
     device: "{source}", component: "{interface_name}"}
  - {name: interfaces_interface_state_counters_in_unicast_pkts, metric: in_packets,
     device: "{source}", component: "{interface_name}"}
  - {name: interfaces_interface_state_counters_in_errors, metric: in_errors, device: "{source}",
     component: "{interface_name}"}
  - {name: interfaces_interface_state_counters_in_discards, metric: in_discards,
     device: "{source}", component: "{interface_name}"}
  - {name: interfaces_interface_state_counters_out_discards, metric: out_discards,
     device: "{source}", component: "{interface_name}"}
  - {name: gnmic_target_up, metric: reachable, device: "{name}"}
)yaml";

}  // namespace

std::string_view builtin_prometheus_text() { return prometheus_yaml; }

}  // namespace weft::observe::telemetry
