#include "operate/triage/rules.hpp"

#include <doctest/doctest.h>

#include <string>

#include "base/timestamp.hpp"

namespace weft::operate::triage {
namespace {

using model::EventKind;

std::string refusal(std::string_view yaml) {
  const auto config = parse_yaml(yaml, "rules.yaml");
  REQUIRE(config.has_value());
  const auto rules = read_rules(*config);
  return rules ? "accepted" : rules.error().text();
}
bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("the default rules say something of every kind and every cause") {
  const Rules rules = default_rules();
  for (std::size_t i = 1; i < model::event_kind_count; ++i) {
    CAPTURE(i);
    CHECK(rules.events[i].meaning != Meaning::nothing);
    if (rules.events[i].meaning == Meaning::planned) continue;  // explains, needs no cause
    // Each kind but clears of what has no cause of its own is explained by something.
    KindMask explained = 0;
    for (const CauseRule& cause : rules.causes) explained |= cause.explains;
    CHECK((explained & (KindMask{1} << i)) != 0);
  }
  for (const CauseRule& cause : rules.causes) CHECK(cause.price > 0);
}

TEST_CASE("a file changes what it names and nothing else") {
  const auto config = parse_yaml("causes: {switch: {price: 20}}\ntiming: {lateness: 5 s}", "r");
  const auto rules = read_rules(*config);
  REQUIRE(rules.has_value());
  CHECK(rules->cause(CauseKind::device).price == 20);
  CHECK(rules->cause(CauseKind::device).silent == default_rules().cause(CauseKind::device).silent);
  CHECK(rules->timing.lateness_ns == 5 * ns_per_s);
  CHECK(rules->event(EventKind::link_down).meaning == Meaning::down);
}

TEST_CASE("an empty file or section means the default rules") {
  const Rules expected = default_rules();
  const auto file = parse_yaml("rules:\n", "serve.yaml");
  REQUIRE(file.has_value());
  for (const Config& nothing : {Config{}, *file->find("rules"), *parse_yaml("# as it is\n", "r")}) {
    const auto rules = read_rules(nothing);
    REQUIRE_MESSAGE(rules.has_value(), (rules ? "" : rules.error().text()));
    CHECK(rules->gain == expected.gain);
    CHECK(rules->timing.lateness_ns == expected.timing.lateness_ns);
    for (const CauseKind kind : {CauseKind::device, CauseKind::link}) {
      CHECK(rules->cause(kind).price == expected.cause(kind).price);
      CHECK(rules->cause(kind).explains == expected.cause(kind).explains);
    }
  }
}

TEST_CASE("groups stand for their kinds") {
  const auto config = parse_yaml(
      "groups: {mine: [fan_fail, psu_fail]}\ncauses: {platform: {explains: [mine]}}", "r");
  const auto rules = read_rules(*config);
  REQUIRE(rules.has_value());
  CHECK(rules->cause(CauseKind::platform).explains ==
        (bit(EventKind::fan_fail) | bit(EventKind::psu_fail)));
}

TEST_CASE("what is wrong is told, all of it, with its place") {
  CHECK(contains(refusal("timing: {latenes: 5 s}"), "rules.yaml:1:10"));
  CHECK(contains(refusal("timing: {latenes: 5 s}"), "lateness"));
  CHECK(contains(refusal("timing: {lateness: 5}"), "unit"));
  CHECK(contains(refusal("timing: {lateness: -5 s}"), "rules.yaml:1"));
  CHECK(contains(refusal("events: {link_donw: {says: down}}"), "link_down"));
  CHECK(contains(refusal("events: {link_down: {says: sideways}}"), "says"));
  CHECK(contains(refusal("causes: {swich: {price: 1}}"), "switch"));
  CHECK(contains(refusal("causes: {switch: {expects: [carier]}}"), "carrier"));
  CHECK(contains(refusal("causes: {switch: {price: -1}}"), "price"));
  CHECK(contains(refusal("counts: {flaps: 0}"), "flaps"));
  const std::string two = refusal("gain: x\ncards: {ports: 0}");
  CHECK(contains(two, "rules.yaml:1"));
  CHECK(contains(two, "rules.yaml:2"));
}

}  // namespace
}  // namespace weft::operate::triage
