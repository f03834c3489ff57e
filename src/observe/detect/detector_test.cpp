#include "observe/detect/detector.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/test_effort.hpp"
#include "observe/detect/test_kit.hpp"

namespace weft::observe::detect {
namespace {

using model::EventKind;
using testing::ms;

// Two racks under two spines; rtsw:0 has ports to both spines and its NICs.
constexpr std::string_view small =
    "{generator: ai_zone, racks: 2, hosts_per_rack: 1, gpus_per_host: 2, spines: 2, link: 400 "
    "Gbps}";

// Feeds one rule and says when it was on: "5000-10000 12000-" in ms.
class Bed {
 public:
  explicit Bed(const std::string& keys, const std::string& per = "port")
      : fabric_(testing::make_fabric(small)),
        detector_(fabric_,
                  testing::make_rules("  - {name: r, record: {kind: tx_power}, per: " + per +
                                      ", within: 5 s, " + keys + "}\n"),
                  {.lateness_ns = 0}) {}

  Bed& at(std::int64_t t_ms, EventKind kind, std::string_view name = "rtsw:0/0") {
    detector_.take({.t = {t_ms * ms},
                    .entity = testing::entity(fabric_, name),
                    .signal = signal(kind),
                    .serial = ++serial_});
    return *this;
  }
  Bed& at(std::int64_t t_ms, port::Metric metric, double value,
          std::string_view name = "rtsw:0/0") {
    detector_.take({.t = {t_ms * ms},
                    .entity = testing::entity(fabric_, name),
                    .signal = signal(metric),
                    .value = value});
    return *this;
  }
  std::string until(std::int64_t t_ms) {
    detector_.advance({t_ms * ms});
    std::string out;
    for (const Detection& d : detector_.poll().detections)
      out += d.phase == Detection::Phase::began
                 ? fmt::format("{}{}-", out.empty() ? "" : " ", d.t.ns / ms)
                 : fmt::format("{}", d.t.ns / ms);
    return out;
  }

 private:
  model::Fabric fabric_;
  Detector detector_;
  std::uint64_t serial_ = 0;
};

const std::string down = "when: {count: {kind: link_down, at_least: 2}}";

}  // namespace

TEST_CASE("detect: count, and what lies exactly at the window's end") {
  using enum EventKind;
  CHECK(Bed(down).at(1000, link_down).until(20'000).empty());
  CHECK(Bed(down).at(1000, link_down).at(5999, link_down).until(20'000) == "5999-6000");
  // The window is (T - 5 s, T]: what is five seconds old is out.
  CHECK(Bed(down).at(1000, link_down).at(6000, link_down).until(20'000).empty());
  CHECK(Bed(down).at(1000, link_down).at(1000, link_down).until(20'000) == "1000-6000");
  CHECK(Bed(down).at(1000, link_down).at(1000, link_up).until(20'000).empty());
  // Each group for itself.
  CHECK(Bed(down).at(1000, link_down).at(1000, link_down, "rtsw:0/1").until(20'000).empty());
  CHECK(Bed(down, "device").at(1000, link_down).at(1000, link_down, "rtsw:0/1").until(20'000) ==
        "1000-6000");
}

TEST_CASE("detect: distinct parts and shares of ports") {
  using enum EventKind;
  const std::string distinct = "when: {count: {kind: link_down, at_least: 2, distinct: port}}";
  CHECK(Bed(distinct, "device").at(0, link_down).at(1, link_down).until(20'000).empty());
  CHECK(Bed(distinct, "device").at(0, link_down).at(1, link_down, "rtsw:0/1").until(20'000) ==
        "1-5000");
  // rtsw:0 has four wired ports.
  const std::string share = "when: {count: {kind: link_down, share_of_ports: 0.75}}";
  CHECK(Bed(share, "device").at(0, link_down).at(1, link_down, "rtsw:0/1").until(9'000).empty());
  CHECK(Bed(share, "device")
            .at(0, link_down)
            .at(1, link_down, "rtsw:0/1")
            .at(2, link_down, "rtsw:0/2")
            .until(9'000) == "2-5000");
}

TEST_CASE("detect: rates of events and counters") {
  using port::Metric;
  const std::string events = "when: {rate: {kind: link_down, above: 0.3}}";
  using enum EventKind;
  CHECK(Bed(events).at(0, link_down).until(9'000).empty());
  CHECK(Bed(events).at(0, link_down).at(100, link_down).until(9'000) == "100-5000");
  const std::string errors = "when: {rate: {metric: in_errors, above: 1}}";
  CHECK(Bed(errors).at(0, Metric::in_errors, 900).until(9'000).empty());  // since when, who knows
  CHECK(Bed(errors).at(0, Metric::in_errors, 900).at(1000, Metric::in_errors, 905).until(9'000) ==
        "");  // exactly 1/s is not above it
  CHECK(Bed(errors).at(0, Metric::in_errors, 900).at(1000, Metric::in_errors, 906).until(9'000) ==
        "1000-6000");
  // A counter that fell started again: what it lost is not known.
  CHECK(Bed(errors).at(0, Metric::in_errors, 900).at(1000, Metric::in_errors, 100).until(9'000) ==
        "");
  // Nothing is said of a time that nobody looked at.
  CHECK(Bed(errors).at(0, Metric::in_errors, 0).at(5000, Metric::in_errors, 90).until(9'000) == "");
  const std::string slow = "when: {rate: {metric: in_packets, below: 2}}";
  CHECK(Bed(slow).until(9'000).empty());
  CHECK(Bed(slow).at(0, Metric::in_packets, 5).until(9'000) == "0-5000");
}

TEST_CASE("detect: values that last") {
  using port::Metric;
  const std::string dark = "when: {value: {metric: rx_power_dbm, below: -12, for: 2 s}}";
  const auto light = Metric::rx_power_dbm;
  CHECK(Bed(dark).at(0, light, -13).until(9'000).empty());
  CHECK(Bed(dark).at(0, light, -13).at(1999, light, -13).until(9'000).empty());
  CHECK(Bed(dark).at(0, light, -13).at(2000, light, -13).until(9'000) == "2000-7000");
  CHECK(Bed(dark).at(0, light, -13).at(1000, light, -12).at(2000, light, -13).until(9'000) == "");
  CHECK(Bed(dark).at(0, light, -13).at(2000, light, -13).at(3000, light, -3).until(9'000) ==
        "2000-3000");
  // A silence of a whole window breaks it.
  CHECK(Bed(dark).at(0, light, -13).at(5000, light, -13).until(9'000) == "");
}

TEST_CASE("detect: changes over a window") {
  using port::Metric;
  const std::string falls = "when: {change: {metric: rx_power_dbm, below: -1}}";
  const auto light = Metric::rx_power_dbm;
  CHECK(Bed(falls).at(0, light, -3).at(1000, light, -4).until(9'000).empty());
  CHECK(Bed(falls).at(0, light, -3).at(1000, light, -4.5).until(9'000) == "1000-5000");
  CHECK(Bed(falls).at(0, light, -3).at(1000, light, -4.5).at(4000, light, -6).until(20'000) ==
        "1000-6000");
}

TEST_CASE("detect: absence, from the first sign of a group or the last of the kind") {
  using enum EventKind;
  const std::string gone = "when: {absent: {kind: bgp_up, for: 3 s}}";
  CHECK(Bed(gone).until(90'000).empty());
  CHECK(Bed(gone).at(0, bgp_up).until(2'999) == "");
  CHECK(Bed(gone).at(0, bgp_up).until(90'000) == "3000-");
  CHECK(Bed(gone).at(0, bgp_up).at(3000, bgp_up).at(5000, bgp_up).until(7'000) == "");
  CHECK(Bed(gone).at(0, bgp_up).at(4000, bgp_up).until(90'000) == "3000-4000 7000-");
  const std::string stays =
      "when: {all: [{count: {kind: link_down}}, {absent: {kind: link_up, for: 3 s}}]}";
  CHECK(Bed(stays).at(0, link_down).until(90'000) == "3000-5000");
  CHECK(Bed(stays).at(0, link_down).at(2000, link_up).until(90'000) == "");
}

TEST_CASE("detect: what is said of a device counts for each of its parts") {
  using enum EventKind;
  const std::string lone =
      "when: {all: [{count: {kind: link_down}}, {not: {count: {kind: device_boot}}}]}";
  CHECK(Bed(lone).at(1000, link_down).until(20'000) == "1000-6000");
  CHECK(Bed(lone).at(0, device_boot, "rtsw:0").at(1000, link_down).until(20'000) == "5000-6000");
  CHECK(Bed(lone).at(0, device_boot, "rtsw:1").at(1000, link_down).until(20'000) == "1000-6000");
  CHECK(Bed(lone).at(1000, link_down).at(2000, device_boot, "rtsw:0").until(20'000) == "1000-2000");
}

TEST_CASE("detect: one detection while it lasts, with pauses shorter than hold") {
  using enum EventKind;
  const std::string one = "hold: 2 s, when: {count: {kind: link_down}}";
  CHECK(Bed(one).at(0, link_down).until(6'999) == "0-");
  CHECK(Bed(one).at(0, link_down).until(7'001) == "0-5000");
  CHECK(Bed(one).at(0, link_down).at(7000, link_down).until(90'000) == "0-12000");
  CHECK(Bed(one).at(0, link_down).at(7001, link_down).until(90'000) == "0-5000 7001-12001");
}

// 144 ports in four cards of 36; those of card 1 fail, one in 20 ms, their sessions a little
// later; elsewhere two single links fail.
//   ctsw:0 | 0..35 | 36..71 xxxx | 72..107 | 108..143 |
TEST_CASE("detect: a line card is one detection with all of its members, and nothing else") {
  const model::Fabric fabric =
      testing::make_fabric("{generator: ai_zone, racks: 144, spines: 2, link: 400 Gbps}");
  Detector detector(fabric, default_rules(), {});
  std::uint64_t serial = 0;
  const auto take = [&](std::int64_t t, EventKind kind, const std::string& name) {
    detector.take({.t = {t},
                   .entity = testing::entity(fabric, name),
                   .signal = signal(kind),
                   .serial = ++serial});
  };
  const std::int64_t start = 100 * ns_per_s;
  for (int i = 0; i < 36; ++i) {
    take(start + std::int64_t{i} * 20 * ms, EventKind::link_down, fmt::format("ctsw:0/{}", 36 + i));
    take(start + std::int64_t{i} * 20 * ms + 50 * ms, EventKind::bgp_down,
         fmt::format("ctsw:0/{}", 36 + i));
  }
  take(start + 100 * ms, EventKind::link_down, "ctsw:0/3");
  take(start + 100 * ms, EventKind::link_down, "ctsw:1/40");
  detector.advance({start + 200 * ns_per_s});
  const Detector::Output out = detector.poll();
  REQUIRE(out.detections.size() == 2);
  const Detection& began = out.detections.front();
  CHECK(detector.rules()[began.rule].name == "line_card_down");
  CHECK(name(fabric, began.entity) == "ctsw:0/card:1");
  CHECK(began.t.ns == start + std::int64_t{17} * 20 * ms);  // the 18th
  CHECK(began.told.ns - began.t.ns == 500 * ms);
  CHECK(began.members.size() == 72);
  CHECK(began.member_count == 72);
  const Detection& ended = out.detections.back();
  CHECK(ended.phase == Detection::Phase::ended);
  CHECK(ended.group == began.group);
  CHECK(ended.members.empty());
  CHECK(out.singles == std::vector<std::uint64_t>{73, 74});
  CHECK(out.folded.size() == 72);

  model::RecordSet set;
  const auto name_of = [](std::uint64_t n) { return fmt::format("s{}", n); };
  const model::Record& row = add_record(set, began, detector.rules()[began.rule], "d1", name_of);
  CHECK(row.kind == EventKind::card_fail);
  CHECK(row.value == 72);
  CHECK(set.attribute(row, "detection") == "line_card_down");
  CHECK(set.attribute(row, "members").starts_with("s1 s2 s3 "));
  CHECK(add_record(set, ended, detector.rules()[ended.rule], "d2", name_of).kind ==
        EventKind::card_ok);
}

TEST_CASE("detect: 17 of 36 ports are single failures, told half a second late") {
  const model::Fabric fabric =
      testing::make_fabric("{generator: ai_zone, racks: 144, spines: 2, link: 400 Gbps}");
  Detector detector(fabric, default_rules(), {});
  for (std::uint64_t i = 0; i < 17; ++i)
    detector.take({.t = {ns_per_s},
                   .entity = testing::entity(fabric, fmt::format("ctsw:0/{}", 36 + i)),
                   .signal = signal(EventKind::link_down),
                   .serial = i});
  detector.advance({ns_per_s + 700 * ms});
  CHECK(detector.poll().singles.empty());
  detector.advance({ns_per_s + 701 * ms});
  const Detector::Output out = detector.poll();
  CHECK(out.singles.size() == 17);
  CHECK(out.detections.empty());
}

TEST_CASE("detect: what comes too late is told and counted, not looked at") {
  const model::Fabric fabric = testing::make_fabric(small);
  Detector detector(fabric,
                    testing::make_rules("  - {name: r, record: {kind: tx_power}, per: "
                                        "port, within: 5 s, " +
                                        down + "}\n"),
                    {.lateness_ns = ns_per_s});
  const auto take = [&](std::int64_t t, std::uint64_t serial) {
    detector.take({.t = {t},
                   .entity = testing::entity(fabric, "rtsw:0/0"),
                   .signal = signal(EventKind::link_down),
                   .serial = serial});
  };
  take(3 * ns_per_s, 1);
  take(2 * ns_per_s - 1, 2);
  CHECK(detector.counts().late == 1);
  take(2 * ns_per_s, 3);
  CHECK(detector.counts().late == 1);
  const auto out = detector.finish();
  CHECK(out.detections.size() == 1);
  CHECK(out.singles == std::vector<std::uint64_t>{2, 3, 1});
}

TEST_CASE("detect: memory has its bounds, and what is forgotten is counted") {
  const model::Fabric fabric = testing::make_fabric(small);
  const Rules rules = testing::make_rules(
      "  - {name: r, record: {kind: tx_power}, per: device, within: 1 h, suppress: [link_up], "
      "wait: 0 s, hold: 1 h, when: {count: {kind: link_down, at_least: 2}}}\n");
  Detector detector(fabric, rules,
                    {.lateness_ns = 0, .events_max = 100, .members_max = 10, .waiting_max = 50});
  std::size_t singles = 0;
  constexpr std::uint64_t events = test_effort(100'000);
  for (std::uint64_t i = 0; i < events; ++i)
    detector.take({.t = {static_cast<std::int64_t>(i)},
                   .entity = testing::entity(fabric, "rtsw:0/0"),
                   .signal = signal(i % 2 == 0 ? EventKind::link_down : EventKind::link_up),
                   .serial = i});
  const auto out = detector.finish();
  singles += out.singles.size();
  REQUIRE(out.detections.size() == 1);
  CHECK(out.detections.front().members.size() <= 10);
  CHECK(singles == events / 2 + 1);  // link_down, and the first link_up
  CHECK(detector.counts().evicted == 2 * events - events / 2 - 200);
  // All at one moment, which cannot be put in order before it is over.
  Detector crowded(fabric, rules, {.lateness_ns = ns_per_s, .waiting_max = 50});
  for (std::uint64_t i = 0; i < 1000; ++i)
    crowded.take({.t = {0},
                  .entity = testing::entity(fabric, "rtsw:0/0"),
                  .signal = signal(EventKind::link_down),
                  .serial = i});
  CHECK(crowded.finish().singles.size() == 1000);
  CHECK(crowded.counts().hurried + crowded.counts().late > 0);
}

}  // namespace weft::observe::detect
