#include "observe/telemetry/metrics.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/config.hpp"
#include "base/line_reader.hpp"
#include "base/rng.hpp"
#include "base/test_approx.hpp"
#include "model/events/entity.hpp"
#include "model/formats/test_fabric.hpp"

namespace weft::observe::telemetry {
namespace {

using port::Metric;
using port::Sample;

constexpr std::int64_t start_s = 1'767'225'600;  // 2026-01-01T00:00:00Z

Timestamp at(double seconds) {
  return {start_s * ns_per_s + static_cast<std::int64_t>(seconds * 1e9)};
}

//   ctsw:0   ctsw:1        ports of rtsw:0: 0 to 7 to the NICs of host:0, 8 and 9 upwards
//     |  \ /   |
//   rtsw:0   rtsw:1
//     |        |
//   host:0   host:1
struct Bed {
  model::Fabric fabric;
  Inventory inventory;
  MetricRules rules = default_metric_rules();
  MetricReader reader;

  static model::Fabric build() {
    return model::testing::make_fabric(
        "{generator: ai_zone, racks: 2, hosts_per_rack: 1, spines: 2, link: 400 Gbps}");
  }
  explicit Bed(std::string_view yaml = "")
      : fabric(build()), inventory(fabric), rules(read(yaml)), reader(inventory, rules, {}) {}
  static MetricRules read(std::string_view yaml) {
    const auto config = parse_yaml(yaml, "rules.yaml");
    REQUIRE(config.has_value());
    auto out = read_metric_rules(*config);
    REQUIRE_MESSAGE(out.has_value(), (out ? "" : out.error().text()));
    return *std::move(out);
  }

  void take(double t, std::string device, std::string part, Metric metric, double value,
            std::uint32_t index = 0) {
    const std::vector<Sample> one{
        {at(t), std::move(device), std::move(part), metric, index, value}};
    reader.take(one, at(t));
  }
  // "kind entity t..until index=...; ..." of what was said since, times in seconds.
  std::string said() {
    const model::RecordSet set = reader.take_records();
    std::string out;
    for (const model::Record& row : set.rows) {
      const auto s = [](Timestamp t) {
        return std::to_string((t.ns - start_s * ns_per_s) / ns_per_s);
      };
      out += out.empty() ? "" : "; ";
      out += std::string(to_text(row.kind)) + " " + name(fabric, row.entity) + " " + s(row.t) +
             ".." + s(row.until);
      for (const auto& [key, value] : set.attrs[row.attrs])
        out.append(" ").append(key).append("=").append(value);
    }
    return out;
  }
};

const std::string port8 = "Ethernet1/8";

TEST_CASE("a port that a poll finds down went down at some time since the poll before") {
  Bed bed;
  for (const double t : {0.0, 30.0}) bed.take(t, "rtsw:0", port8, Metric::oper_up, 1);
  CHECK(bed.said().empty());
  bed.take(60, "rtsw:0", port8, Metric::oper_up, 0);
  CHECK(bed.said() == "interface_down rtsw:0/8 30..60");
  // Told once: the end says how long it was.
  for (const double t : {90.0, 180.0, 900.0}) bed.take(t, "rtsw:0", port8, Metric::oper_up, 0);
  CHECK(bed.said().empty());
  bed.take(930, "rtsw-0.dc1.example.net", port8, Metric::oper_up, 1);
  CHECK(bed.said() == "link_up rtsw:0/8 900..930");
}

TEST_CASE("what is down from the first is told of ports of the fabric, not of empty cages") {
  Bed bed;
  bed.take(5, "rtsw:0", port8, Metric::oper_up, 0);
  CHECK(bed.said() == "interface_down rtsw:0/8 5..5");
  for (const double t : {5.0, 35.0}) bed.take(t, "rtsw:0", "Ethernet9/9", Metric::oper_up, 0);
  CHECK(bed.said().empty());
  bed.take(65, "rtsw:0", "Ethernet9/9", Metric::oper_up, 1);
  bed.take(95, "rtsw:0", "Ethernet9/9", Metric::oper_up, 0);
  CHECK(bed.said() == "interface_down  65..95 entity=rtsw:0/Ethernet9/9");
  CHECK(bed.reader.counts().unknown_parts == 4);
}

TEST_CASE("a port that was set down says nothing of itself, wherever in the poll that stands") {
  Bed bed;
  const auto poll = [&](double t, double admin, double oper) {
    const std::vector<Sample> both{{at(t), "rtsw:0", port8, Metric::oper_up, 0, oper},
                                   {at(t), "rtsw:0", port8, Metric::admin_up, 0, admin}};
    bed.reader.take(both, at(t));
  };
  poll(0, 1, 1);
  poll(30, 0, 0);
  poll(60, 0, 0);
  CHECK(bed.said().empty());
  poll(90, 1, 0);
  CHECK(bed.said() == "interface_down rtsw:0/8 60..90");
}

TEST_CASE("a host's ports are NICs") {
  Bed bed;
  bed.take(0, "host:1", "mlx5_2", Metric::oper_up, 1);
  bed.take(15, "host:1", "mlx5_2", Metric::oper_up, 0);
  bed.take(30, "host:1", "eth2", Metric::oper_up, 1);  // the same NIC by its other name
  const std::string nic =
      bed.fabric.name(bed.inventory.nic(bed.inventory.device("host:1"), "eth2"));
  CHECK(bed.said() == "nic_down " + nic + " 0..15; nic_up " + nic + " 15..30");
}

TEST_CASE("bad frames are judged against packets, and per second where nobody counts those") {
  Bed bed;
  const auto poll = [&](double t, const char* part, double errors, double packets) {
    std::vector<Sample> both{{at(t), "ctsw:1", part, Metric::in_errors, 0, errors}};
    if (packets >= 0) both.push_back({at(t), "ctsw:1", part, Metric::in_packets, 0, packets});
    bed.reader.take(both, at(t));
  };
  const char* port = "Ethernet1/0";
  poll(0, port, 7, 0);
  poll(30, port, 107, 1e9);  // 100 of 1e9: 1e-7 is not beyond 1e-7
  CHECK(bed.said().empty());
  poll(60, port, 308, 2e9);  // 2e-7
  CHECK(bed.said() == "crc_errors ctsw:1/0 30..60");
  poll(90, port, 358, 3e9);  // 5e-8 is below the beginning, above the end; told again after 60 s
  CHECK(bed.said().empty());
  poll(120, port, 408, 4e9);
  CHECK(bed.said() == "crc_errors ctsw:1/0 90..120");
  poll(150, port, 409, 5e9);  // 1e-9: over
  poll(180, port, 459, 6e9);  // 5e-8 does not begin
  CHECK(bed.said().empty());
  // Nothing but bad frames: all of them are bad.
  poll(210, port, 559, 6e9);
  CHECK(bed.said() == "crc_errors ctsw:1/0 180..210");
  poll(0, "Ethernet1/1", 0, -1);
  poll(30, "Ethernet1/1", 20, -1);
  CHECK(bed.said().empty());
  poll(60, "Ethernet1/1", 60, -1);
  CHECK(bed.said() == "crc_errors ctsw:1/1 30..60");
}

TEST_CASE("counters wrap at 32 and 64 bits, begin anew, and are not heard of for long") {
  const double half = 4'294'967'296.0, whole = half * half;
  for (const double limit : {half, whole}) {
    Bed bed;
    const double last = limit == half ? limit - 100 : limit - 8'192;
    bed.take(0, "ctsw:1", "Ethernet1/0", Metric::out_discards, last);
    bed.take(10, "ctsw:1", "Ethernet1/0", Metric::out_discards, limit == half ? 1'900 : 0);
    CHECK(bed.said() == "discards ctsw:1/0 0..10");
    CHECK(bed.reader.counts().wraps == 1);
  }
  Bed bed;
  bed.take(0, "ctsw:1", "Ethernet1/0", Metric::out_discards, 1e6);
  bed.take(10, "ctsw:1", "Ethernet1/0", Metric::out_discards, 5e4);  // somebody cleared it
  CHECK(bed.reader.counts().resets == 1);
  bed.take(2'000, "ctsw:1", "Ethernet1/0", Metric::out_discards, 9e9);
  CHECK(bed.reader.counts().gaps == 1);
  CHECK(bed.said().empty());
  bed.take(2'010, "ctsw:1", "Ethernet1/0", Metric::out_discards, 9e9 + 2'000);
  CHECK(bed.said() == "discards ctsw:1/0 2000..2010");
}

TEST_CASE("polls nearer than the counters' own pace are taken together") {
  Bed bed;
  // 3,000 in a second, then nothing: 600 a second over five.
  for (int t = 0; t <= 5; ++t)
    bed.take(t, "ctsw:1", "Ethernet1/0", Metric::out_discards, t == 0 ? 0 : 3'000);
  const model::RecordSet set = bed.reader.take_records();
  REQUIRE(set.rows.size() == 1);
  CHECK(set.rows[0].value == approx(600));
  CHECK(set.rows[0].t == at(0));
  CHECK(set.rows[0].until == at(5));
}

TEST_CASE("a device that started anew: said when, and its counters begin there") {
  Bed bed;
  const auto poll = [&](double t, double uptime, double errors) {
    const std::vector<Sample> both{{at(t), "rtsw:1", port8, Metric::out_discards, 0, errors},
                                   {at(t), "rtsw:1", "", Metric::uptime_s, 0, uptime}};
    bed.reader.take(both, at(t));
  };
  poll(0, 1'000, 4'294'967'290.0);
  poll(30, 1'030, 4'294'967'290.0);
  CHECK(bed.said().empty());
  poll(60, 10, 5'000);  // without the uptime this would be a wrap, and discards
  CHECK(bed.said() == "device_boot rtsw:1 50..50");
  CHECK(bed.reader.counts().wraps == 0);
  poll(90, 40, 5'000);
  CHECK(bed.said().empty());
  // Longer unheard of than it runs: started in between, though its uptime grew.
  poll(700, 400, 0);
  CHECK(bed.said() == "device_boot rtsw:1 300..300");
  // 497 days: the uptime's own counter runs over.
  bed.take(0, "ctsw:0", "", Metric::uptime_s, 42'949'670);
  bed.take(30, "ctsw:0", "", Metric::uptime_s, 27.3);
  CHECK(bed.said().empty());
  bed.take(0, "host:0", "", Metric::uptime_s, 500);
  bed.take(30, "host:0", "", Metric::uptime_s, 20);
  CHECK(bed.said() == "host_boot host:0 10..10");
  CHECK(bed.reader.counts().restarts == 3);
}

TEST_CASE("levels: two thresholds, a mean of its own, lanes apart") {
  Bed bed;
  const auto light = [&](double t, double dbm, std::uint32_t lane = 0) {
    bed.take(t, "rtsw:0", port8, Metric::rx_power_dbm, dbm, lane);
  };
  light(0, -9.9);
  light(30, -10.1);
  CHECK(bed.said() == "rx_power rtsw:0/8 0..30");
  light(60, -9.5);  // in between: lasts, told again after a minute
  CHECK(bed.said().empty());
  light(90, -9.5);
  CHECK(bed.said() == "rx_power rtsw:0/8 60..90");
  light(120, -8.9);
  light(150, -9.9);
  CHECK(bed.said().empty());
  // Lane 3 loses 4 dB of its own light, well above the limit for all.
  for (double t = 0; t <= 1'200; t += 30) light(t, -1, 3);
  CHECK(bed.said().empty());
  light(1'230, -5, 3);
  CHECK(bed.said() == "rx_power rtsw:0/8 1200..1230 index=3");
  light(1'260, -3.5, 3);
  light(1'290, -2.5, 3);  // within 2 dB again
  light(1'320, -3.5, 3);
  CHECK(bed.said().empty());
  // A young series has no mean to fall from.
  light(2'000, 0, 4);
  light(2'030, -6, 4);
  CHECK(bed.said().empty());
}

TEST_CASE("parts of devices: which of several, so many polls in a row, cards") {
  Bed bed;
  for (const double t : {0.0, 30.0, 60.0}) bed.take(t, "ctsw:0", "Fan 2/1", Metric::fan_ok, t < 30);
  CHECK(bed.said() == "fan_fail ctsw:0 0..60 index=Fan 2/1");
  for (double t = 0; t <= 240; t += 30)
    bed.take(t, "ctsw:0", "", Metric::cpu_share, t > 30 ? 0.99 : 0.2);
  CHECK(bed.said() ==
        "cpu_high ctsw:0 30..120; cpu_high ctsw:0 150..180; cpu_high ctsw:0 210..240");
  bed.take(0, "ctsw:0", "Linecard1", Metric::card_ok, 1);
  bed.take(30, "ctsw:0", "Linecard1", Metric::card_ok, 0);
  CHECK(bed.said() == "card_fail ctsw:0/card:1 0..30 index=Linecard1");
  for (const double t : {0.0, 30.0, 60.0, 90.0})
    bed.take(t, "ctsw:1", "", Metric::reachable, t < 30 ? 1 : 0);
  CHECK(bed.said() == "device_unreachable ctsw:1 0..60");
}

TEST_CASE("sessions are of the port towards the neighbour") {
  Bed bed;
  bed.take(0, "rtsw:0", "ctsw:1", Metric::bgp_established, 1);
  bed.take(30, "rtsw:0", "ctsw:1", Metric::bgp_established, 0);
  bed.take(60, "rtsw:0", "Ethernet1/9", Metric::bgp_established, 1);  // the same port
  CHECK(bed.said() == "bgp_down rtsw:0/9 0..30; bgp_up rtsw:0/9 30..60");
}

TEST_CASE("down and up again between two polls is seen by the count of changes") {
  Bed bed;
  const auto poll = [&](double t, double changes) {
    bed.take(t, "rtsw:0", port8, Metric::carrier_changes, changes);
  };
  poll(0, 4);
  poll(30, 4);
  poll(60, 5);  // once: the poll of its state says which way
  CHECK(bed.said().empty());
  poll(90, 7);
  CHECK(bed.said() == "link_down rtsw:0/8 60..90; link_up rtsw:0/8 60..90");
}

TEST_CASE("late, doubled and impossible samples, clocks far off, names that nobody knows") {
  Bed bed;
  bed.take(60, "rtsw:0", port8, Metric::oper_up, 1);
  bed.take(60, "rtsw:0", port8, Metric::oper_up, 0);
  bed.take(30, "rtsw:0", port8, Metric::oper_up, 0);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  bed.take(90, "rtsw:0", port8, Metric::oper_up, nan);
  bed.take(90, "rtsw:0", port8, Metric::in_errors, -1);
  bed.take(90, "rtsw:0", port8, Metric::in_errors, 1 / 0.0);
  CHECK(bed.said().empty());
  CHECK(bed.reader.counts().duplicates == 1);
  CHECK(bed.reader.counts().late == 1);
  CHECK(bed.reader.counts().invalid == 3);
  // A clock three hours ahead: taken for of its receipt, so that later ones still count.
  const std::vector<Sample> ahead{{at(90 + 3 * 3'600), "rtsw:0", port8, Metric::oper_up, 0, 0}};
  bed.reader.take(ahead, at(90));
  CHECK(bed.said() == "interface_down rtsw:0/8 60..90");
  const std::vector<Sample> first{{{INT64_MIN}, "rtsw:0", port8, Metric::oper_up, 0, 1}};
  bed.reader.take(first, at(120));
  CHECK(bed.said() == "link_up rtsw:0/8 90..120");
  CHECK(bed.reader.counts().wrong_clocks == 2);
  bed.take(0, "who", "eth0", Metric::oper_up, 1);
  bed.take(30, "who", "eth0", Metric::oper_up, 0);
  CHECK(bed.said() == "interface_down  0..30 entity=who/eth0");
  CHECK(bed.reader.counts().unknown_devices == 2);
  CHECK(to_text(bed.reader.counts()).find("e.g. \"who\"") != std::string::npos);
}

TEST_CASE("indexes are bounded") {
  Bed bed;
  for (std::uint32_t i = 0; i < 100; ++i)
    bed.take(1, "rtsw:0", port8, Metric::queue_bytes, 1, i * 1'000);
  CHECK(bed.reader.counts().refused == 36);
}

// Whatever comes in whatever order: it makes records that read back, the same ones twice, and of
// each series beginnings and ends of a pair in turn.
TEST_CASE("random samples") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    std::string first;
    for (int round = 0; round < 2; ++round) {
      Bed bed;
      Rng rng(seed);
      for (int i = 0; i < 3'000; ++i) {
        std::vector<Sample> poll;
        for (std::uint64_t n = rng.below(4); n > 0; --n)
          poll.push_back(
              {at(i + static_cast<double>(rng.below(9))), "rtsw:" + std::to_string(rng.below(3)),
               "Ethernet1/" + std::to_string(8 + rng.below(3)),
               static_cast<Metric>(rng.below(port::metric_count)),
               static_cast<std::uint32_t>(rng.below(2)),
               static_cast<double>(rng.below(1'000)) * std::pow(10, rng.below(7)) / 1e3});
        bed.reader.take(poll, at(i));
      }
      const model::RecordSet set = bed.reader.take_records();
      std::string text;
      for (const model::Record& row : set.rows) {
        CHECK(row.t <= row.until);
        text += to_json(bed.fabric, set, row) + "\n";
      }
      LineReader lines(text, "records");
      model::RecordCounts counts;
      const auto again = model::read_records(bed.fabric, lines, counts);
      REQUIRE_MESSAGE(again.has_value(), (again ? "" : again.error().text()));
      CHECK(again->rows.size() == set.rows.size());
      CHECK(set.rows.size() > 100);
      if (round == 0) first = text;
      CHECK(text == first);
    }
  }
}

TEST_CASE("a rule file: laid over the defaults, mistakes with their place") {
  Bed bed(
      "rules: {heat: null, inlet: {metric: celsius, component: 'inlet*', kind: temperature_high, "
      "above: [45, 40]}}");
  bed.take(0, "ctsw:0", "inlet 1", Metric::celsius, 46);
  bed.take(0, "ctsw:0", "outlet", Metric::celsius, 200);
  CHECK(bed.said() == "temperature_high ctsw:0 0..0 index=inlet 1");

  const auto wrong = parse_yaml(
      "repeat: 30 d\n"
      "rules:\n"
      "  port_down: {below: [0.5, 0.4]}\n"
      "  fan: {rate: 3}\n"
      "  mine: {metric: cpu_shere, kind: info, above: 1}\n"
      "  other: {metric: in_errors, kind: crc_errors, above: 1}\n",
      "rules.yaml");
  REQUIRE(wrong.has_value());
  const auto rules = read_metric_rules(*wrong);
  REQUIRE_FALSE(rules.has_value());
  const std::string text = rules.error().text();
  for (const char* what : {"rules.yaml:1:", "rules.yaml:3:", "rules.yaml:5:", "cpu_share",
                           "ends on the wrong side", "is a counter", "is a level", "30 s"})
    CHECK_MESSAGE(text.find(what) != std::string::npos, what, " in ", text);
}

TEST_CASE("an empty file or section means the default rules") {
  const MetricRules expected = default_metric_rules();
  const auto file = parse_yaml("rules:\n", "serve.yaml");
  REQUIRE(file.has_value());
  for (const Config& nothing : {Config{}, *file->find("rules"), *parse_yaml("# as it is\n", "r")}) {
    const auto rules = read_metric_rules(nothing);
    REQUIRE_MESSAGE(rules.has_value(), (rules ? "" : rules.error().text()));
    CHECK(rules->repeat_ns == expected.repeat_ns);
    CHECK(rules->rules.size() == expected.rules.size());
  }
}

TEST_CASE("globs") {
  CHECK(matches_glob("", ""));
  CHECK(matches_glob("*", ""));
  CHECK(matches_glob("a*c*e", "abcde"));
  CHECK(matches_glob("a*c", "acbc"));
  CHECK_FALSE(matches_glob("a*c", "acb"));
  CHECK_FALSE(matches_glob("", "a"));
  CHECK_FALSE(matches_glob("a", ""));
}

}  // namespace
}  // namespace weft::observe::telemetry
