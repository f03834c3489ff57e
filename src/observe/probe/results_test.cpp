#include "observe/probe/results.hpp"

#include <doctest/doctest.h>

#include "base/config.hpp"
#include "base/line_reader.hpp"
#include "base/test_approx.hpp"
#include "model/events/evidence.hpp"
#include "model/formats/test_fabric.hpp"

namespace weft::observe::probe {
namespace {

FlowInfo info(const std::string& dst = "nic:4") {
  return {.src = "nic:0",
          .dst = dst,
          .host = "host:" + dst,
          .scope = "zone",
          .traffic_class = "lossy",
          .source_port = 49'152,
          .forward = {"nic:0->rtsw:0", "rtsw:0->ctsw:1"},
          .back = {"ctsw:0->rtsw:0", "rtsw:0->nic:0"}};
}

WindowReport window(FlowCounts counts) {
  WindowReport out{.start = {1'700'000'000 * ns_per_s}, .length_ns = ns_per_s};
  out.flows.push_back(std::move(counts));
  return out;
}

std::string lines_of(const WindowReport& report, const FlowInfo& flow,
                     Direction direction = Direction::two_way) {
  const std::vector<FlowInfo> infos{flow};
  return to_json_lines(report, infos, find_suppressed(report.flows, infos), direction);
}

model::EvidenceSet read_back(const std::string& text) {
  const model::Fabric fabric = model::testing::make_fabric(
      "{generator: ai_zone, racks: 2, hosts_per_rack: 2, gpus_per_host: 2, spines: 2, "
      "link: 400 Gbps}");
  LineReader lines(text, "evidence");
  auto set = model::read_evidence(fabric, lines);
  if (!set) FAIL(set.error().text());
  return *std::move(set);
}

TEST_CASE("without losses a flow is one line, which reads back as evidence") {
  FlowCounts counts{.sent = 100, .answered = 100, .late = 3};
  for (std::int64_t i = 1; i <= 100; ++i) counts.rtt.add(i * 1000);
  FlowInfo flow = info();
  flow.forward = {"nic:0->rtsw:0"};
  flow.back = {"rtsw:0->nic:0"};
  const auto set = read_back(lines_of(window(std::move(counts)), flow));
  REQUIRE(set.rows.size() == 1);
  const model::Evidence& row = set.rows[0];
  CHECK(row.leg == model::Leg::round_trip);
  CHECK(row.sent == 100);
  CHECK(row.late == 3);
  CHECK(row.sport == 49'152);
  CHECK(row.path_size == 2);
  CHECK(set.classes[row.traffic_class] == "lossy");
  CHECK(row.rtt_p50_us == approx(50).epsilon(0.04));
  CHECK(row.rtt_p99_us == approx(99).epsilon(0.04));
}

TEST_CASE("losses of known direction make a line for each leg, each probe counted once on each") {
  FlowCounts counts{.sent = 100, .answered = 90, .lost = 10, .lost_forward = 7};
  const auto set = read_back(lines_of(window(std::move(counts)), info()));
  REQUIRE(set.rows.size() == 2);
  CHECK(set.rows[0].leg == model::Leg::forward);
  CHECK(set.rows[0].sent == 100);
  CHECK(set.rows[0].lost == 7);
  CHECK(set.rows[1].leg == model::Leg::back);
  CHECK(set.rows[1].sent == 93);
  CHECK(set.rows[1].lost == 3);
}

TEST_CASE("losses of unknown direction stay with the round trip") {
  FlowCounts counts{.sent = 100, .answered = 90, .lost = 10, .lost_forward = std::nullopt};
  FlowInfo flow = info();
  flow.forward.clear();
  flow.back.clear();
  const auto set = read_back(lines_of(window(std::move(counts)), flow));
  REQUIRE(set.rows.size() == 1);
  CHECK(set.rows[0].leg == model::Leg::round_trip);
  CHECK(set.rows[0].lost == 10);
  CHECK(set.rows[0].path_size == 0);
}

TEST_CASE("what is no evidence has a row that says why, and counts no probe as sent") {
  const auto check = [](const WindowReport& report, Direction direction, const char* unknown) {
    FlowInfo flow = info();
    flow.forward = {"nic:0->rtsw:0"};
    flow.back = {"rtsw:0->nic:0"};
    const std::string text = lines_of(report, flow, direction);
    CHECK_MESSAGE(text.find(unknown) != std::string::npos, text);
    const auto set = read_back(text);
    REQUIRE(set.rows.size() == 1);
    CHECK(set.rows[0].sent == 0);
    CHECK(set.rows[0].lost == 0);
    CHECK(set.rows[0].late == 0);
  };
  using enum Direction;
  const FlowCounts dead{.sent = 100, .lost = 100};
  check(window(dead), two_way, R"("unknown":100,"why":"responder_silent")");
  WindowReport starved = window({.sent = 100, .answered = 99, .late = 2, .lost = 1});
  starved.self = WindowReport::Self::starved;
  check(starved, two_way, R"("unknown":100,"why":"prober_busy")");
  check(window({.sent = 100, .unknown = 100, .why = Unknown::unanswered}), one_way,
        R"("unknown":100,"why":"unanswered")");
  check(window({.sent = 100, .unknown = 100, .why = Unknown::forgotten}), one_way,
        R"("unknown":100,"why":"forgotten")");
  check(window({.refused = 3}), two_way,
        R"("unknown":0,"why":"not_sent","scope":"zone","refused":3)");
}

TEST_CASE("one-way: a dead flow of a host that answers questions is a loss") {
  FlowCounts counts{.sent = 100, .lost = 100, .lost_forward = 100};
  counts.heard = true;
  FlowInfo flow = info();
  flow.forward.clear();
  const auto set = read_back(lines_of(window(counts), flow, Direction::one_way));
  REQUIRE(set.rows.size() == 1);
  CHECK(set.rows[0].leg == model::Leg::forward);
  CHECK(set.rows[0].sent == 100);
  CHECK(set.rows[0].lost == 100);
}

TEST_CASE("the table sums by scope and class, worst targets first") {
  Results results({info("nic:4"), info("nic:5")});
  WindowReport report = window({.sent = 50, .answered = 50});
  report.flows.push_back({.sent = 50, .answered = 40, .lost = 10, .lost_forward = 10});
  results.add(report);
  results.add(report);
  CHECK(results.sum().sent == 200);
  const std::string table = results.table(Direction::two_way);
  CHECK(table.find("nic:5") < table.find("nic:4"));
  CHECK(table.find("zone") != std::string::npos);
  CHECK(table.find("unknown") == std::string::npos);
  CHECK(results.table(Direction::one_way).find("unknown") != std::string::npos);
}

TEST_CASE("Prometheus: totals, cumulative buckets, escaped labels") {
  FlowInfo flow = info();
  flow.traffic_class = "a\"b\\c";
  Results results({flow});
  FlowCounts counts{.sent = 3, .answered = 3};
  for (const std::int64_t ns : {500, 3'000, 2'000'000}) counts.rtt.add(ns);
  results.add(window(std::move(counts)));
  const std::string text = results.to_prometheus({});
  CHECK(text.find(R"(class="a\"b\\c")") != std::string::npos);
  CHECK(text.find("fate=\"sent\"} 3\n") != std::string::npos);
  CHECK(text.find("le=\"1.024e-06\"} 1\n") != std::string::npos);
  CHECK(text.find("le=\"4.096e-06\"} 2\n") != std::string::npos);
  CHECK(text.find("le=\"+Inf\"} 3\n") != std::string::npos);
}

}  // namespace
}  // namespace weft::observe::probe
