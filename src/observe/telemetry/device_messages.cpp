// Messages that are only read: rows without a dialect, from what sources and system message guides
// print. "first" stands before the rows that storms write by, for meanings which those would take
// otherwise; the rest behind them. tests/observe/syslog_corpus_test.cpp measures both.
#include "observe/telemetry/catalogue.hpp"

namespace weft::observe::telemetry {
namespace {

constexpr std::string_view first_yaml = R"yaml(
messages:
  # Shut by somebody, not broken.
  - {mnemonic: SNMP_TRAP_LINK_DOWN, text: "ifIndex {*}, ifAdminStatus down(2), {*}"}
  - {mnemonic: BFDD_STATE_UP_TO_DOWN, text: "{*}Local diag: AdminDown {*}"}
  - {mnemonic: BFD-5-SESSION_STATE_DOWN, text: "{*} Reason: Admin{*}"}
  - {program: watchfrr, text: "{*} state -> down : initial connection attempt failed"}
  # A process that a signal of its own doing ended; TERM and KILL come from somebody.
  - {program: systemd, kind: process_crash, text: "{*}: Main process exited, code=dumped, {*}"}
  - {program: systemd, kind: process_crash,
     text: "{*}: Main process exited, code=killed, status=11/SEGV"}
  - {program: systemd, kind: process_crash,
     text: "{*}: Main process exited, code=killed, status=6/ABRT"}
  - {program: systemd, kind: process_crash,
     text: "{*}: Main process exited, code=killed, status=7/BUS"}
  - {program: systemd, kind: process_crash, text: "{*}: Failed with result 'core-dump'."}
)yaml";

constexpr std::string_view switches_yaml = R"yaml(
messages:
  # FRRouting: bgpd names no host where it knows none; bfdd writes only what it knows.
  - {mnemonic: ADJCHANGE, kind: bgp_up, text: "neighbor {peer} in vrf {*} Up"}
  - {mnemonic: ADJCHANGE, kind: bgp_down, text: "neighbor {peer} in vrf {*} Down {*}"}
  - {program: bfdd, text: "Session-Change: {*} reason:admin-down"}
  - {program: bfdd, kind: bfd_down,
     text: "Session-Change: [{*}peer:{peer} {*}ifname:{port}] up -> down{*}"}
  - {program: bfdd, kind: bfd_down, text: "Session-Change: [{*}peer:{peer} {*}] up -> down{*}"}
  - {program: bfdd, kind: bfd_up,
     text: "Session-Change: [{*}peer:{peer} {*}ifname:{port}] {*} -> up"}
  - {program: bfdd, kind: bfd_up, text: "Session-Change: [{*}peer:{peer} {*}] {*} -> up"}
  - {program: watchfrr, kind: process_crash, text: "{*} state -> unresponsive : {*}"}
  - {program: watchquagga, kind: process_crash, text: "{*} state -> down : {*}"}
  - {program: watchquagga, kind: process_start, text: "{*} state -> up : {*}"}
  - {program: bgpd, kind: process_crash, text: "Received signal {*}; aborting..."}
  - {program: zebra, kind: process_crash, text: "Received signal {*}; aborting..."}
  - {program: bfdd, kind: process_crash, text: "Received signal {*}; aborting..."}

  # Cumulus Linux: switchd, ptmd, smond.
  - {program: switchd, kind: link_down, text: "netlink.c:{*} libnl: {port}, family {*}, oper down"}
  - {program: switchd, kind: link_up, text: "netlink.c:{*} libnl: {port}, family {*}, oper up"}
  - {program: ptmd, kind: bfd_down, text: "{*}Session {*} down to peer {peer}, Reason {*}"}
  - {program: ptmd, kind: bfd_up, text: "{*}Session {*} up to peer {peer}"}
  - {program: ptmd, kind: bfd_down,
     text: "{*}Detect timeout on session {*} with peer {peer}, in state {*}"}
  - {program: cumulus-core, kind: process_crash, text: "{*}core files {*}"}
  - {program: smond, text: "{*}: state changed from {*} to OK"}
  - {program: smond, kind: fan_fail, text: "{*}Fan{*}: state changed from {*} to {*}"}
  - {program: smond, kind: fan_fail, text: "{*}Fan speed is at 0 RPM{*}"}
  - {program: smond, kind: psu_fail, text: "PSU{*}: state changed from {*} to BAD"}
  - {program: smond, kind: psu_fail, text: "PSU{*}: state changed from {*} to ABSENT"}
  - {program: smond, kind: temperature_high, text: "Temp{*}: state changed from {*} to {*}"}

  # SONiC: orchagent, the platform's daemons, supervisord.
  - {program: orchagent, kind: link_up,
     text: ":- updatePortOperStatus: Port {port} oper state set from {*} to up"}
  - {program: orchagent, kind: crc_errors,
     text: "{*}Port {port} oper error event: crc_rate occurred"}
  - {program: orchagent, kind: link_down,
     text: "{*}Port {port} oper error event: mac_local_fault occurred"}
  - {program: orchagent, kind: link_down,
     text: "{*}Port {port} oper error event: mac_remote_fault occurred"}
  - {program: orchagent, kind: pfc_pauses,
     text: "{*}PFC Watchdog detected PFC storm on port {port}, {*}"}
  - {program: orchagent, kind: bfd_down,
     text: "{*}BFD session state for {*}|{*}|{peer} changed from Up to Down"}
  - {program: orchagent, kind: bfd_up,
     text: "{*}BFD session state for {*}|{*}|{peer} changed from {*} to Up"}
  - {program: orchagent, kind: asic_error, text: "{*}[fatal] ASIC/SDK health event occurred at {*}"}
  - {program: orchagent, kind: asic_error,
     text: "{*}[warning] ASIC/SDK health event occurred at {*}"}
  - {program: psud, kind: psu_fail, text: "Power absence warning: {*}"}
  - {program: psud, kind: psu_fail, text: "PSU supplied power warning: {*}"}
  - {program: psud, kind: psu_fail, text: "Voltage warning: {*}"}
  - {program: psud, kind: temperature_high, text: "Temperature warning: {*}"}
  - {program: thermalctld, kind: fan_fail, text: "Insufficient number of working fans warning: {*}"}
  - {program: chassisd, kind: card_ok, text: "Module LINE-CARD{card} (Slot {*}) recovered on-line!"}
  - {program: chassisd, kind: card_fail,
     text: "Unexpected: Module LINE-CARD{card} (Slot {*}) lost midplane connectivity"}
  - {program: sensormond, kind: psu_fail, text: "High voltage warning: {*}"}
  - {program: sensormond, kind: psu_fail, text: "Low voltage warning: {*}"}
  - {program: pcied, kind: asic_error, text: "PCIe Device: {*} Not Found"}
  - {program: pcied, kind: asic_error, text: "PCIe device status check : FAILED{*}"}
  - {program: supervisord, kind: process_crash, text: "{*} exited: {*}not expected)"}
  - {program: supervisord, kind: process_start, text: "{*} success: {*} entered RUNNING state{*}"}

  # Arista EOS.
  - {mnemonic: BGP-5-ADJCHANGE, kind: bgp_up,
     text: "peer {peer} ({*}) old state {*} new state Established"}
  - {mnemonic: BGP-5-ADJCHANGE, kind: bgp_down,
     text: "peer {peer} ({*}) old state Established event {*}"}
  - {mnemonic: BFD-5-STATE_CHANGE, kind: bfd_down,
     text: "peer ({*}ip:{peer}, intf:{port}, {*}) changed state from Up to Down{*}"}
  - {mnemonic: BFD-5-STATE_CHANGE, kind: bfd_down,
     text: "peer ({*}ip:{peer}, intf:{port}) changed state from Up to Down{*}"}
  - {mnemonic: BFD-5-STATE_CHANGE, kind: bfd_down,
     text: "peer {peer} changed state from Up to Down{*}"}
  - {mnemonic: BFD-5-STATE_CHANGE, kind: bfd_up,
     text: "peer {peer} changed state from {*} to Up{*}"}
  - {mnemonic: ETH-4-ERRDISABLE, kind: link_down, text: "{*} error detected on {port}."}
  - {mnemonic: ETH-4-ERRDISABLE, kind: link_down, text: "{*} error detected on {port}"}
  - {mnemonic: PROCMGR-6-PROCESS_TERMINATED, kind: process_crash}
  - {mnemonic: "ENVMON-*-FAN_FAIL*", kind: fan_fail}
  - {mnemonic: "HARDWARE-*-FAN_FAIL*", kind: fan_fail}
  - {mnemonic: "ENVMON-*-OVERHEAT*", kind: temperature_high}
  - {mnemonic: "ENVMON-*-TEMPERATURE_ALERT*", kind: temperature_high}
  - {mnemonic: "HARDWARE-*-TEMPERATURE_ALERT*", kind: temperature_high}
  - {mnemonic: "PWRMGMT-*-INPUT_POWER_LOSS", kind: psu_fail}
  - {mnemonic: "PWRMGMT-*-POWER_SUPPLY_FAIL*", kind: psu_fail}
  - {mnemonic: "SAND-*-INTERRUPT_OCCURRED", kind: asic_error}
  - {mnemonic: "SAND-*-DDR_BIST_FAILED", kind: asic_error}
  - {mnemonic: "SAND-*-FABRICSERDES_LINK_FAILED", kind: asic_error}
  - {mnemonic: "HARDWARE-*-ERROR_DETECTED", kind: asic_error}
  - {mnemonic: "HARDWARE-*-DROP_COUNTER", kind: discards}
  - {mnemonic: "SAND-*-PFC_WATCHDOG_STUCK", kind: pfc_pauses, text: "{*} on {port} priority {*}"}
  - {mnemonic: "TRANSCEIVER-*-DOM_*", kind: rx_power, text: "{*}nterface {port} rxPower low {*}"}
  - {mnemonic: "TRANSCEIVER-*-DOM_*", kind: tx_power, text: "{*}nterface {port} txPower low {*}"}
  - {mnemonic: "TRANSCEIVER-*-DOM_*", kind: optic_temperature,
     text: "{*}nterface {port} temperature high {*}"}
)yaml";

constexpr std::string_view chassis_yaml = R"yaml(
messages:
  # Cisco NX-OS. Reasons that are no failure of this link stand first.
  - {mnemonic: "ETHPORT-*-IF_DOWN_ADMIN_DOWN"}
  - {mnemonic: "ETHPORT-*-IF_DOWN_PARENT_ADMIN_DOWN"}
  - {mnemonic: "ETHPORT-*-IF_DOWN_CFG_CHANGE"}
  - {mnemonic: "ETHPORT-*-IF_DOWN_INITIALIZING"}
  - {mnemonic: "ETHPORT-*-IF_DOWN_INACTIVE"}
  - {mnemonic: "ETHPORT-*-IF_DOWN_PORT_CHANNEL_MEMBERS_DOWN"}
  - {mnemonic: "ETHPORT-*-IF_DOWN_*", text: "Interface port-channel{*}"}
  - {mnemonic: "ETHPORT-*-IF_DOWN_*", kind: link_down, text: "Interface {port} is down{*}"}
  - {mnemonic: "ETHPORT-*-IF_UP", text: "Interface port-channel{*}"}
  - {mnemonic: "ETHPORT-*-IF_UP", kind: link_up, text: "Interface {port} is up{*}"}
  - {mnemonic: "ETHPORT-*-IF_XCVR_*", text: "{*}clear{*}"}
  - {mnemonic: "ETHPORT-*-IF_XCVR_*", kind: rx_power, text: "Interface {port}, {*}Low Rx Power {*}"}
  - {mnemonic: "ETHPORT-*-IF_XCVR_*", kind: tx_power, text: "Interface {port}, {*}Low Tx Power {*}"}
  - {mnemonic: "ETHPORT-*-IF_XCVR_*", kind: optic_temperature,
     text: "Interface {port}, {*}High Temperature {*}"}
  - {mnemonic: "ETH_PORT_CHANNEL-*-PORT_INDIVIDUAL_DOWN", kind: link_down,
     text: "individual port {port} is down"}
  - {mnemonic: "ETH_PORT_CHANNEL-*-PORT_DOWN", kind: link_down, text: "{*}: {port} is down"}
  - {mnemonic: "ETH_PORT_CHANNEL-*-PORT_UP", kind: link_up, text: "{*}: {port} is up"}
  - {mnemonic: "BFD-*-SESSION_STATE_UP", kind: bfd_up,
     text: "{*} to neighbor {peer} on interface {port} is up{*}"}
  - {mnemonic: BGP-5-ADJCHANGE, kind: bgp_up, text: "bgp-{*} neighbor {peer} Up{*}"}
  - {mnemonic: BGP-5-ADJCHANGE, kind: bgp_down, text: "bgp-{*} neighbor {peer} Down{*}"}
  # As IOS words it.
  - {mnemonic: BGP-5-ADJCHANGE, kind: bgp_up, text: "neighbor {peer} {*}Up"}
  - {mnemonic: BGP-5-ADJCHANGE, kind: bgp_up, text: "neighbor {peer} Up"}
  - {mnemonic: BGP-5-ADJCHANGE, kind: bgp_down, text: "neighbor {peer} {*}Down {*}"}
  - {mnemonic: "MODULE-*-MOD_DIAG_FAIL", kind: card_fail, text: "Module {card} ({*}"}
  - {mnemonic: "MODULE-*-MOD_*FAIL*", kind: card_fail, text: "Initialization of module {card} ({*}"}
  - {mnemonic: "MODULE-*-MOD_*FAIL*", kind: card_fail, text: "Module {card} ({*}"}
  - {mnemonic: "PLATFORM-*-MOD_REMOVE", kind: card_fail, text: "Module {card} removed{*}"}
  - {mnemonic: "PLATFORM-*-MOD_PWRDN", kind: card_fail, text: "Module {card} powered down{*}"}
  - {mnemonic: "PLATFORM-*-PS_FAIL", kind: psu_fail}
  - {mnemonic: "PLATFORM-*-PS_ABSENT", kind: psu_fail}
  - {mnemonic: "PLATFORM-*-PS_REMOVED", kind: psu_fail}
  - {mnemonic: "PLATFORM-*-PS_FANFAIL", kind: fan_fail}
  - {mnemonic: "PLATFORM-*-FAN_FAIL*", kind: fan_fail}
  - {mnemonic: "PLATFORM-*-FANMOD_FAN_FAIL", kind: fan_fail}
  - {mnemonic: "PLATFORM-*-MOD_TEMP*ALRM", kind: temperature_high}
  - {mnemonic: "PLATFORM-*-MOD_TEMPSHUTDOWN", kind: temperature_high}
  - {mnemonic: "NOHMS-*_FAN_FAIL", kind: fan_fail}
  - {mnemonic: "NOHMS-*_PS_FAIL", kind: psu_fail}
  - {mnemonic: "NOHMS-*_TEMP*ALRM", kind: temperature_high}
  - {mnemonic: "SYSMGR-*-SERVICE_CRASHED", kind: process_crash}
  - {mnemonic: "SYSMGR-*-SERVICE_TERMINATED", kind: process_crash}
  - {mnemonic: "SYSMGR-*-HAP_FAILURE_*", kind: process_crash}
  - {mnemonic: "EARL-*PARITY_ERROR", kind: memory_error}
  - {mnemonic: "KERN-*-SYSTEM_MSG", kind: memory_error, text: "{*}EDAC {*} UE {*}"}
  - {mnemonic: "KERN-*-SYSTEM_MSG", kind: storage_error, text: "{*}I/O error, dev {*}"}
  - {mnemonic: "TAHUSD-*-BUFFER_THRESHOLD_EXCEEDED", kind: queue_depth}
  - {mnemonic: "TAHUSD-*-PFCWD_QUEUE_SHUTDOWN", kind: pfc_pauses,
     text: "{*}interface {port} is shut{*}"}

  # Cisco IOS-XR.
  - {mnemonic: "PKT_INFRA-LINK-*-UPDOWN", kind: link_down,
     text: "Interface {port}, changed state to Down"}
  - {mnemonic: "PKT_INFRA-LINK-*-UPDOWN", kind: link_up,
     text: "Interface {port}, changed state to Up"}
  - {mnemonic: "PKT_INFRA-LINEPROTO-*-UPDOWN", kind: link_down,
     text: "Line protocol on Interface {port}, changed state to Down"}
  - {mnemonic: "PKT_INFRA-LINEPROTO-*-UPDOWN", kind: link_up,
     text: "Line protocol on Interface {port}, changed state to Up"}
  - {mnemonic: "PLATFORM-*-RX_FAULT", kind: link_down, text: "Interface {port}, Detected {*}"}
  - {mnemonic: "PLATFORM-*-SIGNAL", kind: link_down, text: "Interface {port}, Detected Signal {*}"}
  - {mnemonic: "ROUTING-BGP-*-ADJCHANGE", kind: bgp_up, text: "neighbor {peer} Up{*}"}
  - {mnemonic: "ROUTING-BGP-*-ADJCHANGE", kind: bgp_down, text: "neighbor {peer} Down{*}"}
  - {mnemonic: "L2-BFD-*-SESSION_STATE_DOWN", text: "{*} Reason: Admin{*}"}
  - {mnemonic: "L2-BFD-*-SESSION_STATE_DOWN", kind: bfd_down,
     text: "{*} to neighbor {peer} on interface {port} has gone down{*}"}
  - {mnemonic: "L2-BFD-*-SESSION_STATE_UP", kind: bfd_up,
     text: "{*} to neighbor {peer} on interface {port} is up{*}"}
  - {mnemonic: "L2-OPTICS-*", kind: rx_power, text: "Optics {port} rx power low{*}"}
  - {mnemonic: "PLATFORM-ENVMON-*-FAN_FAIL*", kind: fan_fail}
  - {mnemonic: "PLATFORM-ENVMON-*-FANTRAY_*", kind: fan_fail}
  - {mnemonic: "PLATFORM-ENVMON-*-PEM_FAIL*", kind: psu_fail}
  - {mnemonic: "PLATFORM-ENVMON-*-ENV_CONDITION_RAISED", kind: temperature_high,
     text: "{*}temperature{*}"}
  - {mnemonic: "PLATFORM-SHELFMGR-*-NODE_KERNEL_DUMP_EVENT", kind: card_fail}
  - {mnemonic: "PLATFORM-INV-*-NODE_STATE_CHANGE", kind: card_ok, text: "{*}state: IOS XR RUN"}
  - {mnemonic: "PLATFORM-INV-*-OIROUT", kind: card_fail}
  - {mnemonic: "OS-DUMPER-*-DUMP_REQUEST", kind: process_crash}
  - {mnemonic: "OS-SYSMGR-*-ERROR", kind: process_crash, text: "{*} exited, will be respawned{*}"}
  - {mnemonic: "MGBL-CONFIG-*-DB_COMMIT", kind: config_commit}

  # Junos.
  - {mnemonic: SNMP_TRAP_LINK_DOWN, kind: link_down,
     text: "{*}, ifAdminStatus up(1), {*}, ifName {port}"}
  - {mnemonic: BGP_CEASE_PREFIX_LIMIT_EXCEEDED, kind: bgp_down, text: "{peer} ({*}"}
  - {mnemonic: ESWD_BPDU_BLOCK_ERROR_DISABLED, kind: link_down, text: "{port}: {*}"}
  - {mnemonic: LACP_INTF_DOWN, kind: link_down,
     text: "{*}: Interface marked down{*} on member {port}"}
  - {mnemonic: "BFDD_TRAP_*_STATE_DOWN", kind: bfd_down,
     text: "{*}, interface: {port}, peer addr: {peer}"}
  - {mnemonic: "BFDD_TRAP_*_STATE_DOWN", kind: bfd_down, text: "{*}, peer addr: {peer}"}
  - {mnemonic: "BFDD_TRAP_*_STATE_UP", kind: bfd_up,
     text: "{*}, interface: {port}, peer addr: {peer}"}
  - {mnemonic: "BFDD_TRAP_*_STATE_UP", kind: bfd_up, text: "{*}, peer addr: {peer}"}
  - {mnemonic: BFDD_STATE_UP_TO_DOWN, kind: bfd_down, text: "BFD Session {peer} ({*}"}
  - {mnemonic: BFDD_STATE_DOWN_TO_UP, kind: bfd_up, text: "BFD Session {peer} ({*}"}
  - {mnemonic: CHASSISD_FRU_OFFLINE_NOTICE, text: "{*} cli command"}
  - {mnemonic: CHASSISD_FRU_OFFLINE_NOTICE, kind: card_fail, text: "Taking FPC {card} offline: {*}"}
  - {mnemonic: CHASSISD_FRU_OFFLINE_NOTICE, kind: psu_fail, text: "Taking PEM {*} offline: {*}"}
  - {mnemonic: CHASSISD_FRU_OFFLINE_NOTICE, kind: fan_fail, text: "Taking Fan {*} offline: {*}"}
  - {mnemonic: CHASSISD_FRU_ONLINE_NOTICE, kind: card_ok, text: "FPC {card} is online"}
  - {mnemonic: "CHASSISD_SNMP_TRAP*", kind: fan_fail,
     text: "SNMP trap generated: Fan/Blower {*}ailed {*}"}
  - {mnemonic: "CHASSISD_SNMP_TRAP*", kind: psu_fail,
     text: "SNMP trap generated: Power Supply {*}ailed {*}"}
  - {mnemonic: "CHASSISD_SNMP_TRAP*", kind: temperature_high,
     text: "SNMP trap generated: Over Temperature{*}"}
  - {mnemonic: CHASSISD_PEM_INPUT_BAD, kind: psu_fail}
  - {mnemonic: "CHASSISD_PEM_*VOLTAGE", kind: psu_fail}
  - {mnemonic: "CHASSISD_PSU_*", kind: psu_fail}
  - {mnemonic: "CHASSISD_POWER_SUPPLY_*FAIL*", kind: psu_fail}
  - {mnemonic: CHASSISD_BLOWERS_FAILURE, kind: fan_fail}
  - {mnemonic: "CHASSISD_FAN_*FAIL*", kind: fan_fail}
  - {mnemonic: "CHASSISD_OVER_TEMP*", kind: temperature_high}
  - {mnemonic: CHASSISD_HIGH_TEMP_CONDITION, kind: temperature_high}
  - {mnemonic: CHASSISD_POWER_CHECK, kind: card_fail}
  - {mnemonic: UI_CONFIGURATION_ERROR, kind: config_error}
  - {program: alarmd, kind: fan_fail, text: "Alarm set: {*}reason={*}Fan {*}"}
  - {program: alarmd, kind: psu_fail, text: "Alarm set: {*}reason=PEM {*}"}
  - {program: alarmd, kind: temperature_high, text: "Alarm set: {*}reason={*}emperature {*}"}
  - {program: alarmd, kind: card_fail, text: "Alarm set: {*}reason=FPC {*}Errors"}
  - {program: craftd, kind: temperature_high, text: "{*} alarm set, {*}emperature Hot"}
  - {program: craftd, kind: fan_fail, text: "{*} alarm set, {*}Fan {*}"}
  - {program: craftd, kind: psu_fail, text: "{*} alarm set, PEM {*}"}
  - {program: init, kind: process_crash, text: "{*} terminated by signal number {*} Core dumped!"}
  - {program: init, kind: process_start, text: "{*} (PID {*}) started"}
  - {program: dumpd, kind: process_crash, text: "Core and context for {*}"}
  - {program: fpc, kind: card_fail, text: "Cmerror Op Set: {*}FATAL{*}"}
  - {program: fpc, kind: crc_errors, text: "{*}CRC {*} on {port}"}
)yaml";

constexpr std::string_view hosts_yaml = R"yaml(
messages:
  # Network drivers: "DRIVER PCI-ADDRESS NAME: ...". On a switch the same lines are of its ports.
  - {program: kernel, kind: nic_down, text: "{*} {*} {nic}: NIC Link is Down"}
  - {program: kernel, kind: nic_up, text: "{*} {*} {nic}: igb: {*} NIC Link is Up{*}"}
  - {program: kernel, kind: nic_up, text: "{*} {*} {nic}: NIC Link is Up{*}"}
  - {program: kernel, kind: nic_up, text: "{*} {*} {nic}: NIC Link is up{*}"}
  - {program: kernel, kind: nic_down, text: "{*} {*} {nic}: NIC Copper Link is Down"}
  - {program: kernel, kind: nic_up, text: "{*} {*} {nic}: NIC Copper Link is Up{*}"}
  - {program: kernel, kind: nic_down, text: "{*} {*} {nic}: Link is down"}
  - {program: kernel, kind: nic_up, text: "{*} {*} {nic}: Link is up at {*}"}
  - {program: kernel, kind: link_up, text: "{port}: Link is Up - {*}"}
  - {program: kernel, kind: nic_down, text: "{*}: (slave {nic}): link status definitely down{*}"}
  - {program: kernel, kind: nic_up, text: "{*}: (slave {nic}): link status definitely up{*}"}
  - {program: kernel, kind: nic_errors, text: "NETDEV WATCHDOG: {nic} ({*}): transmit queue {*}"}
  - {program: kernel, kind: nic_errors, text: "{*} {*} {nic}: TX timeout {*}"}
  - {program: kernel, kind: nic_errors, text: "{*} {*} {nic}: tx_timeout{*}"}
  - {program: kernel, kind: temperature_high, text: "mlx5_core {*}High temperature on sensors {*}"}
  - {program: kernel, kind: nic_errors, text: "mlx5_core {*}Port module event{*}Cable error{*}"}
  - {program: kernel, kind: nic_errors, text: "mlx5_core {*}Port module event{*}Cable unplugged{*}"}
  - {program: kernel, kind: nic_errors, text: "mlx5_core {*}health compromised{*}"}
  - {program: kernel, kind: nic_errors, text: "mlx5_core {*}Health issue observed{*}"}
  - {program: kernel, kind: nic_errors, text: "mlx5_core {*}Fatal error {*} detected"}
  - {program: kernel, kind: nic_errors, text: "mlx5_core {*}health recovery flow aborted{*}"}
  - {program: kernel, kind: nic_errors, text: "mlx5_core {*}mlx5_pci_err_detected {*}"}
  - {program: kernel, kind: nic_errors,
     text: "mlx5_core {*}timeout. Will cause a leak of a command resource"}
  - {program: kernel, kind: temperature_high,
     text: "bnxt_en {*}Chip temperature has gone above {*}"}
  - {program: kernel, kind: nic_errors, text: "bnxt_en {*} {nic}: Firmware heartbeat stopped{*}"}
  - {program: kernel, kind: nic_errors, text: "bnxt_en {*} {nic}: Error (timeout: {*}"}
  - {program: kernel, kind: nic_errors,
     text: "bnxt_en {*} {nic}: Link speed {*} no longer supported"}
  - {program: kernel, kind: nic_errors, text: "bnxt_en {*} {nic}: Unqualified SFP+ module {*}"}
  - {program: kernel, kind: nic_errors, text: "ice {*} {nic}: Rx/Tx is disabled on this device {*}"}
  - {program: kernel, kind: nic_errors, text: "ice {*}: Firmware recovery mode detected{*}"}
  - {program: systemd-networkd, kind: nic_down, text: "{nic}: Lost carrier"}
  - {program: systemd-networkd, kind: nic_up, text: "{nic}: Gained carrier"}
  - {program: NetworkManager, kind: nic_up, text: "{*}device ({nic}): carrier: link connected"}

  # The machine itself: PCI Express, memory, disks, processes.
  - {program: kernel, kind: nic_errors, text: "{*}PCIe Bus Error: severity=Uncorrect{*}"}
  - {program: kernel, kind: nic_errors, text: "{*}pciehp: Slot({*}): Link Down"}
  - {program: kernel, kind: memory_error, text: "EDAC {*}: {*} UE {*}"}
  - {program: kernel, kind: memory_error,
     text: "mce: [Hardware Error]: {*}Machine Check Exception: {*}"}
  - {program: kernel, kind: storage_error, text: "{*}I/O error, dev {*}"}
  - {program: kernel, kind: storage_error, text: "nvme {*}: controller is down; {*}"}
  - {program: kernel, kind: storage_error, text: "EXT4-fs error (device {*}"}
  - {program: kernel, kind: process_crash, text: "Out of memory: Killed process {*}"}
)yaml";

}  // namespace

std::string_view first_messages() { return first_yaml; }
std::array<std::string_view, 3> device_messages() {
  return {switches_yaml, chassis_yaml, hosts_yaml};
}

}  // namespace weft::observe::telemetry
