#include "observe/telemetry/prometheus.hpp"

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "base/test_approx.hpp"

namespace weft::observe::telemetry {
namespace {

constexpr Timestamp now{1'767'225'600 * ns_per_s};

struct ScrapeBed {
  PrometheusMapping mapping;
  PrometheusReader reader{mapping};

  explicit ScrapeBed(std::string_view yaml = "") : mapping(load(yaml)) {}
  static PrometheusMapping load(std::string_view yaml) {
    if (yaml.empty()) return PrometheusMapping::built_in();
    const auto config = parse_yaml(yaml, "m.yaml");
    REQUIRE(config.has_value());
    auto out = PrometheusMapping::from_yaml(*config);
    REQUIRE_MESSAGE(out.has_value(), (out ? "" : out.error().text()));
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
  ScrapeBed bed;
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

// What node_exporter 1.5.0 said on a busy machine with two processors, twice, six seconds apart: of
// its 1,087 lines those of processors, memory and file systems.
constexpr std::string_view first_page = R"text(node_cpu_guest_seconds_total{cpu="0",mode="nice"} 0
node_cpu_guest_seconds_total{cpu="0",mode="user"} 0
node_cpu_guest_seconds_total{cpu="1",mode="nice"} 0
node_cpu_guest_seconds_total{cpu="1",mode="user"} 0
# HELP node_cpu_seconds_total Seconds the CPUs spent in each mode.
# TYPE node_cpu_seconds_total counter
node_cpu_seconds_total{cpu="0",mode="idle"} 224.92
node_cpu_seconds_total{cpu="0",mode="iowait"} 0.92
node_cpu_seconds_total{cpu="0",mode="irq"} 0
node_cpu_seconds_total{cpu="0",mode="nice"} 292.85
node_cpu_seconds_total{cpu="0",mode="softirq"} 0.07
node_cpu_seconds_total{cpu="0",mode="steal"} 0.98
node_cpu_seconds_total{cpu="0",mode="system"} 167.63
node_cpu_seconds_total{cpu="0",mode="user"} 1258.42
node_cpu_seconds_total{cpu="1",mode="idle"} 205.56
node_cpu_seconds_total{cpu="1",mode="iowait"} 4.91
node_cpu_seconds_total{cpu="1",mode="irq"} 0
node_cpu_seconds_total{cpu="1",mode="nice"} 298.64
node_cpu_seconds_total{cpu="1",mode="softirq"} 1.59
node_cpu_seconds_total{cpu="1",mode="steal"} 0.94
node_cpu_seconds_total{cpu="1",mode="system"} 183.7
node_cpu_seconds_total{cpu="1",mode="user"} 1250.27
node_filesystem_avail_bytes{device="/dev/vda",fstype="ext4",mountpoint="/"} 8.194297856e+10
node_filesystem_avail_bytes{device="/dev/vda",fstype="ext4",mountpoint="/var"} 8.194297856e+10
node_filesystem_avail_bytes{device="tmpfs",fstype="tmpfs",mountpoint="/dev/shm"} 2.5276502016e+10
node_filesystem_readonly{device="/dev/vda",fstype="ext4",mountpoint="/"} 0
node_filesystem_readonly{device="/dev/vda",fstype="ext4",mountpoint="/var"} 0
node_filesystem_readonly{device="tmpfs",fstype="tmpfs",mountpoint="/dev/shm"} 0
node_filesystem_size_bytes{device="/dev/vda",fstype="ext4",mountpoint="/"} 2.70553174016e+11
node_filesystem_size_bytes{device="/dev/vda",fstype="ext4",mountpoint="/var"} 2.70553174016e+11
node_filesystem_size_bytes{device="tmpfs",fstype="tmpfs",mountpoint="/dev/shm"} 2.5276502016e+10
node_memory_MemAvailable_bytes 2.165874688e+10
node_memory_MemFree_bytes 1.89729792e+10
node_memory_MemTotal_bytes 2.5276502016e+10
)text";
constexpr std::string_view second_page = R"text(node_cpu_guest_seconds_total{cpu="0",mode="nice"} 0
node_cpu_guest_seconds_total{cpu="0",mode="user"} 0
node_cpu_guest_seconds_total{cpu="1",mode="nice"} 0
node_cpu_guest_seconds_total{cpu="1",mode="user"} 0
# HELP node_cpu_seconds_total Seconds the CPUs spent in each mode.
# TYPE node_cpu_seconds_total counter
node_cpu_seconds_total{cpu="0",mode="idle"} 224.92
node_cpu_seconds_total{cpu="0",mode="iowait"} 0.92
node_cpu_seconds_total{cpu="0",mode="irq"} 0
node_cpu_seconds_total{cpu="0",mode="nice"} 293.49
node_cpu_seconds_total{cpu="0",mode="softirq"} 0.07
node_cpu_seconds_total{cpu="0",mode="steal"} 0.98
node_cpu_seconds_total{cpu="0",mode="system"} 167.77
node_cpu_seconds_total{cpu="0",mode="user"} 1263.8
node_cpu_seconds_total{cpu="1",mode="idle"} 205.56
node_cpu_seconds_total{cpu="1",mode="iowait"} 4.91
node_cpu_seconds_total{cpu="1",mode="irq"} 0
node_cpu_seconds_total{cpu="1",mode="nice"} 300.84
node_cpu_seconds_total{cpu="1",mode="softirq"} 1.59
node_cpu_seconds_total{cpu="1",mode="steal"} 0.95
node_cpu_seconds_total{cpu="1",mode="system"} 184.17
node_cpu_seconds_total{cpu="1",mode="user"} 1253.74
node_filesystem_avail_bytes{device="/dev/vda",fstype="ext4",mountpoint="/"} 8.1941110784e+10
node_filesystem_avail_bytes{device="/dev/vda",fstype="ext4",mountpoint="/var"} 8.1941110784e+10
node_filesystem_avail_bytes{device="tmpfs",fstype="tmpfs",mountpoint="/dev/shm"} 2.5276502016e+10
node_filesystem_readonly{device="/dev/vda",fstype="ext4",mountpoint="/"} 0
node_filesystem_readonly{device="/dev/vda",fstype="ext4",mountpoint="/var"} 0
node_filesystem_readonly{device="tmpfs",fstype="tmpfs",mountpoint="/dev/shm"} 0
node_filesystem_size_bytes{device="/dev/vda",fstype="ext4",mountpoint="/"} 2.70553174016e+11
node_filesystem_size_bytes{device="/dev/vda",fstype="ext4",mountpoint="/var"} 2.70553174016e+11
node_filesystem_size_bytes{device="tmpfs",fstype="tmpfs",mountpoint="/dev/shm"} 2.5276502016e+10
node_memory_MemAvailable_bytes 2.1480603648e+10
node_memory_MemFree_bytes 1.8801508352e+10
node_memory_MemTotal_bytes 2.5276502016e+10
)text";

// The text with one part replaced, which must be there.
std::string with(std::string_view text, std::string_view before, std::string_view after) {
  std::string out(text);
  const std::size_t at = out.find(before);
  REQUIRE(at != std::string::npos);
  return out.replace(at, before.size(), after);
}

// "component metric", and its value in the bed's reader, of pages six seconds apart.
std::map<std::string, double> shares(ScrapeBed& bed, const std::vector<std::string_view>& pages) {
  std::map<std::string, double> out;
  Timestamp t = now;
  for (const std::string_view text : pages) {
    std::vector<port::Sample> samples;
    bed.reader.read(text, "host:0", t, samples);
    out.clear();
    for (const port::Sample& sample : samples) {
      CHECK(sample.device == "host:0");
      CHECK(sample.t == t);
      CHECK(out.emplace(sample.component + " " + std::string(to_text(sample.metric)), sample.value)
                .second);
    }
    t.ns += 6 * ns_per_s;
  }
  return out;
}

TEST_CASE("shares of node_exporter: processors, memory and disks") {
  ScrapeBed bed;
  const auto first = shares(bed, {first_page});
  CHECK(first.size() == 3);
  CHECK(first.at(" memory_share") == approx(1 - 2.165874688e10 / 2.5276502016e10));
  for (const char* disk : {"/ storage_share", "/var storage_share"})
    CHECK(first.at(disk) == approx(1 - 8.194297856e10 / 2.70553174016e11));
  CHECK(bed.reader.counts().untold.unsteady == 1);
  CHECK(bed.reader.counts().malformed == 0);

  // All of it was busy; seconds that wait for disks are idle ones.
  CHECK(shares(bed, {first_page, second_page}).at(" cpu_share") == 1);
  const double busy = 0.64 + 0.14 + 5.38 + 2.2 + 0.01 + 0.47 + 3.47;
  const std::string idle = with(second_page, "idle\"} 224.92", "idle\"} 228.92");
  ScrapeBed other;
  CHECK(shares(other, {first_page, idle}).at(" cpu_share") == approx(busy / (busy + 4)));
  const std::string waits = with(idle, "iowait\"} 4.91", "iowait\"} 5.91");
  ScrapeBed third;
  CHECK(shares(third, {first_page, waits}).at(" cpu_share") == approx(busy / (busy + 5)));
  CHECK(third.reader.counts().untold.incomplete == 0);
  CHECK(third.reader.counts().shares == 7);
}

TEST_CASE("counters that began anew, or are of other processors, give no share") {
  const std::string one_less =
      with(second_page, "node_cpu_seconds_total{cpu=\"1\",mode=\"user\"} 1253.74\n", "");
  for (const std::string_view next : {std::string_view(one_less), first_page}) {
    ScrapeBed bed;
    CHECK_FALSE(shares(bed, {second_page, next}).contains(" cpu_share"));
    CHECK(bed.reader.counts().untold.unsteady == 2);
    CHECK(shares(bed, {next}).contains(" memory_share"));
  }
  // Idle seconds may go a little back (Linux counts so); that is no beginning.
  ScrapeBed bed;
  const std::string back = with(second_page, "iowait\"} 4.91", "iowait\"} 4.90");
  CHECK(shares(bed, {first_page, back}).at(" cpu_share") == 1);
  // Two devices are not mixed up.
  std::vector<port::Sample> samples;
  bed.reader.read(first_page, "host:1", {now.ns + 60 * ns_per_s}, samples);
  CHECK(samples.size() == 3);
}

TEST_CASE("parts of shares: what is missing, and what makes no sense") {
  ScrapeBed bed;
  CHECK(bed.said("node_memory_MemAvailable_bytes 5\n").empty());
  CHECK(bed.said("node_memory_MemAvailable_bytes 0\nnode_memory_MemTotal_bytes 0\n").empty());
  CHECK(bed.said("node_memory_MemAvailable_bytes 9\nnode_memory_MemTotal_bytes 8\n") ==
        "host:0/ memory_share 0");
  CHECK(bed.reader.counts().untold.incomplete == 1);
  CHECK(to_text(bed.reader.counts()).find("incomplete_shares: 1\n") != std::string::npos);
  ScrapeBed own(
      "builtin: false\nmetrics:\n"
      "  - {name: used, metric: storage_share, component: \"{d}\", share: used}\n"
      "  - {name: size, metric: storage_share, component: \"{d}\", share: total, factor: 0.5}\n");
  CHECK(own.said("used{d=\"b\"} 8\nused{d=\"a\"} 4\nsize{d=\"b\"} 16\nsize{d=\"a\"} 4\n") ==
        "host:0/a storage_share 1; host:0/b storage_share 1");
  for (const char* row :
       {"{name: a, metric: memory_share, share: some}", "{name: a, metric: in_octets, share: left}",
        "{name: a, metric: memory_share, share: left, equals: 1}",
        "{name: a, metric: cpu_share, growth: true}"}) {
    const auto config = parse_yaml(std::string("metrics: [") + row + "]", "m.yaml");
    REQUIRE(config.has_value());
    CHECK_MESSAGE(!PrometheusMapping::from_yaml(*config).has_value(), row);
  }
}

TEST_CASE("stamps, exemplars, escapes, blanks, trailing commas") {
  ScrapeBed bed(
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
  ScrapeBed bed;
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
