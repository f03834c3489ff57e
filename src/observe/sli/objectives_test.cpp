#include "observe/sli/objectives.hpp"

#include <doctest/doctest.h>

#include "base/test_approx.hpp"
#include "observe/sli/test_kit.hpp"

namespace weft::observe::sli {
namespace {

std::string refusal(std::string_view yaml) {
  const auto config = parse_yaml(yaml, "o.yaml");
  if (!config) return config.error().text();
  const auto settings = read_settings(*config);
  return settings ? "accepted" : settings.error().text();
}
bool says(const std::string& text, std::string_view part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

TEST_CASE("shares are exact") {
  const auto ppb = [](std::string_view text) { return parse_share({text, {}}).value().ppb; };
  CHECK(ppb("99.9 %") == 999'000'000);
  CHECK(ppb("99.99%") == 999'900'000);
  CHECK(ppb("0.999") == 999'000'000);
  CHECK(ppb("0.1 %") == 1'000'000);
  CHECK(ppb(".5") == 500'000'000);
  CHECK(ppb("100 %") == 1'000'000'000);
  CHECK(ppb("1") == 1'000'000'000);
  CHECK(ppb("0") == 0);
  CHECK(ppb("0.0000001 %") == 1);
  CHECK(ppb("0.000000001") == 1);
  for (const std::string_view text :
       {"", "%", ".", "x", "-1 %", "1e-3", "100.1 %", "1.1", "0.0000000001", "0.00000001 %", "1 2",
        "99999999999999999999 %", "nan"})
    CHECK_FALSE(parse_share({text, {}}).has_value());
  for (const std::int64_t value : {1, 1'000'000, 999'000'000, 999'999'999, 1'000'000'000})
    CHECK(ppb(to_text(Share{value})) == value);
}

TEST_CASE("an objective is read whole") {
  const Settings s = testing::settings_of(R"(
slack: 2 min
planned: [maintenance]
confidence: 0.99
alerts: [{name: a, factor: 2.5, long: 2 h, short: 10 min}]
objectives:
  - {name: rack-loss, scope: rack-internal, class: lossy, loss: 0.05 %, latency_p99: 200 us,
     minimum_probes: 500, target: 99.99 %, window: 7 d}
  - {name: z, scope: zone}
)");
  REQUIRE(s.objectives.size() == 2);
  const Objective& o = s.objectives[0];
  CHECK(o.name == "rack-loss");
  CHECK(o.span == Span::rack_internal);
  CHECK(o.traffic_class == "lossy");
  CHECK(o.loss.ppb == 500'000);
  CHECK(o.latency_p99_us == approx(200));
  CHECK(probes_needed(o, 50) == 500);
  CHECK(o.target.ppb == 999'900'000);
  CHECK(o.window_minutes == 7 * 24 * 60);
  CHECK(s.objectives[1].latency_p99_us == 0);
  REQUIRE(s.alerts.size() == 1);
  CHECK(s.alerts[0].factor_milli == 2500);
  CHECK(s.alerts[0].long_minutes == 120);
  CHECK(s.slack_ns == 120 * ns_per_s);
  CHECK(s.planned == std::vector<std::string>{"maintenance"});
  CHECK(s.confidence == approx(0.99));
}

TEST_CASE("probes needed: ten losses expected at the threshold") {
  Objective o;
  o.loss = Share{1'000'000};
  CHECK(probes_needed(o, 100) == 10'000);
  CHECK(probes_needed(o, 50) == 20'000);
  CHECK(probes_needed(o, 200) == 5'000);
  o.loss = Share{3'000'000};
  CHECK(probes_needed(o, 100) == 3'334);
}

TEST_CASE("defaults") {
  const Settings s = testing::settings_of("{}");
  CHECK(s.objectives.size() == 4);
  REQUIRE(s.alerts.size() == 3);
  CHECK(s.alerts[0].factor_milli == 14'400);
  CHECK(s.alerts[1].long_minutes == 360);
  CHECK(s.alerts[2].short_minutes == 360);
}

TEST_CASE("bad settings are refused with place and help") {
  CHECK(says(refusal("{objective: []}"), "did you mean \"objectives\""));
  CHECK(says(refusal("objectives: [{name: a, scope: rack}]"), "choose one of: rack-internal"));
  CHECK(says(refusal("objectives: [{name: a, scope: zonee}]"), "did you mean \"zone\""));
  CHECK(says(refusal("objectives: [{name: a, scope: zone, los: 1 %}]"), "did you mean \"loss\""));
  CHECK(says(refusal("objectives:\n  - {scope: zone}"), "o.yaml:2:5"));
  CHECK(says(refusal("objectives: [{name: a}]"), "\"scope\" is missing"));
  CHECK(says(refusal("objectives: [{name: A b, scope: zone}]"), "is not a valid name"));
  CHECK(says(refusal("objectives: [{name: a, scope: zone}, {name: a, scope: pod}]"),
             "duplicate objective"));
  CHECK(
      says(refusal("objectives: [{name: a, scope: zone, loss: 0}]"), "above 0 % and below 100 %"));
  CHECK(says(refusal("objectives: [{name: a, scope: zone, target: 100 %}]"),
             "above 0 % and below 100 %"));
  CHECK(says(refusal("objectives: [{name: a, scope: zone, target: high}]"), "is not a share"));
  CHECK(says(refusal("objectives: [{name: a, scope: zone, window: 90 s}]"), "whole number"));
  CHECK(says(refusal("objectives: [{name: a, scope: zone, window: 0 d}]"), "window"));
  CHECK(says(refusal("objectives: [{name: a, scope: zone, window: 30}]"), "window"));
  CHECK(says(refusal("objectives: [{name: a, scope: zone, minimum_probes: 0}]"), "not within"));
  CHECK(says(refusal("objectives: []"), "no objectives"));
  CHECK(says(refusal("objectives: 7"), "not a list"));
  CHECK(says(refusal("alerts: [{name: a, factor: 0, long: 1 h, short: 5 min}]"), "factor"));
  CHECK(says(refusal("alerts: [{name: a, factor: 2, long: 5 min, short: 1 h}]"), "longer"));
  CHECK(says(refusal("slack: -1 s"), "slack"));
  CHECK(says(refusal("confidence: 1"), "confidence"));
  CHECK(says(refusal("[1, 2]"), "begin with \"objectives:\""));
}

}  // namespace
}  // namespace weft::observe::sli
