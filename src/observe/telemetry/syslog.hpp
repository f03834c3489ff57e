// One syslog message taken apart: RFC 5424, RFC 3164, and what devices make of the latter.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/timestamp.hpp"

namespace weft::observe::telemetry {

// Views into the line.
struct SyslogMessage {
  // Of the stamp: none given; as a civil time of an unknown zone; as a point in time.
  enum class Stamp : std::uint8_t { none, civil, utc };

  std::uint8_t facility = 1, severity = 5;  // user, notice: where no priority is given
  Stamp stamp = Stamp::none;
  Timestamp t;               // by `stamp`; a civil time as if it were UTC
  std::string_view host;     // "" when the line names none
  std::string_view program;  // tag or APP-NAME, without process id and container ("bgp#bgpd")
  std::string_view key;      // mnemonic ("BGP-5-ADJCHANGE", "RPD_BGP_..."), else the program
  std::string_view text;     // what follows the key
};

enum class SyslogFault : std::uint8_t {
  none,
  empty,
  priority,  // "<" without a number up to 191 and ">"
  header,    // neither RFC
};

// Reads
//   <PRI>1 STAMP HOST APP PROCID MSGID SD TEXT            RFC 5424
//   <PRI>Mmm dd hh:mm:ss HOST TAG[PID]: TEXT              RFC 3164; also with a year behind the
//   day,
//                                                         decimals, a zone behind the time, an ISO
//                                                         stamp, "*" or "." before the stamp, a
//                                                         level before the tag (SONiC), a year
//                                                         before the month, no tag
//   <PRI>HOST: yyyy Mmm dd hh:mm:ss.mmm ZONE: %KEY: TEXT  NX-OS; also without a host, with a number
//                                                         before it (IOS), a node behind it
//                                                         (IOS-XR), and behind a relay's head
//   <PRI>TEXT                                             RFC 3164, 4.3.3: nothing but a text
// A line without <PRI> passes where it begins with a stamp, as files of syslog daemons have it.
// `received` tells the year where the stamp has none: the one that brings it nearest.
// Cost: one pass over the head of the line, no allocation.
SyslogFault parse_syslog(std::string_view line, Timestamp received, SyslogMessage& out);

}  // namespace weft::observe::telemetry
