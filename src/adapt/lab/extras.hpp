// What a lab may have beside its routing: SNMP agents and the forwarding of logs.
#pragma once

#include <string>
#include <string_view>

#include "adapt/lab/plan.hpp"
#include "adapt/lab/process.hpp"
#include "base/result.hpp"

namespace weft::adapt::lab {

struct Lab;

// The read community of the lab's SNMP agents, and where the forwarder sends syslog to: UDP port
// 514 of the management network's bridge.
inline constexpr std::string_view snmp_community = "weft";
inline constexpr Ipv4 syslog_collector = 0xAC1F0001;  // 172.31.0.1
inline constexpr std::uint16_t syslog_port = 514;

// The program of net-snmp's agent; "" where it is not installed.
std::string snmpd_path();
std::string snmpd_config();
// The agent of a switch: version 2c over UDP, on port 161 of its management address only.
ProcessSpec snmpd_process(const LabNode& node, const std::string& directory);

// The watchdog that FRRouting's packages run on each switch: it logs which of `daemons` ended, do
// not respond for 10 s, or are back. It restarts none: faults last until they are healed.
ProcessSpec watchfrr_process(const LabNode& node, const std::string& directory,
                             std::span<const std::string_view> daemons);

// An RFC 5424 message of facility local7, without its time where `time` is empty.
std::string syslog_message(int severity, std::string_view time, std::string_view host,
                           std::string_view app, std::string_view text);
// One line of FRRouting's log file, "2024/05/01 12:00:00 BGP: [X-Y] text", as an RFC 5424 message;
// empty for what is no such line. `now`: its time, RFC 3339.
std::string forwarded_line(std::string_view line, std::string_view now, std::string_view host);

// The loop of the keeper: sends every new line of the logs of every switch to the collector, and a
// message for every interface that goes up or down; ends with SIGTERM, or with the lab's files.
// Fails: Errc::io where it cannot begin.
Status keep(const Lab& lab);

}  // namespace weft::adapt::lab
