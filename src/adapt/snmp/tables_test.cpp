#include "adapt/snmp/tables.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "adapt/snmp/test_kit.hpp"
#include "adapt/snmp/walk.hpp"

namespace weft::adapt::snmp {
namespace {

using port::Metric;
using test::integer;
using test::text;

Oid oid(std::string_view text) {
  const auto out = parse_oid(text);
  REQUIRE(out.has_value());
  return *out;
}
Value natural(std::uint64_t value) { return {.kind = Value::Kind::natural, .natural = value}; }

struct Device {
  std::vector<Answered> answers{groups().size() + 1};
  Memory memory;

  void put(std::string_view at, Value value) { answers[0].values[oid(at)] = std::move(value); }
  void interface(std::uint32_t index, const std::string& name) {
    put("1.3.6.1.2.1.31.1.1.1.1." + std::to_string(index), text(name));
  }
  void sensor(std::uint32_t index, const std::string& name, int type, int scale, int precision,
              int value, int status = 1) {
    const std::string row = std::to_string(index);
    put("1.3.6.1.2.1.47.1.1.1.1.7." + row, text(name));
    put("1.3.6.1.2.1.99.1.1.1.1." + row, integer(type));
    put("1.3.6.1.2.1.99.1.1.1.2." + row, integer(scale));
    put("1.3.6.1.2.1.99.1.1.1.3." + row, integer(precision));
    put("1.3.6.1.2.1.99.1.1.1.4." + row, integer(value));
    put("1.3.6.1.2.1.99.1.1.1.5." + row, integer(status));
  }
  // Values of one metric: "component=value component/index=value", sorted.
  std::string said(Metric metric) {
    std::vector<std::string> all;
    for (const port::Sample& sample : measure("d", answers, memory)) {
      if (sample.metric != metric) continue;
      std::string one = sample.component;
      if (sample.index != 0) one += "/" + std::to_string(sample.index);
      const auto thousandths = static_cast<long long>(std::llround(sample.value * 1'000));
      all.push_back(one + "=" + std::to_string(thousandths));
    }
    std::ranges::sort(all);
    std::string out;
    for (const std::string& one : all) out += (out.empty() ? "" : " ") + one;
    return out;
  }
};

TEST_CASE("sensors: scale and precision, dBm and watts, lanes, what is unavailable") {
  Device d;
  d.interface(1, "Ethernet1");
  d.interface(11, "Ethernet11");
  d.sensor(300, "Inlet", 8, 9, 1, 253);     // units, one decimal
  d.sensor(301, "ASIC", 8, 8, 0, 61'500);   // milli
  d.sensor(302, "Outlet", 8, 9, 0, 40, 2);  // unavailable
  d.sensor(303, "Broken", 8, 9, 0, 40, 3);
  d.sensor(304, "Ethernet11 Rx Power Lane 2", 14, 9, 2, -351);
  d.sensor(305, "Ethernet1 Tx Power (Channel 4)", 6, 7, 1, 5'000);  // 500.0 uW
  d.sensor(306, "Ethernet1 Rx Power", 6, 8, 4, 0);                  // no light
  d.sensor(307, "Ethernet1 transceiver temperature", 8, 9, 0, 44);
  d.sensor(308, "PSU1 output power", 6, 9, 0, 400);  // no optic
  d.sensor(309, "Ethernet1 Bias", 5, 8, 0, 40);
  d.sensor(310, "Odd", 8, 99, 0, 40);
  CHECK(d.said(Metric::celsius) == "ASIC=61500 Inlet=25300");
  CHECK(d.said(Metric::rx_power_dbm) == "Ethernet11/2=-3510 Ethernet1=-40000");
  CHECK(d.said(Metric::tx_power_dbm) == "Ethernet1/4=-3010");
  CHECK(d.said(Metric::optic_celsius) == "Ethernet1=44000");
}

TEST_CASE("a sensor is of the interface of what holds it") {
  Device d;
  d.interface(7, "xe-0/0/7");
  d.sensor(400, "lane 3 receive power", 14, 9, 0, -4);
  d.put("1.3.6.1.2.1.47.1.1.1.1.4.400", integer(401));  // in a module, in a cage
  d.put("1.3.6.1.2.1.47.1.1.1.1.4.401", integer(402));
  d.put("1.3.6.1.2.1.47.1.3.2.1.2.402.0",
        Value{.kind = Value::Kind::oid, .oid = oid("1.3.6.1.2.1.2.2.1.1.7")});
  CHECK(d.said(Metric::rx_power_dbm) == "xe-0/0/7/3=-4000");
  d.put("1.3.6.1.2.1.47.1.1.1.1.4.402", integer(400));  // parts that hold each other
  CHECK(d.said(Metric::rx_power_dbm) == "xe-0/0/7/3=-4000");
}

TEST_CASE("fans, supplies, cards") {
  Device d;
  d.sensor(500, "Fan 1", 10, 9, 0, 8'000);
  d.sensor(501, "Fan 2", 10, 9, 0, 0);
  d.sensor(502, "Fan 3", 10, 9, 0, 9'000, 3);
  for (const auto& [row, of] : {std::pair{"600", 6}, {"601", 7}, {"602", 9}}) {
    d.put(std::string("1.3.6.1.2.1.47.1.1.1.1.5.") + row, integer(of));
    d.put(std::string("1.3.6.1.2.1.47.1.1.1.1.7.") + row, text("Part" + std::string(row)));
    d.put(std::string("1.3.6.1.2.1.131.1.1.1.3.") + row, integer(2));
  }
  CHECK(d.said(Metric::fan_ok) == "Fan 1=1000 Fan 2=0 Fan 3=0 Part601=0");
  CHECK(d.said(Metric::psu_ok) == "Part600=0");
  CHECK(d.said(Metric::card_ok) == "Part602=0");
}

TEST_CASE("interfaces: the wide counters where there are, names from the better table, sticky") {
  Device d;
  d.put("1.3.6.1.2.1.2.2.1.2.5", text("eth5-by-descr"));
  d.interface(5, "Ethernet5");
  d.put("1.3.6.1.2.1.2.2.1.7.5", integer(1));
  d.put("1.3.6.1.2.1.2.2.1.8.5", integer(2));
  d.put("1.3.6.1.2.1.2.2.1.10.5", natural(7));
  d.put("1.3.6.1.2.1.31.1.1.1.6.5", natural(5'000'000'000));
  d.put("1.3.6.1.2.1.2.2.1.14.5", natural(9));
  CHECK(d.said(Metric::in_octets) == "Ethernet5=5000000000000");
  CHECK(d.said(Metric::in_errors) == "Ethernet5=9000");
  CHECK(d.said(Metric::admin_up) == "Ethernet5=1000");
  CHECK(d.said(Metric::oper_up) == "Ethernet5=0");
  d.put("1.3.6.1.2.1.2.2.1.8.5", integer(4));  // unknown
  CHECK(d.said(Metric::oper_up).empty());
}

TEST_CASE("sessions, load, memory, uptime") {
  Device d;
  d.put("1.3.6.1.2.1.15.3.1.2.10.9.0.1", integer(6));
  d.put("1.3.6.1.2.1.15.3.1.2.10.9.0.2", integer(3));
  d.put("1.3.6.1.2.1.15.3.1.2.10.9.0.3", integer(1));
  d.put("1.3.6.1.2.1.15.3.1.3.10.9.0.3", integer(1));  // stopped by its operator
  CHECK(d.said(Metric::bgp_established) == "10.9.0.1=1000 10.9.0.2=0");
  d.put("1.3.6.1.2.1.25.3.3.1.2.1", integer(20));
  d.put("1.3.6.1.2.1.25.3.3.1.2.2", integer(40));
  CHECK(d.said(Metric::cpu_share) == "=300");
  d.put("1.3.6.1.4.1.2021.4.5.0", integer(1'000));
  d.put("1.3.6.1.4.1.2021.4.6.0", integer(100));
  d.put("1.3.6.1.4.1.2021.4.15.0", integer(400));
  CHECK(d.said(Metric::memory_share) == "=500");
  d.put("1.3.6.1.2.1.1.3.0", natural(1'000));
  CHECK(d.said(Metric::uptime_s) == "=10000");
  d.put("1.3.6.1.2.1.25.1.1.0", natural(9'000));
  CHECK(d.said(Metric::uptime_s) == "=90000");
  d.answers[0].values.erase(oid("1.3.6.1.2.1.25.1.1.0"));
  CHECK(d.said(Metric::uptime_s).empty());  // never the agent's own again: it would be a restart
}

TEST_CASE("a walk ends for every agent") {
  const std::vector<Oid> columns{oid("1.1"), oid("1.2")};
  const auto row = [](std::uint32_t column, std::uint32_t index) { return Oid{1, column, index}; };
  Answers got;
  WalkCounts counts;
  Walk walk(columns, 3);
  CHECK(walk.next() == columns);
  walk.take({{row(1, 1), integer(1)}, {row(2, 1), integer(2)}, {row(1, 2), integer(3)}}, got,
            counts);
  CHECK(walk.next() == std::vector<Oid>{row(1, 2), row(2, 1)});
  // The first column passes into the next, the other goes back.
  walk.take({{row(2, 1), integer(1)}, {row(2, 1), integer(2)}}, got, counts);
  CHECK(walk.next().empty());
  CHECK(counts.loops == 1);
  CHECK(got.size() == 3);

  Walk endless(columns, 3);
  std::uint32_t at = 0;
  int rounds = 0;
  for (; !endless.next().empty(); ++rounds) {
    REQUIRE(rounds < 10);
    ++at;
    endless.take({{row(1, at), integer(1)}, {row(2, at), integer(1)}}, got, counts);
  }
  CHECK(rounds == 4);
  CHECK(counts.cut == 2);

  Walk mute(columns, 3);
  mute.take({}, got, counts);
  CHECK(mute.next().empty());
  CHECK(counts.garbage == 1);
  Walk absent(columns, 3);
  absent.take({{row(1, 1), {}}, {row(2, 1), {}}}, got, counts);
  CHECK(absent.next().empty());
}

TEST_CASE("identifiers") {
  CHECK(parse_oid(".1.3.6") == Oid{1, 3, 6});
  CHECK_FALSE(parse_oid("1..3").has_value());
  CHECK_FALSE(parse_oid("1.x").has_value());
  CHECK_FALSE(parse_oid("1.4294967296").has_value());
  CHECK(to_text(Oid{1, 3, 6}) == "1.3.6");
  CHECK(shown(text(std::string("Ethernet1\0", 10))) == "Ethernet1");
  CHECK(shown(Value{.kind = Value::Kind::address, .text = std::string("\x0a\x09\0\x01", 4)}) ==
        "10.9.0.1");
}

TEST_CASE("targets: mistakes with their place, no secret in a message") {
  const auto good = read_targets(
      "device,address,port,version,community,user,auth,auth_password,priv,priv_password\n"
      "rtsw:0,10.0.0.1,,,lab,,,,,\n"
      "rtsw:1,2001:db8::1,1161,3,,weft,sha256,a long secret,aes,another secret\n",
      "t.csv");
  REQUIRE_MESSAGE(good.has_value(), (good ? "" : good.error().text()));
  CHECK((*good)[1].agent.port == 1'161);
  CHECK((*good)[1].credentials.priv == Credentials::Priv::aes);
  const auto bad = read_targets(
      "device,address,port,version,community,user,auth,auth_password,priv,priv_password\n"
      "a,localhost,,,lab,,,,,\n"
      "b,10.0.0.1,99999,,lab,,,,,\n"
      "c,10.0.0.1,,,,,,,,\n"
      "d,10.0.0.1,,3,,weft,sha,short,,\n"
      "e,10.0.0.1,,3,,weft,none,,aes,long enough\n"
      "f,10.0.0.1,,4,x,,,,,\n",
      "t.csv");
  REQUIRE_FALSE(bad.has_value());
  const std::string text = bad.error().text();
  for (const char* what : {"t.csv:2:", "t.csv:3:", "t.csv:4:", "t.csv:5:", "t.csv:6:", "t.csv:7:"})
    CHECK_MESSAGE(text.find(what) != std::string::npos, what);
  CHECK(text.find("long enough") == std::string::npos);
}

}  // namespace
}  // namespace weft::adapt::snmp
