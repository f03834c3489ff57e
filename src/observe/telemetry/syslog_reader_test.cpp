#include "observe/telemetry/syslog_reader.hpp"

#include <doctest/doctest.h>

#include <string>

#include "base/config.hpp"
#include "base/json_line.hpp"
#include "model/events/entity.hpp"
#include "model/formats/test_fabric.hpp"

namespace weft::observe::telemetry {
namespace {

using model::EventKind;

//   ctsw:0   ctsw:1        ports of rtsw:0: 0 to 7 to the NICs of host:0, 8 and 9 upwards
//     |  \ /   |
//   rtsw:0   rtsw:1
//     |        |
//   host:0   host:1
struct SyslogBed {
  model::Fabric fabric;
  Inventory inventory;
  Catalogue catalogue = Catalogue::built_in();
  SyslogReader reader;

  static model::Fabric build() {
    return model::testing::make_fabric(
        "{generator: ai_zone, racks: 2, hosts_per_rack: 1, spines: 2, link: 400 Gbps}");
  }
  SyslogBed() : fabric(build()), inventory(fabric), reader(inventory, catalogue, {}) {
    const Status added = inventory.add_csv(
        "address,device,interface,zone\n"
        "10.9.0.1,ctsw:0,Ethernet1/0,\n"  // towards rtsw:0
        "10.9.0.2,rtsw:0,Ethernet1/8,\n"
        "10.9.0.3,ctsw:1,Ethernet1/0,\n"
        "172.16.0.5,rtsw:1,,\n"
        ",ctsw:1,,+02:00\n",
        "inventory.csv");
    REQUIRE_MESSAGE(added.has_value(), (added ? "" : added.error().text()));
  }

  const model::Record& take(std::string_view line, std::string_view from = "") {
    const auto when = parse_timestamp({"2026-11-21T04:05:07Z", {}});
    REQUIRE(when.has_value());
    reader.take(line, *when, from);
    return reader.records().rows.back();
  }
  // "kind entity reason", with what is known of the record.
  std::string said(std::string_view line, std::string_view from = "") {
    const model::Record& row = take(line, from);
    std::string out = std::string(to_text(row.kind)) + " " + name(fabric, row.entity);
    const model::RecordSet& records = reader.records();
    for (const auto& [key, value] : records.attrs[row.attrs])
      out.append(" ").append(key).append("=").append(value);
    return out;
  }
};

TEST_CASE("a stamp of whole seconds is a moment of that second, and not after the receipt") {
  SyslogBed bed;
  const auto read = [&](std::string_view stamp, std::string_view received) {
    const auto when = parse_timestamp({received, {}});
    REQUIRE(when.has_value());
    bed.reader.take("<189>1 " + std::string(stamp) + " rtsw-1 zebra - - - text", *when, "");
    return to_text(bed.reader.records().rows.back().t);
  };
  constexpr const char* second = "2026-11-21T04:05:06Z";
  CHECK(read(second, "2026-11-21T04:05:06.250Z") == "2026-11-21T04:05:06.250Z");
  CHECK(read(second, "2026-11-21T04:05:07.200Z") == "2026-11-21T04:05:06.999999999Z");
  CHECK(read(second, "2026-11-21T04:05:06Z") == second);
  CHECK(read(second, "2026-11-21T04:05:05.900Z") == second);  // its clock is ahead
  CHECK(read(second, "2026-11-21T04:05:36Z") == "2026-11-21T04:05:06.999999999Z");
  CHECK(read("2026-11-21T04:05:06.100Z", "2026-11-21T04:05:06.250Z") == "2026-11-21T04:05:06.100Z");
}

// The formats: docs/telemetry.md. The lines are our own.
TEST_CASE("FRR") {
  SyslogBed bed;
  CHECK(bed.said("<28>Nov 21 04:05:06 rtsw-0 bgpd[812]: [M59KS-A3ZXZ] %ADJCHANGE: neighbor "
                 "10.9.0.1(ctsw-0) in vrf default Down BGP Notification send") ==
        "bgp_down rtsw:0/8 reason=hold_timer");
  CHECK(bed.said("<28>Nov 21 04:05:06 rtsw-0 bgpd[812]: %ADJCHANGE: neighbor "
                 "Ethernet1/9(ctsw-1) in vrf default Down Interface down") ==
        "bgp_down rtsw:0/9 reason=interface");
  CHECK(bed.said("<29>Nov 21 04:05:06 rtsw-0 bgpd[812]: %ADJCHANGE: neighbor ctsw-1(ctsw-1) in vrf "
                 "default Up") == "bgp_up rtsw:0/9");
  CHECK(bed.said("<28>Nov 21 04:05:06 rtsw-0 bgpd[812]: %ADJCHANGE: neighbor 10.9.0.1(x) in vrf "
                 "default Down Something new") == "bgp_down rtsw:0/8");
  CHECK(bed.said("<28>Nov 21 04:05:06 rtsw-0 bgpd[812]: %ADJCHANGE: neighbor 10.9.0.1(x) in vrf "
                 "default Down Admin. shutdown") == "bgp_down rtsw:0/8 reason=policy");
  CHECK(bed.said("<27>Nov 21 04:05:06 rtsw-0 watchfrr[7]: [EC 268435457] bgpd state -> down : read "
                 "returned EOF") == "process_crash rtsw:0");
  CHECK(bed.said("<187>1 2026-11-27T06:15:37Z rtsw-0 watchfrr - - - [T58XM-TP956][EC 268435457] "
                 "zebra state -> unresponsive : no response yet to ping sent 6 seconds ago") ==
        "process_crash rtsw:0");
  CHECK(bed.said("<29>Nov 21 04:05:06 rtsw-0 watchfrr[7]: bgpd state -> up : connect succeeded") ==
        "process_start rtsw:0");
}

TEST_CASE("SONiC") {
  SyslogBed bed;
  CHECK(
      bed.said("<29>Nov 21 04:05:06.123456 rtsw-1 NOTICE swss#orchagent: :- updatePortOperStatus: "
               "Port Ethernet1/9 oper state set from up to down") == "link_down rtsw:1/9");
  CHECK(bed.said("<30>Nov 21 04:05:06.123456 rtsw-1 INFO bgp#bgpd[48]: %ADJCHANGE: neighbor "
                 "Ethernet1/8(ctsw-0) in vrf default Up") == "bgp_up rtsw:1/8");
  CHECK(
      bed.said("<28>Nov 21 04:05:06.123456 rtsw-1 WARNING pmon#psud: PSU absence warning: PSU 1 is "
               "not present.") == "psu_fail rtsw:1");
}

TEST_CASE("Arista EOS") {
  SyslogBed bed;
  CHECK(
      bed.said("<189>Nov 21 04:05:06 ctsw-0 Ebra: %LINEPROTO-5-UPDOWN: Line protocol on Interface "
               "Ethernet1/0, changed state to down") == "link_down ctsw:0/0");
  CHECK(bed.said("<189>Nov 21 04:05:06 ctsw-0 Bgp: %BGP-5-ADJCHANGE: peer 10.9.0.2 (VRF default AS "
                 "65001) old state Established event HoldTime new state Idle") ==
        "bgp_down ctsw:0/0 reason=hold_timer");
  CHECK(bed.said(
            "<189>Nov 21 04:05:06 ctsw-0 ConfigAgent: %SYS-5-CONFIG_SESSION_COMMIT_SUCCESS: User "
            "ops committed configuration session CHG77 successfully on vty5 (10.1.1.1)") ==
        "config_commit ctsw:0 change=CHG77");
}

TEST_CASE("Junos, structured and plain") {
  SyslogBed bed;
  CHECK(bed.said("<28>1 2026-11-21T04:05:06.123Z ctsw-0 mib2d 4713 SNMP_TRAP_LINK_DOWN "
                 "[junos@2636.1.1.1.2.29 snmp-interface-index=\"526\"] ifIndex 526, ifAdminStatus "
                 "up(1), ifOperStatus down(2), ifName Ethernet1/1") == "link_down ctsw:0/1");
  CHECK(
      bed.said("<28>Nov 21 04:05:06 ctsw-0 rpd[2101]: RPD_BGP_NEIGHBOR_STATE_CHANGED: BGP peer "
               "10.9.0.2 (External AS 65001) changed state from Established to Idle (event Closed) "
               "(instance master)") == "bgp_down ctsw:0/0 reason=reset");
  CHECK(
      bed.said("<29>Nov 21 04:05:06 ctsw-0 chassisd[1]: CHASSISD_FPC_OFFLINE_NOTICE: Taking FPC 1 "
               "offline: Error") == "card_fail ctsw:0/card:1");
  CHECK(bed.said(
            "<29>Nov 21 04:05:06 ctsw-0 mgd[9]: UI_COMMIT: User 'ops' requested 'commit' operation "
            "(comment: CHG9)") == "config_commit ctsw:0 change=CHG9");
}

TEST_CASE("NX-OS") {
  SyslogBed bed;
  CHECK(bed.said("<189>ctsw-1: 2026 Nov 21 04:05:06.123 UTC: %ETHPORT-5-IF_DOWN_LINK_FAILURE: "
                 "Interface Ethernet1/1 is down (Link failure)") == "link_down ctsw:1/1");
  CHECK(bed.said(
            "<189>ctsw-1: 2026 Nov 21 04:05:06 UTC: %BGP-5-ADJCHANGE:  bgp-65001 [12345] (default) "
            "neighbor rtsw-0 Down - holdtimer expired error") ==
        "bgp_down ctsw:1/0 reason=hold_timer");
  CHECK(bed.said(
            "<186>ctsw-1: 2026 Nov 21 04:05:06 UTC: %MODULE-2-MOD_FAIL: Module 1 (Serial number: "
            "X1) failed") == "card_fail ctsw:1/card:1");
}

TEST_CASE("Cumulus Linux and hosts") {
  SyslogBed bed;
  CHECK(bed.said("<4>Nov 21 04:05:06 rtsw-0 kernel: [12345.678901] Ethernet1/9: Link is Down") ==
        "link_down rtsw:0/9");
  CHECK(
      bed.said("<4>Nov 21 04:05:06 host-1 kernel: [ 1.5] mlx5_core 0000:03:00.0 eth2: Link down") ==
      "nic_down nic:10");
  CHECK(bed.said(
            "<86>Nov 21 04:05:06 host-1 sshd[5]: Accepted publickey for ops from 10.1.1.1 port 9 "
            "ssh2") == "info host:1");
  CHECK(bed.said("<6>Nov 21 04:05:06 host-1 kernel: [ 0.0] Linux version 6.1") ==
        "host_boot host:1");
  CHECK(bed.said("<6>Nov 21 04:05:06 rtsw-1 kernel: [ 0.0] Linux version 6.1") ==
        "device_boot rtsw:1");
  CHECK(bed.reader.counts().benign == 1);
}

TEST_CASE("devices go by name, domain and address; clocks by their zone") {
  SyslogBed bed;
  constexpr std::string_view rest =
      " Ebra: %LINEPROTO-5-UPDOWN: Line protocol on Interface Ethernet1/9, "
      "changed state to up";
  const auto line = [&](std::string_view host) {
    return "<189>Nov 21 04:05:06 " + std::string(host) + std::string(rest);
  };
  CHECK(bed.said(line("rtsw:1")) == "link_up rtsw:1/9");
  CHECK(bed.said(line("rtsw-1.dc2.example.net")) == "link_up rtsw:1/9");
  CHECK(bed.said(line("172.16.0.5")) == "link_up rtsw:1/9");
  CHECK(bed.said(line("unheard-of"), "172.16.0.5") == "link_up rtsw:1/9");
  CHECK(to_text(bed.take(line("rtsw-1")).t) == "2026-11-21T04:05:06.999999999Z");
  CHECK(to_text(bed.take(line("ctsw-1")).t) == "2026-11-21T02:05:06.999999999Z");
  CHECK(bed.reader.counts().wrong_clocks == 1);
}

TEST_CASE("nothing is lost of what nobody understands") {
  SyslogBed bed;
  CHECK(bed.said("<189>Nov 21 04:05:06 sw99 a: b") ==
        "info  message=<189>Nov 21 04:05:06 sw99 a: b");
  CHECK(bed.said("<189>Nov 21 04:05:06 rtsw-0 novelty: b") ==
        "info rtsw:0 message=<189>Nov 21 04:05:06 rtsw-0 novelty: b");
  CHECK(bed.said("no syslog") == "info  message=no syslog");
  CHECK(bed.said("<4>Nov 21 04:05:06 rtsw-0 kernel: Ethernet1/60: Link is Down") ==
        "link_down  entity=rtsw:0/Ethernet1/60");
  const std::string garbage("<\xFF\x00\x01\x80", 5);
  CHECK(bed.take(garbage).kind == EventKind::info);
  bed.take("<189>Nov 21 04:05:06 rtsw-0 " + std::string(60'000, 'x'));
  const model::RecordSet& set = bed.reader.records();
  CHECK(set.attribute(set.rows.back(), "message").size() == 8'192);
  CHECK(set.attribute(set.rows.back(), "message_bytes") == "60028");
  const SyslogCounts& counts = bed.reader.counts();
  CHECK(counts.lines == 6);
  CHECK(counts.unknown_devices == 1);
  CHECK(counts.unknown_messages == 2);
  CHECK(counts.unknown_ports == 1);
  CHECK(counts.malformed == 2);
  CHECK(counts.binary == 1);
  CHECK(set.rows.size() == 6);
  const std::string text = to_text(counts);
  CHECK(text.find("unknown_devices: 1\n  e.g. \"<189>Nov 21") != std::string::npos);
  // Every record is one line of JSON.
  for (const model::Record& row : set.rows)
    CHECK(JsonLine::parse(to_json(bed.fabric, set, row), {}).has_value());
}

TEST_CASE("captured lines carry the time of receipt and the sender") {
  SyslogBed bed;
  bed.reader.take_captured("@1795233907000000000 172.16.0.5 <13>kernel: Ethernet1/9: Link is Down");
  bed.reader.take_captured("@17 - <189>Nov 21 04:05:06 rtsw-1 a: b");
  bed.reader.take_captured("@oops <13>x");
  bed.reader.take_captured("<189>Nov 21 2026 04:05:06 rtsw-1 a: b");
  bed.reader.take_captured("<189>Nov 21 04:05:08 rtsw-1 a: b");  // the year of the line before
  const auto& rows = bed.reader.records().rows;
  CHECK(rows[0].kind == EventKind::link_down);
  CHECK(name(bed.fabric, rows[0].entity) == "rtsw:1/9");
  CHECK(rows[0].t == rows[0].received);
  CHECK(bed.reader.counts().without_time >= 1);
  CHECK(rows[1].received == Timestamp{17});
  CHECK(bed.reader.counts().malformed == 1);
  CHECK(to_text(rows[3].received) == "2026-11-21T04:05:06Z");
  CHECK(to_text(rows[4].t) == "2026-11-21T04:05:08Z");
  CHECK(bed.reader.records().ids[4] == "s5");
}

TEST_CASE("an inventory's mistakes are told with their place") {
  SyslogBed bed;
  const auto refusal = [&](std::string_view csv) {
    const Status added = bed.inventory.add_csv(csv, "inventory.csv");
    return added ? "accepted" : added.error().text();
  };
  CHECK(refusal("address,device\n1.1.1.1,sw9\n").find("inventory.csv:2") != std::string::npos);
  CHECK(refusal("address,device,interface\n1.1.1.2,rtsw:0,eth9\n")
            .find("has no interface \"eth9\"") != std::string::npos);
  CHECK(refusal("address,device\n172.16.0.5,rtsw:0\n").find("is already the address of rtsw:1") !=
        std::string::npos);
  CHECK(refusal("address,device,zone\n,rtsw:0,CET\n").find("is not a time zone") !=
        std::string::npos);
  CHECK(refusal("address\n1.1.1.1\n").find("device") != std::string::npos);
}

}  // namespace
}  // namespace weft::observe::telemetry
