#include "observe/telemetry/prometheus.hpp"

#include <doctest/doctest.h>

#include <string>

namespace weft::observe::telemetry {
namespace {

constexpr Timestamp now{1'767'225'600 * ns_per_s};

struct Bed {
  PrometheusMapping mapping;
  PrometheusReader reader{mapping};

  explicit Bed(std::string_view yaml = "") : mapping(load(yaml)) {}
  static PrometheusMapping load(std::string_view yaml) {
    if (yaml.empty()) return PrometheusMapping::built_in();
    const auto config = parse_yaml(yaml, "m.yaml");
    REQUIRE(config.has_value());
    auto out = PrometheusMapping::from_yaml(*config);
    REQUIRE_MESSAGE(out.has_value(), out.error().text());
    return *std::move(out);
  }
  // "device/component metric[index] value +seconds", one a line.
  std::string said(std::string_view text) {
    std::vector<port::Sample> samples;
    reader.read(text, "host:0", now, samples);
    std::string out;
    for (const port::Sample& s : samples) {
      out += (out.empty() ? "" : "; ") + s.device + "/" + s.component + " " +
             std::string(to_text(s.metric));
      if (s.index != 0) out += "[" + std::to_string(s.index) + "]";
      out += " " + std::to_string(static_cast<long long>(s.value));
      if (s.t != now) out += " +" + std::to_string((s.t.ns - now.ns) / 1'000'000) + "ms";
    }
    return out;
  }
};

TEST_CASE("what exporters say") {
  Bed bed;
  CHECK(bed.said("# HELP node_network_up x\n# TYPE node_network_up gauge\n"
                 "node_network_up{device=\"eth0\"} 1\n"
                 "go_goroutines 13\n") == "host:0/eth0 oper_up 1");
  CHECK(bed.said("node_infiniband_state_id{device=\"mlx5_0\",port=\"1\"} 4") ==
        "host:0/mlx5_0 oper_up 1");
  CHECK(bed.said("node_infiniband_state_id{device=\"mlx5_0\",port=\"1\"} 1") ==
        "host:0/mlx5_0 oper_up 0");
  CHECK(bed.said("node_boot_time_seconds 1.7672250e+09") == "host:0/ uptime_s 600");
  CHECK(bed.said("ifOperStatus{ifDescr=\"x\",ifIndex=\"7\",ifName=\"Ethernet1/7\"} 2\r\n") ==
        "host:0/Ethernet1/7 oper_up 0");
  CHECK(bed.said("sysUpTime 4200") == "host:0/ uptime_s 42");
  CHECK(bed.said("sonic_interface_operational_status{device=\"Ethernet0\"} 1") ==
        "host:0/Ethernet0 oper_up 1");
  CHECK(bed.said("sonic_interface_operational_status{interface=\"Ethernet4\"} 0") ==
        "host:0/Ethernet4 oper_up 0");
  CHECK(
      bed.said("sonic_interface_receive_optic_power_dbm{interface=\"Ethernet4\",optic_unit=\"2\"} "
               "-3") == "host:0/Ethernet4 rx_power_dbm[2] -3");
  CHECK(
      bed.said("interfaces_interface_state_counters_in_octets{interface_name=\"Ethernet1\",source="
               "\"rtsw:0\"} 7e3") == "rtsw:0/Ethernet1 in_octets 7000");
  CHECK(bed.said("node_hwmon_temp_celsius{chip=\"a\",sensor=\"temp1\"} 51") ==
        "host:0/a/temp1 celsius 51");
  CHECK(bed.reader.counts().malformed == 0);
  CHECK(bed.reader.counts().comments == 2);
  CHECK(bed.reader.counts().unmapped == 1);
}

TEST_CASE("stamps, exemplars, escapes, blanks, trailing commas") {
  Bed bed(
      "builtin: false\n"
      "metrics:\n"
      "  - {name: m, metric: in_errors, component: \"<{a}>\", where: {b: 'x*'}}\n"
      "  - {name: m, metric: in_octets, component: \"{a}{a}\"}\n");
  CHECK(bed.said("m{a=\"1\",} 5 1767225601500") == "host:0/11 in_octets 5 +1500ms");
  CHECK(bed.said("m_total{a=\"1\"} 5 1767225602.250 # {trace_id=\"x\"} 0.67 1520879607.789") ==
        "host:0/11 in_octets 5 +2250ms");
  CHECK(bed.said("m_total 5 # {} 1") == "host:0/ in_octets 5");
  CHECK(bed.said(" m { a = \"q\\\"\\\\\\n\" , b=\"xy\"} +5") == "host:0/<q\"\\\n> in_errors 5");
  CHECK(bed.said("m{a=\"}\"} 1e+2 \n\n\n") == "host:0/}} in_octets 100");
  CHECK(bed.reader.counts().malformed == 0);
}

TEST_CASE("no numbers, no lines") {
  Bed bed;
  for (const char* value : {"NaN", "+Inf", "-Inf", "1e999"})
    CHECK(bed.said(std::string("node_network_up{device=\"e\"} ") + value).empty());
  CHECK(bed.reader.counts().not_numbers == 4);
  const char* const bad[] = {"node_network_up",
                             "node_network_up{",
                             "node_network_up{device=\"e\" 1",
                             "node_network_up{device=\"e} 1",
                             "node_network_up{device=\"e\\",
                             "node_network_up{device=e} 1",
                             "node_network_up{=\"e\"} 1",
                             "node_network_up{device=\"e\"}",
                             "node_network_up{device=\"e\"} one",
                             "node_network_up{device=\"e\"} 1 now",
                             "node_network_up{device=\"e\"} 1 2 3",
                             "node_network_up{device=\"e\"} 1 1e300",
                             "9lives 1",
                             "<html>",
                             "\x80\xff\x01"};
  for (const char* line : bad) CHECK_MESSAGE(bed.said(line).empty(), line);
  CHECK(bed.reader.counts().malformed == std::size(bad));
  CHECK(bed.reader.counts().samples.size() == 4);
  std::string labels = "node_network_up{";
  for (int i = 0; i < 65; ++i) labels += "l" + std::to_string(i) + "=\"\",";
  CHECK(bed.said(labels + "} 1").empty());
  CHECK(bed.said("node_network_up{device=\"" + std::string(70'000, 'x') + "\"} 1").empty());
  CHECK(bed.reader.counts().malformed == std::size(bad) + 2);
}

TEST_CASE("a mapping's mistakes have their place") {
  const auto config = parse_yaml(
      "metrics:\n"
      "  - {name: a, metric: oper_upp}\n"
      "  - {name: b, metric: oper_up, component: \"{x\"}\n"
      "  - {metric: oper_up, colour: red}\n",
      "m.yaml");
  REQUIRE(config.has_value());
  const auto mapping = PrometheusMapping::from_yaml(*config);
  REQUIRE_FALSE(mapping.has_value());
  const std::string text = mapping.error().text();
  for (const char* what : {"m.yaml:2:", "m.yaml:3:", "m.yaml:4:", "oper_up", "colour", "name"})
    CHECK_MESSAGE(text.find(what) != std::string::npos, what, " in ", text);
}

}  // namespace
}  // namespace weft::observe::telemetry
