// The message catalogue that comes with weft. Formats and their sources: docs/telemetry.md.
#include "observe/telemetry/catalogue.hpp"

namespace weft::observe::telemetry {
namespace {

// In two parts: compilers bound the length of one literal.
constexpr std::string_view messages_yaml = R"yaml(
messages:
  # FRRouting, also inside SONiC and Cumulus Linux. %ADJCHANGE needs "bgp log-neighbor-changes".
  - {dialect: [frr, sonic, cumulus], program: bgpd, mnemonic: ADJCHANGE, kind: bgp_up,
     text: "neighbor {peer}({*}) in vrf {*} Up"}
  - {dialect: [frr, sonic, cumulus], program: bgpd, mnemonic: ADJCHANGE, kind: bgp_down,
     reason: interface, text: "neighbor {peer}({*}) in vrf {*} Down Interface down"}
  - {dialect: [frr, sonic, cumulus], program: bgpd, mnemonic: ADJCHANGE, kind: bgp_down,
     reason: hold_timer, text: "neighbor {peer}({*}) in vrf {*} Down BGP Notification send"}
  - {dialect: [frr, sonic, cumulus], program: bgpd, mnemonic: ADJCHANGE, kind: bgp_down,
     reason: hold_timer, text: "neighbor {peer}({*}) in vrf {*} Down BFD down initiated"}
  - {dialect: [frr, sonic, cumulus], program: bgpd, mnemonic: ADJCHANGE, kind: bgp_down,
     reason: reset, text: "neighbor {peer}({*}) in vrf {*} Down Peer closed the session"}
  - {dialect: [frr, sonic, cumulus], program: bgpd, mnemonic: ADJCHANGE, kind: bgp_down,
     reason: reset, text: "neighbor {peer}({*}) in vrf {*} Down BGP Notification received"}
  - {dialect: [frr, sonic, cumulus], program: bgpd, mnemonic: ADJCHANGE, kind: bgp_down,
     reason: reset, text: "neighbor {peer}({*}) in vrf {*} Down User reset"}
  - {dialect: [frr, sonic, cumulus], program: bgpd, mnemonic: ADJCHANGE, kind: bgp_down,
     reason: policy, text: "neighbor {peer}({*}) in vrf {*} Down Admin. shutdown"}
  - {dialect: [frr, sonic, cumulus], program: bgpd, mnemonic: ADJCHANGE, kind: bgp_down,
     reason: policy, text: "neighbor {peer}({*}) in vrf {*} Down Neighbor deleted"}
  - {dialect: [frr, sonic, cumulus], program: bgpd, mnemonic: ADJCHANGE, kind: bgp_down,
     reason: graceful, text: "neighbor {peer}({*}) in vrf {*} Down NSF peer closed the session"}
  - {dialect: [frr, sonic, cumulus], program: bgpd, mnemonic: ADJCHANGE, kind: bgp_down,
     text: "neighbor {peer}({*}) in vrf {*} Down {*}"}
  - {dialect: [frr, sonic, cumulus], program: bgpd, mnemonic: NOTIFICATION, kind: info,
     text: "{*}"}
  - {dialect: [frr, sonic, cumulus], program: bfdd, kind: bfd_down, reason: interface,
     text: "Session-Change: [mhop:no peer:{peer} vrf:default ifname:{port}] up -> down
     reason:path-down"}
  - {dialect: [frr, sonic, cumulus], program: bfdd, kind: bfd_down, reason: hold_timer,
     text: "Session-Change: [mhop:no peer:{peer} vrf:default ifname:{port}] up -> down
     reason:control-expired"}
  - {dialect: [frr, sonic, cumulus], program: bfdd, kind: bfd_up,
     text: "Session-Change: [mhop:no peer:{peer} vrf:default ifname:{port}] init -> up"}
  # Only with "debug zebra kernel".
  - {dialect: [frr, cumulus], program: zebra, severity: 7, kind: link_down,
     text: "Intf {port}({*}) has gone DOWN"}
  - {dialect: [frr, cumulus], program: zebra, severity: 7, kind: link_up,
     text: "Intf {port}({*}) has come UP"}
  - {dialect: [frr, sonic, cumulus], program: watchfrr, severity: 3, kind: process_crash,
     text: "{*} state -> down : {*}"}
  - {dialect: [frr, sonic, cumulus], program: watchfrr, kind: process_start,
     text: "{*} state -> up : {*}"}
  - {dialect: [frr, cumulus], program: vtysh, kind: config_commit,
     text: "Configuration of change {change} read"}
  - {dialect: [frr, cumulus], program: vtysh, severity: 3, kind: config_error,
     text: "Configuration of change {change} refused: {*}"}

  # Cumulus Linux and plain Linux: kernel, switchd, smond, systemd.
  - {dialect: [cumulus, frr], program: kernel, severity: 4, kind: link_down,
     text: "{port}: Link is Down"}
  - {dialect: [cumulus, frr], program: kernel, severity: 6, kind: link_up,
     text: "{port}: Link is Up"}
  - {dialect: [cumulus, frr], program: kernel, severity: 2, kind: memory_error,
     text: "EDAC {*}: {*} UE {*}"}
  - {dialect: [cumulus, frr, host], program: kernel, severity: 6, kind: device_boot,
     text: "Linux version {*}"}
  - {dialect: [cumulus, frr], program: kernel, severity: 3, kind: storage_error,
     text: "I/O error, dev {*}"}
  - {dialect: [cumulus, frr], program: switchd, severity: 3, kind: asic_error,
     text: "ASIC error: {*}"}
  - {dialect: [cumulus, frr], program: switchd, severity: 2, kind: card_fail,
     text: "Line card {card} failed"}
  - {dialect: [cumulus, frr], program: switchd, kind: card_ok, text: "Line card {card} is online"}
  - {dialect: [cumulus, frr], program: switchd, severity: 4, kind: crc_errors,
     text: "{port}: {value} frames with a bad check sum"}
  - {dialect: [cumulus, frr], program: smond, severity: 4, kind: rx_power,
     text: "Module {port}: rx power {*} below low alarm threshold"}
  - {dialect: [cumulus, frr], program: smond, severity: 4, kind: optic_temperature,
     text: "Module {port}: temperature {*} above high alarm threshold"}
  - {dialect: [cumulus, frr], program: smond, severity: 2, kind: psu_fail,
     text: "PSU{*} state changed from OK to BAD{*}"}
  - {dialect: [cumulus, frr], program: smond, severity: 2, kind: fan_fail,
     text: "Fan{*} state changed from OK to {*}"}
  - {dialect: [cumulus, frr], program: smond, severity: 2, kind: temperature_high,
     text: "Temp{*} state changed from OK to {*}"}

  # SONiC: orchagent, pmon.
  - {dialect: sonic, program: "swss#orchagent", kind: link_down,
     text: ":- updatePortOperStatus: Port {port} oper state set from up to down"}
  - {dialect: sonic, program: "swss#orchagent", kind: link_up,
     text: ":- updatePortOperStatus: Port {port} oper state set from down to up"}
  - {dialect: sonic, program: "syncd#syncd", severity: 3, kind: asic_error,
     text: ":- switch_event: fatal ASIC event {*}"}
  - {dialect: sonic, program: "swss#portsorch", severity: 4, kind: crc_errors,
     text: ":- counters: Port {port} in errors {value}"}
  - {dialect: sonic, program: "pmon#xcvrd", severity: 4, kind: rx_power,
     text: "{port}: rx power low alarm {*}"}
  - {dialect: sonic, program: "pmon#xcvrd", severity: 4, kind: optic_temperature,
     text: "{port}: temperature high alarm {*}"}
  - {dialect: sonic, program: "pmon#psud", severity: 4, kind: psu_fail,
     text: "PSU power warning: {*}"}
  - {dialect: sonic, program: "pmon#psud", severity: 4, kind: psu_fail,
     text: "PSU absence warning: {*}"}
  - {dialect: sonic, program: "pmon#thermalctld", severity: 4, kind: fan_fail,
     text: "Fan {*} warning: {*}"}
  - {dialect: sonic, program: "pmon#thermalctld", severity: 4, kind: temperature_high,
     text: "High temperature warning: {*}"}
  - {dialect: sonic, program: "pmon#chassisd", severity: 4, kind: card_fail,
     text: "Module LINE-CARD{card} (Slot {*}) went off-line!"}
  - {dialect: sonic, program: "pmon#chassisd", kind: card_ok,
     text: "Module LINE-CARD{card} (Slot {*}) is on-line!"}
  - {dialect: sonic, program: kernel, severity: 6, kind: device_boot, text: "Linux version {*}"}
  - {dialect: sonic, program: kernel, severity: 2, kind: memory_error,
     text: "EDAC {*}: {*} UE {*}"}
  - {dialect: sonic, program: kernel, severity: 3, kind: storage_error,
     text: "I/O error, dev {*}"}
  - {dialect: sonic, program: config, kind: config_commit, text: "change {change} loaded"}
  - {dialect: sonic, program: config, severity: 3, kind: config_error,
     text: "change {change} failed: {*}"}
)yaml"
                                           R"yaml(
  # Arista EOS.
  - {dialect: eos, program: Ebra, mnemonic: LINEPROTO-5-UPDOWN, kind: link_down,
     text: "Line protocol on Interface {port}, changed state to down"}
  - {dialect: eos, program: Ebra, mnemonic: LINEPROTO-5-UPDOWN, kind: link_up,
     text: "Line protocol on Interface {port}, changed state to up"}
  - {dialect: eos, program: Ebra, mnemonic: LINK-3-UPDOWN, kind: info, text: "{*}"}
  - {dialect: eos, program: Bgp, mnemonic: BGP-5-ADJCHANGE, kind: bgp_up,
     text: "peer {peer} (VRF {*} AS {*}) old state {*} event {*} new state Established"}
  - {dialect: eos, program: Bgp, mnemonic: BGP-5-ADJCHANGE, kind: bgp_down, reason: interface,
     text: "peer {peer} (VRF {*} AS {*}) old state Established event InterfaceDown new state {*}"}
  - {dialect: eos, program: Bgp, mnemonic: BGP-5-ADJCHANGE, kind: bgp_down, reason: hold_timer,
     text: "peer {peer} (VRF {*} AS {*}) old state Established event HoldTime new state {*}"}
  - {dialect: eos, program: Bgp, mnemonic: BGP-5-ADJCHANGE, kind: bgp_down, reason: hold_timer,
     text: "peer {peer} (VRF {*} AS {*}) old state Established event BfdDown new state {*}"}
  - {dialect: eos, program: Bgp, mnemonic: BGP-5-ADJCHANGE, kind: bgp_down, reason: policy,
     text: "peer {peer} (VRF {*} AS {*}) old state Established event Stop new state {*}"}
  - {dialect: eos, program: Bgp, mnemonic: BGP-5-ADJCHANGE, kind: bgp_down, reason: reset,
     text: "peer {peer} (VRF {*} AS {*}) old state Established event Closed new state {*}"}
  - {dialect: eos, program: Bgp, mnemonic: BGP-5-ADJCHANGE, kind: bgp_down, reason: reset,
     text: "peer {peer} (VRF {*} AS {*}) old state Established event RecvNotify new state {*}"}
  - {dialect: eos, program: Bgp, mnemonic: BGP-5-ADJCHANGE, kind: bgp_down, reason: graceful,
     text: "peer {peer} (VRF {*} AS {*}) old state Established event GracefulRestart new state
     {*}"}
  - {dialect: eos, program: Bgp, mnemonic: BGP-5-ADJCHANGE, kind: bgp_down,
     text: "peer {peer} (VRF {*} AS {*}) old state Established event {*} new state {*}"}
  - {dialect: eos, program: Bfd, mnemonic: BFD-5-STATE_CHANGE, kind: bfd_down, reason: interface,
     text: "peer (vrf:{*}, ip:{peer}, intf:{*}) changed state from Up to Down diag Path Down"}
  - {dialect: eos, program: Bfd, mnemonic: BFD-5-STATE_CHANGE, kind: bfd_down,
     reason: hold_timer,
     text: "peer (vrf:{*}, ip:{peer}, intf:{*}) changed state from Up to Down diag Detect Time
     Exp"}
  - {dialect: eos, program: Bfd, mnemonic: BFD-5-STATE_CHANGE, kind: bfd_up,
     text: "peer (vrf:{*}, ip:{peer}, intf:{*}) changed state from {*} to Up{*}"}
  - {dialect: eos, program: XcvrAgent, mnemonic: TRANSCEIVER-4-DOM_RX_POWER_LOW, severity: 4,
     kind: rx_power, text: "Interface {port}: RX power {*} is below the low alarm threshold"}
  - {dialect: eos, program: XcvrAgent, mnemonic: TRANSCEIVER-4-DOM_TEMPERATURE_HIGH, severity: 4,
     kind: optic_temperature,
     text: "Interface {port}: temperature {*} is above the high alarm threshold"}
  - {dialect: eos, program: Sand, mnemonic: INTERFACE-4-FCS_ERRORS, severity: 4,
     kind: crc_errors, text: "Interface {port}: {value} frames with FCS errors"}
  - {dialect: eos, program: ModuleManager, mnemonic: MODULE-3-FAILED, severity: 3,
     kind: card_fail, text: "Linecard {card} has failed"}
  - {dialect: eos, program: ModuleManager, mnemonic: MODULE-5-ONLINE, kind: card_ok,
     text: "Linecard {card} is online"}
  - {dialect: eos, program: Sand, mnemonic: HARDWARE-3-ASIC_ERROR, severity: 3, kind: asic_error,
     text: "{*}"}
  - {dialect: eos, program: Pfm, mnemonic: HARDWARE-3-MEMORY_ERROR, severity: 3,
     kind: memory_error, text: "{*}"}
  - {dialect: eos, program: StorageDevices, mnemonic: HARDWARE-3-STORAGE_ERROR, severity: 3,
     kind: storage_error, text: "{*}"}
  - {dialect: eos, program: PowerManager, mnemonic: PWRMGMT-4-INPUT_POWER_LOSS, severity: 4,
     kind: psu_fail, text: "{*}"}
  - {dialect: eos, program: Thermostat, mnemonic: ENVMON-3-FAN_FAILED, severity: 3,
     kind: fan_fail, text: "{*}"}
  - {dialect: eos, program: Thermostat, mnemonic: ENVMON-3-OVERHEAT, severity: 3,
     kind: temperature_high, text: "{*}"}
  - {dialect: eos, program: ProcMgr-worker, mnemonic: PROCMGR-3-PROCESS_CRASHED, severity: 3,
     kind: process_crash, text: "{*}"}
  - {dialect: eos, program: ProcMgr-worker, mnemonic: PROCMGR-6-PROCESS_STARTED, severity: 6,
     kind: process_start, text: "{*}"}
  - {dialect: eos, program: ConfigAgent, mnemonic: SYS-5-CONFIG_SESSION_COMMIT_SUCCESS,
     kind: config_commit,
     text: "User {*} committed configuration session {change} successfully on {*}"}
  - {dialect: eos, program: ConfigAgent, mnemonic: SYS-3-CONFIG_SESSION_COMMIT_FAILURE,
     severity: 3, kind: config_error,
     text: "User {*} failed to commit configuration session {change} on {*}"}
  - {dialect: eos, program: ConfigAgent, mnemonic: SYS-5-CONFIG_I, kind: config_commit,
     text: "{*}"}
  - {dialect: eos, program: Aaa, mnemonic: SYS-5-SYSTEM_RESTARTED, kind: device_boot, text: "{*}"}

  # Junos.
  - {dialect: junos, program: mib2d, mnemonic: SNMP_TRAP_LINK_DOWN, severity: 4, kind: link_down,
     text: "ifIndex {*}, ifAdminStatus {*}, ifOperStatus down(2), ifName {port}"}
  - {dialect: junos, program: mib2d, mnemonic: SNMP_TRAP_LINK_UP, severity: 4, kind: link_up,
     text: "ifIndex {*}, ifAdminStatus {*}, ifOperStatus up(1), ifName {port}"}
  - {dialect: junos, program: rpd, mnemonic: RPD_BGP_NEIGHBOR_STATE_CHANGED, severity: 4,
     kind: bgp_up,
     text: "BGP peer {peer} ({*}) changed state from {*} to Established (event {*}) (instance
     {*})"}
  - {dialect: junos, program: rpd, mnemonic: RPD_BGP_NEIGHBOR_STATE_CHANGED, severity: 4,
     kind: bgp_down, reason: hold_timer,
     text: "BGP peer {peer} ({*}) changed state from Established to Idle (event HoldTime)
     (instance {*})"}
  - {dialect: junos, program: rpd, mnemonic: RPD_BGP_NEIGHBOR_STATE_CHANGED, severity: 4,
     kind: bgp_down, reason: hold_timer,
     text: "BGP peer {peer} ({*}) changed state from Established to Idle (event BfdDown)
     (instance {*})"}
  - {dialect: junos, program: rpd, mnemonic: RPD_BGP_NEIGHBOR_STATE_CHANGED, severity: 4,
     kind: bgp_down, reason: interface,
     text: "BGP peer {peer} ({*}) changed state from Established to Idle (event IfDown) (instance
     {*})"}
  - {dialect: junos, program: rpd, mnemonic: RPD_BGP_NEIGHBOR_STATE_CHANGED, severity: 4,
     kind: bgp_down, reason: policy,
     text: "BGP peer {peer} ({*}) changed state from Established to Idle (event Stop) (instance
     {*})"}
  - {dialect: junos, program: rpd, mnemonic: RPD_BGP_NEIGHBOR_STATE_CHANGED, severity: 4,
     kind: bgp_down, reason: reset,
     text: "BGP peer {peer} ({*}) changed state from Established to Idle (event Closed) (instance
     {*})"}
  - {dialect: junos, program: rpd, mnemonic: RPD_BGP_NEIGHBOR_STATE_CHANGED, severity: 4,
     kind: bgp_down, reason: reset,
     text: "BGP peer {peer} ({*}) changed state from Established to Idle (event RecvNotify)
     (instance {*})"}
  - {dialect: junos, program: rpd, mnemonic: RPD_BGP_NEIGHBOR_STATE_CHANGED, severity: 4,
     kind: bgp_down, reason: graceful,
     text: "BGP peer {peer} ({*}) changed state from Established to Idle (event Restart)
     (instance {*})"}
  - {dialect: junos, program: rpd, mnemonic: RPD_BGP_NEIGHBOR_STATE_CHANGED, severity: 4,
     kind: bgp_down,
     text: "BGP peer {peer} ({*}) changed state from Established to {*} (event {*}) (instance
     {*})"}
  - {dialect: junos, program: bfdd, mnemonic: BFDD_STATE_UP_TO_DOWN, severity: 4, kind: bfd_down,
     reason: interface,
     text: "BFD Session {peer} ({*}) state Up -> Down {*} Reason: Interface down."}
  - {dialect: junos, program: bfdd, mnemonic: BFDD_STATE_UP_TO_DOWN, severity: 4, kind: bfd_down,
     reason: hold_timer,
     text: "BFD Session {peer} ({*}) state Up -> Down {*} Reason: Detect Timer Expiry."}
  - {dialect: junos, program: bfdd, mnemonic: BFDD_TRAP_SHOP_STATE_UP, kind: bfd_up,
     text: "local discriminator: {*}, new state: up, interface: {*}, peer addr: {peer}"}
  - {dialect: junos, program: chassisd, mnemonic: CHASSISD_FPC_OFFLINE_NOTICE, kind: card_fail,
     text: "Taking FPC {card} offline: {*}"}
  - {dialect: junos, program: chassisd, mnemonic: CHASSISD_FPC_ONLINE_NOTICE, kind: card_ok,
     text: "FPC {card} is online"}
  - {dialect: junos, program: chassisd, mnemonic: CHASSISD_SNMP_TRAP_RX_POWER, severity: 4,
     kind: rx_power, text: "{port}: rx power low alarm set{*}"}
  - {dialect: junos, program: chassisd, mnemonic: CHASSISD_SNMP_TRAP_OPTIC_TEMP, severity: 4,
     kind: optic_temperature, text: "{port}: module temperature high alarm set{*}"}
  - {dialect: junos, program: fpc, mnemonic: PFE_CRC_ERRORS, severity: 4, kind: crc_errors,
     text: "{port}: {value} CRC errors"}
  - {dialect: junos, program: fpc, mnemonic: PFE_ASIC_ERROR, severity: 3, kind: asic_error,
     text: "{*}"}
  - {dialect: junos, program: kernel, mnemonic: KERN_MEMORY_ERROR, severity: 3,
     kind: memory_error, text: "{*}"}
  - {dialect: junos, program: kernel, mnemonic: KERN_STORAGE_ERROR, severity: 3,
     kind: storage_error, text: "{*}"}
  - {dialect: junos, program: chassisd, mnemonic: CHASSISD_PSU_INPUT_BAD, severity: 3,
     kind: psu_fail, text: "{*}"}
  - {dialect: junos, program: chassisd, mnemonic: CHASSISD_FAN_FAILURE, severity: 3,
     kind: fan_fail, text: "{*}"}
  - {dialect: junos, program: chassisd, mnemonic: CHASSISD_OVER_TEMP_CONDITION, severity: 3,
     kind: temperature_high, text: "{*}"}
  - {dialect: junos, program: init, mnemonic: INIT_PROCESS_TERMINATED, severity: 3,
     kind: process_crash, text: "{*}"}
  - {dialect: junos, program: init, mnemonic: INIT_PROCESS_STARTED, severity: 6,
     kind: process_start, text: "{*}"}
  - {dialect: junos, program: mgd, mnemonic: UI_COMMIT, kind: config_commit,
     text: "User '{*}' requested 'commit' operation (comment: {change})"}
  - {dialect: junos, program: mgd, mnemonic: UI_COMMIT_ERROR, severity: 3, kind: config_error,
     text: "Commit of {change} failed: {*}"}
  - {dialect: junos, program: kernel, mnemonic: KERN_SYSTEM_BOOT, kind: device_boot, text: "{*}"}

  # Cisco NX-OS.
  - {dialect: nxos, mnemonic: ETHPORT-5-IF_DOWN_LINK_FAILURE, kind: link_down,
     text: "Interface {port} is down (Link failure)"}
  - {dialect: nxos, mnemonic: ETHPORT-5-IF_UP, kind: link_up,
     text: "Interface {port} is up in mode {*}"}
  - {dialect: nxos, mnemonic: BGP-5-ADJCHANGE, kind: bgp_up,
     text: "bgp-{*} ({*}) neighbor {peer} Up"}
  - {dialect: nxos, mnemonic: BGP-5-ADJCHANGE, kind: bgp_down, reason: interface,
     text: "bgp-{*} ({*}) neighbor {peer} Down - interface down"}
  - {dialect: nxos, mnemonic: BGP-5-ADJCHANGE, kind: bgp_down, reason: hold_timer,
     text: "bgp-{*} ({*}) neighbor {peer} Down - holdtimer expired error"}
  - {dialect: nxos, mnemonic: BGP-5-ADJCHANGE, kind: bgp_down, reason: hold_timer,
     text: "bgp-{*} ({*}) neighbor {peer} Down - bfd down"}
  - {dialect: nxos, mnemonic: BGP-5-ADJCHANGE, kind: bgp_down, reason: policy,
     text: "bgp-{*} ({*}) neighbor {peer} Down - administratively shutdown"}
  - {dialect: nxos, mnemonic: BGP-5-ADJCHANGE, kind: bgp_down, reason: reset,
     text: "bgp-{*} ({*}) neighbor {peer} Down - session closed"}
  - {dialect: nxos, mnemonic: BGP-5-ADJCHANGE, kind: bgp_down, reason: reset,
     text: "bgp-{*} ({*}) neighbor {peer} Down - peer reset"}
  - {dialect: nxos, mnemonic: BGP-5-ADJCHANGE, kind: bgp_down, reason: graceful,
     text: "bgp-{*} ({*}) neighbor {peer} Down - graceful restart"}
  - {dialect: nxos, mnemonic: BGP-5-ADJCHANGE, kind: bgp_down,
     text: "bgp-{*} ({*}) neighbor {peer} Down - {*}"}
  - {dialect: nxos, mnemonic: BFD-5-SESSION_STATE_DOWN, kind: bfd_down, reason: interface,
     text: "BFD session {*} to neighbor {peer} on interface {*} has gone down. Reason: Interface
     Down."}
  - {dialect: nxos, mnemonic: BFD-5-SESSION_STATE_DOWN, kind: bfd_down, reason: hold_timer,
     text: "BFD session {*} to neighbor {peer} on interface {*} has gone down. Reason: {*}"}
  - {dialect: nxos, mnemonic: BFD-5-SESSION_STATE_UP, kind: bfd_up,
     text: "BFD session {*} to neighbor {peer} on interface {*} is up."}
  - {dialect: nxos, mnemonic: ETHPORT-4-IF_XCVR_RX_POWER_LOW, severity: 4, kind: rx_power,
     text: "Interface {port}, Low Rx Power Alarm{*}"}
  - {dialect: nxos, mnemonic: ETHPORT-4-IF_XCVR_TEMP_HIGH, severity: 4, kind: optic_temperature,
     text: "Interface {port}, High Temperature Alarm{*}"}
  - {dialect: nxos, mnemonic: ETHPORT-4-IF_CRC_ERRORS, severity: 4, kind: crc_errors,
     text: "Interface {port}, CRC errors {value}"}
  - {dialect: nxos, mnemonic: MODULE-2-MOD_FAIL, severity: 2, kind: card_fail,
     text: "Module {card} (Serial number: {*}) failed"}
  - {dialect: nxos, mnemonic: MODULE-5-MOD_OK, kind: card_ok,
     text: "Module {card} is online (Serial number: {*})"}
  - {dialect: nxos, mnemonic: MODULE-4-MOD_WARNING, severity: 4, kind: asic_error, text: "{*}"}
  - {dialect: nxos, mnemonic: KERN-2-MEMORY_ERROR, severity: 2, kind: memory_error, text: "{*}"}
  - {dialect: nxos, mnemonic: KERN-3-STORAGE_ERROR, severity: 3, kind: storage_error, text: "{*}"}
  - {dialect: nxos, mnemonic: PLATFORM-2-PS_FAIL, severity: 2, kind: psu_fail, text: "{*}"}
  - {dialect: nxos, mnemonic: PLATFORM-2-FAN_REMOVED, severity: 2, kind: fan_fail, text: "{*}"}
  - {dialect: nxos, mnemonic: PLATFORM-2-TEMPERATURE_ALARM, severity: 2, kind: temperature_high,
     text: "{*}"}
  - {dialect: nxos, mnemonic: SYSMGR-2-SERVICE_CRASHED, severity: 2, kind: process_crash,
     text: "{*}"}
  - {dialect: nxos, mnemonic: SYSMGR-5-SERVICE_STARTED, kind: process_start, text: "{*}"}
  - {dialect: nxos, mnemonic: VSHD-5-VSHD_SYSLOG_CONFIG_I, kind: config_commit,
     text: "Configured from {*} by {*} in change {change}"}
  - {dialect: nxos, mnemonic: VSHD-5-VSHD_SYSLOG_CONFIG_I, kind: config_commit,
     text: "Configured from {*}"}
  - {dialect: nxos, mnemonic: VSHD-3-CONFIG_ERROR, severity: 3, kind: config_error,
     text: "Change {change} refused: {*}"}
  - {dialect: nxos, mnemonic: SYSMGR-5-SYSTEM_BOOT, kind: device_boot, text: "{*}"}

  # Hosts: the kernel's network drivers.
  - {dialect: host, program: kernel, severity: 4, kind: nic_down,
     text: "mlx5_core {*} {nic}: Link down"}
  - {dialect: host, program: kernel, severity: 6, kind: nic_up,
     text: "mlx5_core {*} {nic}: Link up"}

  # Benign everywhere.
  - {dialect: [frr, sonic, eos, junos, cumulus, host], program: sshd, severity: 6,
     text: "Accepted publickey for {*} from {*} port {*} ssh2"}
  - {program: sshd, severity: 6, text: "{*}"}
  - {dialect: [frr, sonic, cumulus, host], program: CRON, severity: 6, text: "(root) CMD ({*})"}
  - {program: CRON, severity: 6, text: "{*}"}
  - {dialect: [frr, sonic, cumulus, host], program: systemd, severity: 6, text: "Started {*}."}
  - {program: systemd, severity: 6, text: "{*}"}
  - {dialect: [frr, sonic, eos, cumulus, host], program: ntpd, severity: 6,
     text: "adjusting local clock by {*} s"}
  - {program: ntpd, severity: 6, text: "{*}"}
  - {program: chronyd, severity: 6, text: "{*}"}
  - {dialect: eos, program: Lldp, mnemonic: LLDP-5-NEIGHBOR_NEW,
     text: "LLDP neighbor with chassisId {*} and portId {*} added on interface {*}"}
  - {dialect: eos, program: Aaa, mnemonic: AAA-5-LOGIN, text: "user {*} logged in from {*}"}
  - {dialect: junos, program: mgd, mnemonic: UI_AUTH_EVENT, severity: 6,
     text: "Authenticated user '{*}' at permission level {*}"}
  - {dialect: junos, program: mgd, mnemonic: UI_LOGIN_EVENT, severity: 6,
     text: "User '{*}' login, class '{*}' [{*}]{*}"}
  - {dialect: nxos, mnemonic: AUTHPRIV-6-SYSTEM_MSG, severity: 6,
     text: "pam_unix(sshd:session): session {*} for user {*}"}
  - {dialect: nxos, mnemonic: LLDP-FUTURE-5-INFO, text: "{*}"}
)yaml";

}  // namespace

std::string_view builtin_messages() { return messages_yaml; }

}  // namespace weft::observe::telemetry
