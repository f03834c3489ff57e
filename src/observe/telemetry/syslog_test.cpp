#include "observe/telemetry/syslog.hpp"

#include <doctest/doctest.h>

#include <string>

#include "base/text.hpp"

namespace weft::observe::telemetry {
namespace {

using Stamp = SyslogMessage::Stamp;

Timestamp at(std::string_view text) {
  const auto t = parse_timestamp({text, {}});
  REQUIRE(t.has_value());
  return *t;
}

constexpr Timestamp received{1'795'233'910 * ns_per_s};  // 2026-11-21T04:05:10Z

SyslogMessage parse(std::string_view line, Timestamp when = received) {
  SyslogMessage out;
  REQUIRE_MESSAGE(parse_syslog(line, when, out) == SyslogFault::none, line);
  return out;
}

SyslogFault fault_of(std::string_view line) {
  SyslogMessage out;
  return parse_syslog(line, received, out);
}

TEST_CASE("RFC 5424, with and without its optional parts") {
  const SyslogMessage full = parse(R"(<165>1 2026-11-21T04:05:06.003-07:00 core-1.lab mib2d 4713 )"
                                   R"(SNMP_TRAP_LINK_DOWN [x@1 a="q]\"r"][y b="2"] ifIndex 526)");
  CHECK(full.facility == 20);
  CHECK(full.severity == 5);
  CHECK(full.stamp == Stamp::utc);
  CHECK(to_text(full.t) == "2026-11-21T11:05:06.003Z");
  CHECK(full.host == "core-1.lab");
  CHECK(full.program == "mib2d");
  CHECK(full.key == "SNMP_TRAP_LINK_DOWN");
  CHECK(full.text == "ifIndex 526");

  const SyslogMessage bare = parse("<34>1 - - - - - -");
  CHECK(bare.stamp == Stamp::none);
  CHECK(bare.host.empty());
  CHECK(bare.key.empty());
  CHECK(bare.text.empty());

  const SyslogMessage marked = parse("<34>1 2026-11-21T04:05:06Z h p - - - \xEF\xBB\xBFsnow");
  CHECK(marked.text == "snow");
}

TEST_CASE("RFC 3164 and its quirks") {
  const SyslogMessage plain = parse("<34>Nov  1 04:05:06 sw1 sshd[77]: Accepted publickey");
  CHECK(plain.facility == 4);
  CHECK(plain.severity == 2);
  CHECK(plain.stamp == Stamp::civil);
  CHECK(to_text(plain.t) == "2026-11-01T04:05:06Z");
  CHECK(plain.host == "sw1");
  CHECK(plain.key == "sshd");
  CHECK(plain.text == "Accepted publickey");

  CHECK(to_text(parse("<34>Nov 1 04:05:06 sw1 a: b").t) == "2026-11-01T04:05:06Z");
  CHECK(to_text(parse("<34>Nov 21 2025 04:05:06 sw1 a: b").t) == "2025-11-21T04:05:06Z");
  CHECK(to_text(parse("<34>Nov 21 04:05:06.25 sw1 a: b").t) == "2026-11-21T04:05:06.250Z");
  CHECK(to_text(parse("<34>Nov 21 04:05:60 sw1 a: b").t) == "2026-11-21T04:05:59Z");
  CHECK(parse("<34>Nov 21 04:05:06 UTC sw1 a: b").stamp == Stamp::utc);
  CHECK(parse("<34>*Nov 21 04:05:06: sw1: a: b").host == "sw1");
  CHECK(parse("<34>Nov 21 04:05:06 sw1 last message repeated 3 times").text ==
        "last message repeated 3 times");
  CHECK(parse("<34>Nov 21 04:05:06 sw1 a: b\r\n").text == "b");

  const SyslogMessage iso =
      parse("<6>2026-11-21T05:05:06.123456+01:00 leaf-2 kernel: [ 12.5] swp1: up");
  CHECK(to_text(iso.t) == "2026-11-21T04:05:06.123456Z");
  CHECK(iso.text == "swp1: up");

  const SyslogMessage level =
      parse("<29>Nov 21 04:05:06.123456 leaf-2 NOTICE swss#orchagent: :- f: Port Ethernet0");
  CHECK(level.program == "orchagent");
  CHECK(level.key == "orchagent");
  CHECK(level.text == ":- f: Port Ethernet0");

  const SyslogMessage file = parse("Nov 21 04:05:06 sw1 sshd[77]: bye");  // as daemons write files
  CHECK(file.host == "sw1");
  CHECK(file.severity == 5);

  const SyslogMessage text = parse("<13>something happened");
  CHECK(text.stamp == Stamp::none);
  CHECK(text.host.empty());
  CHECK(text.text == "something happened");
}

TEST_CASE("NX-OS puts the host first, or leaves it out") {
  const SyslogMessage named = parse(
      "<189>sw-3: 2026 Nov 21 04:05:06.123 UTC: %ETHPORT-5-IF_UP: Interface Ethernet1/7 is up");
  CHECK(named.host == "sw-3");
  CHECK(named.stamp == Stamp::utc);
  CHECK(to_text(named.t) == "2026-11-21T04:05:06.123Z");
  CHECK(named.key == "ETHPORT-5-IF_UP");
  CHECK(named.text == "Interface Ethernet1/7 is up");

  const SyslogMessage nameless = parse("<189>: 2026 Nov  1 04:05:06 CET: %A-5-B: text");
  CHECK(nameless.host.empty());
  CHECK(nameless.stamp == Stamp::civil);  // a zone's name says nothing certain
  CHECK(nameless.key == "A-5-B");
}

// "host|program|key|stamp|text" of a line.
std::string head(std::string_view line) {
  const SyslogMessage m = parse(line);
  std::string out;
  for (const std::string_view part : {m.host, m.program, m.key}) out.append(part).append("|");
  return out + (m.stamp == Stamp::none ? "-" : to_text(m.t)) + "|" + std::string(m.text);
}

TEST_CASE("heads that devices write themselves, behind relays, with numbers and years") {
  constexpr std::string_view second = "2026-11-21T04:05:06Z", ms = "2026-11-21T04:05:06.123Z";
  const auto is = [&](std::string_view line, std::string_view names, std::string_view stamp) {
    CHECK(head(line) == std::string(names) + "|" + std::string(stamp) + "|text: more");
  };
  // EOS with "logging format sequence-numbers".
  is("<189>Nov 21 04:05:06 h Ebra: 471: %A-5-B: text: more", "h|Ebra|A-5-B", second);
  is("<189>Nov 21 04:05:06 h Ebra: %A-5-B: text: more", "h|Ebra|A-5-B", second);
  // NX-OS: its log file, a relay's head before it, its contexts.
  is("<189>2026 Nov 21 04:05:06 h %A-5-B: text: more", "h||A-5-B", second);
  is("2026 Nov 21 04:05:06.123 h %A-5-B: text: more", "h||A-5-B", ms);
  is("<189>Nov 21 04:05:09 h : 2026 Nov 21 04:05:06.123 UTC: %A-5-B: text: more", "h||A-5-B", ms);
  is("<189>Nov 21 04:05:09 h 2026 Nov 21 04:05:06 CET: %A-5-B: text: more", "h||A-5-B", second);
  is("<189>Nov 21 04:05:09 relay h: 2026 Nov 21 04:05:06 UTC: %A-5-B: text: more", "h||A-5-B",
     second);
  is("<189>h: 2026 Nov 21 04:05:06 UTC: %$ VDC-1 %$ %A-5-B: text: more", "h||A-5-B", second);
  is("<189>471: 2026 Nov 21 04:05:06 UTC: %A-5-B: text: more", "||A-5-B", second);
  // IOS and IOS-XR.
  is("<189>471: h: *Nov 21 04:05:06.123: %A-5-B: text: more", "h||A-5-B", ms);
  is("<189>471: h: Nov 21 04:05:06.123 MEST: %A-5-B: text: more", "h||A-5-B", ms);
  is("<189>88: 000088: Nov 21 04:05:06.123: %A-5-B: text: more", "||A-5-B", ms);
  is("<189>471: *Nov 21 04:05:06.123 UTC: %A-5-B: text: more", "||A-5-B", ms);
  is("<189>Nov 21 04:05:09 h 471: *Nov 21 04:05:06.123: %A-5-B: text: more", "h||A-5-B", ms);
  is("<187>471: h RP/0/RSP0/CPU0:Nov 21 04:05:06.123 UTC: ifmgr[230]: %A-B-3-C : text: more",
     "h|ifmgr|A-B-3-C", ms);
  is("<187>471: RP/0/RP0/CPU0:Nov 21 04:05:06.123 : ifmgr[230]: %A-B-3-C : text: more",
     "|ifmgr|A-B-3-C", ms);
  is("<187>471: h RP/0/RSP0/CPU0:Nov 21 04:05:06.123: isis[1]: %A-B-3-C : text: more",
     "h|isis|A-B-3-C", ms);
  is("<187>Nov 21 04:05:09 h 471: LC/0/2/CPU0:2026 Nov 21 04:05:06.123 UTC: ifmgr[230]: %A-B-3-C : "
     "text: more",
     "h|ifmgr|A-B-3-C", ms);
  // Junos: "explicit-priority", "time-format year", doubled blanks, the kernel's path.
  is("<28>Nov 21 04:05:06  h rpd[2]: %DAEMON-4-RPD_A_B: text: more", "h|rpd|RPD_A_B", second);
  is("<28>Nov 21 04:05:06 h rpd[2]: %DAEMON-4: text: more", "h|rpd|rpd", second);
  is("<28>Nov 21 04:05:06 2026 h rpd[2]: RPD_A_B: text: more", "h|rpd|RPD_A_B", second);
  is("<28>Nov 21 04:05:06.123 2026 h rpd[2]: RPD_A_B: text: more", "h|rpd|RPD_A_B", ms);
  is("<6>Nov 21 04:05:06 h /kernel: text: more", "h|kernel|kernel", second);
  is("<28>1 2026-11-21T04:05:06.123Z h rpd 2 - - %DAEMON-4-RPD_A_B: text: more", "h|rpd|RPD_A_B",
     ms);
  // SONiC as it writes /var/log/syslog.
  is("2026 Nov 21 04:05:06.123000 h NOTICE swss#orchagent: text: more", "h|orchagent|orchagent",
     ms);
  is("2026-11-21T04:05:06.123000+00:00 h switchd[7]: text: more", "h|switchd|switchd", ms);
  // NX-OS' facilities are no priorities of Junos.
  is("<189>2026 Nov 21 04:05:06 h %DAEMON-3-SYSTEM_MSG: text: more", "h||DAEMON-3-SYSTEM_MSG",
     second);
}

TEST_CASE("a text that looks like a head is a text") {
  CHECK(head("<34>Nov 21 04:05:06 h 471: no stamp") == "h|471|471|2026-11-21T04:05:06Z|no stamp");
  CHECK(head("<34>Nov 21 04:05:06 h prog: 12 things") ==
        "h|prog|prog|2026-11-21T04:05:06Z|12 things");
  CHECK(head("<34>Nov 21 04:05:06 h prog: 2026 is a year") ==
        "h|prog|prog|2026-11-21T04:05:06Z|2026 is a year");
  CHECK(head("<34>Nov 21 04:05:06 h Nov 21 is a day") ==
        "h|||2026-11-21T04:05:06Z|Nov 21 is a day");
}

TEST_CASE("keys: mnemonics of Cisco's kind, of Junos, else the program") {
  CHECK(parse("<29>Nov 21 04:05:06 h Ebra: %LINEPROTO-5-UPDOWN: Line").key == "LINEPROTO-5-UPDOWN");
  CHECK(parse("<29>Nov 21 04:05:06 h bgpd[8]: [M59KS-A3ZXZ] %ADJCHANGE: neighbor").key ==
        "ADJCHANGE");
  CHECK(parse("<29>Nov 21 04:05:06 h bgpd[8]: [EC 33554436] text").text == "text");
  CHECK(parse("<29>Nov 21 04:05:06 h rpd[8]: RPD_BGP_STATE: peer").key == "RPD_BGP_STATE");
  CHECK(parse("<29>Nov 21 04:05:06 h prog[8]: NOTE: peer").key == "prog");
}

TEST_CASE("the year is the one that brings the stamp nearest to its receipt") {
  CHECK(to_text(parse("<34>Dec 31 23:59:58 h a: b", at("2027-01-01T00:00:01Z")).t) ==
        "2026-12-31T23:59:58Z");
  CHECK(to_text(parse("<34>Jan  1 00:00:01 h a: b", at("2026-12-31T23:59:59Z")).t) ==
        "2027-01-01T00:00:01Z");
  CHECK(to_text(parse("<34>Feb 29 12:00:00 h a: b", at("2028-03-01T00:00:00Z")).t) ==
        "2028-02-29T12:00:00Z");
  // No year around has that day: a text without a stamp.
  CHECK(parse("<34>Feb 29 12:00:00 h a: b", at("2026-03-01T00:00:00Z")).stamp == Stamp::none);
}

TEST_CASE("what is no syslog") {
  CHECK(fault_of("") == SyslogFault::empty);
  CHECK(fault_of("\r\n") == SyslogFault::empty);
  CHECK(fault_of("<192>Nov 21 04:05:06 h a: b") == SyslogFault::priority);
  CHECK(fault_of("<1234>x") == SyslogFault::priority);
  CHECK(fault_of("<>x") == SyslogFault::priority);
  CHECK(fault_of("<3") == SyslogFault::priority);
  CHECK(fault_of("hello") == SyslogFault::header);
  CHECK(fault_of("<34>1 yesterday h p - - - x") == SyslogFault::header);
  CHECK(fault_of("<34>1 2026-13-21T04:05:06Z h p - - - x") == SyslogFault::header);
  CHECK(fault_of("<34>1 2026-11-21T24:05:06Z h p - - - x") == SyslogFault::header);
  CHECK(fault_of("<34>1 2026-11-21T04:05:06Z h p - - [open x") == SyslogFault::header);
  CHECK(fault_of("<34>1 2026-11-21T04:05:06Z h p") == SyslogFault::header);
}

}  // namespace
}  // namespace weft::observe::telemetry
