#include "plan/replay/replay.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/test_approx.hpp"
#include "model/formats/build_fabric.hpp"

namespace weft::plan::replay {
namespace {

constexpr const char* zone =
    "fabric: {generator: ai_zone, racks: 4, spines: 4}\ncollectives: {cost: line_rate}\n"
    "jobs: [{name: a, collective: send_recv, gpus: 64, bytes: 64 MiB, place: scattered}]\n"
    "compare:\n  spray: {routing: {scheme: spray}}\n"
    "  e_ecmp: {routing: {scheme: e_ecmp, qps: 4}}\n";

model::ScenarioFile scenario(const std::string& yaml) {
  auto file = model::parse_scenario(yaml, "test.yaml", {});
  REQUIRE(file.has_value());
  return *std::move(file);
}

struct Said {
  const char *minute, *kind, *entity;
};

Result<Timeline> timeline(std::span<const Said> lines, const Window& window = {}) {
  const auto fabric = model::build_fabric(scenario(zone).variants.front().section("fabric"));
  REQUIRE(fabric.has_value());
  model::RecordLines reader(*fabric);
  for (const Said& line : lines)
    REQUIRE(reader
                .add(fmt::format(R"({{"t": "2026-01-05T10:{}:00Z", "source": "syslog", )"
                                 R"("kind": "{}", "entity": "{}"}})",
                                 line.minute, line.kind, line.entity),
                     {})
                .has_value());
  return timeline_of(*fabric, reader.take(), window);
}

Timestamp at(const char* minute) {
  return *parse_timestamp({fmt::format("2026-01-05T10:{}:00Z", minute), {}});
}

TEST_CASE("replay: records of another fabric are counted apart, and windows without time refused") {
  const std::vector<Said> lines{{"00", "link_down", "rtsw:0->ctsw:1"},
                                {"02", "link_down", "rtsw:77--ctsw:1"},
                                {"04", "crc_errors", "rtsw:0->ctsw:1"},
                                {"05", "link_up", "rtsw:0->ctsw:1"}};
  const auto found = timeline(lines);
  REQUIRE(found.has_value());
  CHECK(found->used == 2);
  CHECK(found->ignored == 1);
  CHECK(found->unknown == 1);
  const auto error = [](const std::vector<Said>& of, const Window& window) {
    const auto refused = timeline(of, window);
    REQUIRE_FALSE(refused.has_value());
    return refused.error().text();
  };
  CHECK(error({lines[1]}, {}).starts_with("1 of 1 records are of parts that the fabric does not"));
  CHECK(
      error({lines[0]}, {}).starts_with("nothing lies between 2026-01-05T10:00:00Z and 2026-01-"));
  CHECK(error({lines[0]}, {}).ends_with("specify them"));
  CHECK(error(lines, {at("05"), at("04")}) == "--until is not after --from");
}

TEST_CASE("replay: a cable is down until every end is back; states repeat; order does not matter") {
  const std::vector<Said> lines{{"00", "link_down", "rtsw:0->ctsw:1"},
                                {"01", "link_down", "ctsw:1->rtsw:0"},
                                {"02", "crc_errors", "rtsw:0->ctsw:1"},
                                {"10", "link_up", "rtsw:0->ctsw:1"},
                                {"11", "link_up", "ctsw:1->rtsw:0"},
                                {"20", "drain", "ctsw:2"},
                                {"30", "undrain", "ctsw:2"},
                                {"40", "link_down", "rtsw:0--ctsw:1"},
                                {"50", "link_up", "rtsw:0--ctsw:1"}};
  const auto found = timeline(lines);
  REQUIRE(found.has_value());
  CHECK(found->used == 8);
  CHECK(found->ignored == 1);
  REQUIRE(found->states.size() == 3);
  CHECK(found->states[0] == State{{"link_down", "link", "rtsw:0--ctsw:1"}});
  CHECK(found->states[1].empty());
  CHECK(found->states[2] == State{{"switch_drain", "switch", "ctsw:2"}});
  std::vector<std::uint32_t> order;
  for (const Interval& interval : found->intervals) order.push_back(interval.state);
  CHECK(order == std::vector<std::uint32_t>{0, 1, 2, 1, 0});
  CHECK(found->intervals[0].until == at("11"));
  CHECK(found->intervals[4].until == at("50"));

  std::vector<Said> backwards(lines.rbegin(), lines.rend());
  const auto same = timeline(backwards);
  REQUIRE(same.has_value());
  CHECK(same->states == found->states);

  const auto window = timeline(lines, {at("05"), at("25")});
  REQUIRE(window.has_value());
  CHECK(window->intervals.size() == 3);
  CHECK(window->intervals.front().from == at("05"));
  CHECK(window->states.size() == 3);
  CHECK(!timeline({}).has_value());
  CHECK(!timeline(lines, {at("25"), at("05")}).has_value());
}

TEST_CASE("replay: step times are those of a run in that state, and minutes lost follow") {
  const std::vector<Said> lines{
      {"10", "link_down", "rtsw:0--ctsw:1"}, {"20", "link_up", "rtsw:0--ctsw:1"},
      {"20", "link_down", "rtsw:0--ctsw:0"}, {"20", "link_down", "rtsw:0--ctsw:1"},
      {"20", "link_down", "rtsw:0--ctsw:2"}, {"20", "link_down", "rtsw:0--ctsw:3"},
      {"25", "link_up", "rtsw:0--ctsw:0"}};
  auto states = timeline(lines, {at("00"), at("25")});
  REQUIRE(states.has_value());
  const auto found = replay(scenario(zone), *std::move(states), {});
  REQUIRE(found.has_value());
  REQUIRE(found->lines.size() == 2);
  const auto direct = run_scenario(
      scenario(std::string(zone) + "faults: [{kind: link_down, link: rtsw:0--ctsw:1}]\n"), {});
  const auto healthy = run_scenario(scenario(zone), {});
  REQUIRE(direct.has_value());
  for (std::size_t v = 0; v < 2; ++v) {
    const Line& line = found->lines[v];
    const double t0 = healthy->variants[v].jobs[0].time_mean_s;
    const double t = direct->variants[v].jobs[0].time_mean_s;
    CHECK(line.variant == healthy->variants[v].name);
    CHECK(line.healthy_s == t0);
    CHECK(line.worst_s == approx(std::max(t0, t)));
    CHECK(line.still_s == approx(300));  // a rack without uplinks
    CHECK(line.lost_s == approx(300 + 600 * (1 - t0 / t)));
    CHECK(line.mean_s == approx(1200 / (600 / t0 + 600 / t)));
  }
}

}  // namespace
}  // namespace weft::plan::replay
