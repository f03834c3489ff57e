#include "observe/telemetry/catalogue.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

namespace weft::observe::telemetry {
namespace {

Pattern pattern(std::string_view text) {
  auto out = parse_pattern({text, {}});
  REQUIRE_MESSAGE(out.has_value(), text);
  return *std::move(out);
}

bool fits(std::string_view text, std::string_view line) {
  Captures found;
  return matches(pattern(text), line, found);
}

std::string refusal(std::string_view yaml) {
  const auto config = parse_yaml(yaml, "messages.yaml");
  REQUIRE(config.has_value());
  const auto catalogue = Catalogue::from_yaml(*config);
  return catalogue ? "accepted" : catalogue.error().text();
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

TEST_CASE("patterns take out what their slots say") {
  Captures found;
  REQUIRE(matches(pattern("peer {peer} (AS {*}) down, card {card}"),
                  "peer 10.0.0.1 (AS 7) down, card 3", found));
  CHECK(found[Slot::peer] == "10.0.0.1");
  CHECK(found[Slot::card] == "3");
  CHECK(found[Slot::port].empty());
}

TEST_CASE("a pattern is of the whole text") {
  CHECK(fits("up", "up"));
  CHECK(!fits("up", "up again"));
  CHECK(!fits("up", "went up"));
  CHECK(fits("{*} up", "port 1 up and up"));  // the last words stand at the end
  CHECK(!fits("{*} up", "port 1 up again"));
  CHECK(!fits("a {*} b {*} c", "a 1 c"));
  CHECK(!fits("ab{*}bc", "abc"));  // the words do not share a letter
  CHECK(fits("{*}", ""));
  CHECK(fits("", ""));
}

TEST_CASE("every built-in message is read as the row that it is written by") {
  const Catalogue catalogue = Catalogue::built_in();
  CHECK(catalogue.rows().size() > 100);
  for (const MessageRow& row : catalogue.rows()) {
    std::string text = row.pattern.words.front();
    for (std::size_t i = 1; i < row.pattern.words.size(); ++i) text += "7" + row.pattern.words[i];
    CAPTURE(text);
    std::string key(row.key());
    std::ranges::replace(key, '*', '7');
    Captures found;
    const MessageRow* read = catalogue.find(key, text, found);
    REQUIRE(read != nullptr);
    CHECK(read->kind == row.kind);
    CHECK(read->reason == row.reason);
  }
}

TEST_CASE("each dialect has words for what devices must be able to say") {
  using model::EventKind;
  const Catalogue catalogue = Catalogue::built_in();
  for (std::size_t i = 0; i + 1 < dialect_names.size(); ++i) {
    const auto dialect = static_cast<Dialect>(i);
    CAPTURE(dialect_names[i]);
    for (const EventKind kind :
         {EventKind::link_down,     EventKind::link_up,       EventKind::bgp_up,
          EventKind::bfd_up,        EventKind::rx_power,      EventKind::optic_temperature,
          EventKind::crc_errors,    EventKind::card_fail,     EventKind::card_ok,
          EventKind::asic_error,    EventKind::memory_error,  EventKind::storage_error,
          EventKind::psu_fail,      EventKind::fan_fail,      EventKind::temperature_high,
          EventKind::process_crash, EventKind::process_start, EventKind::config_commit,
          EventKind::config_error,  EventKind::device_boot})
      CHECK_MESSAGE(!catalogue.sayings(dialect, kind, Reason::none).empty(), to_text(kind));
    for (std::size_t r = 1; r < reason_names.size(); ++r)
      CHECK_MESSAGE(
          !catalogue.sayings(dialect, EventKind::bgp_down, static_cast<Reason>(r)).empty(),
          reason_names[r]);
  }
}

TEST_CASE("a family of mnemonics is one row, but not the ends of what it tells") {
  const auto config = parse_yaml(
      "builtin: false\nmessages:\n"
      "  - {mnemonic: \"X-*-FAN_*\", kind: fan_fail}\n"
      "  - {mnemonic: X-4-FAN_ODD, text: \"exact {*}\"}\n",
      "messages.yaml");
  REQUIRE(config.has_value());
  const auto catalogue = Catalogue::from_yaml(*config);
  REQUIRE(catalogue.has_value());
  const auto kind = [&](std::string_view key, std::string_view text) {
    Captures found;
    const MessageRow* row = catalogue->find(key, text, found);
    return row == nullptr ? "none" : to_text(row->kind);
  };
  CHECK(kind("X-2-FAN_FAIL", "text") == "fan_fail");
  CHECK(kind("X-5-FAN_FAIL_CLEAR", "text") == "none");
  CHECK(kind("X-5-FAN_OK", "text") == "none");
  CHECK(kind("X-4-FAN_ODD", "exact row") == "info");
  CHECK(kind("X-4-FAN_ODD", "other text") == "fan_fail");
  CHECK(kind("Y-2-FAN_FAIL", "text") == "none");
  CHECK(kind("XY-2-FAN_FAIL", "text") == "none");
}

TEST_CASE("a file's rows stand before the built-in ones, or alone") {
  const auto read = [](std::string_view yaml) {
    auto config = parse_yaml(yaml, "messages.yaml");
    REQUIRE(config.has_value());
    auto out = Catalogue::from_yaml(*config);
    REQUIRE_MESSAGE(out.has_value(), (out ? "" : out.error().text()));
    return *std::move(out);
  };
  const Catalogue over =
      read(R"(messages: [{program: bgpd, mnemonic: ADJCHANGE, text: "neighbor {*}", kind: info}])");
  CHECK(over.rows()[over.first("ADJCHANGE")].kind == model::EventKind::info);
  CHECK(over.first("ETHPORT-5-IF_UP") != NameTable::none);
  const Catalogue alone = read("{builtin: false, messages: [{program: x, kind: fan_fail}]}");
  CHECK(alone.rows().size() == 1);
  CHECK(alone.first("ETHPORT-5-IF_UP") == NameTable::none);
}

TEST_CASE("mistakes are told with their place") {
  CHECK(contains(refusal("messages:\n  - {program: x, kind: fan_fial}"), "messages.yaml:2:"));
  CHECK(contains(refusal("messages:\n  - {program: x, kind: fan_fial}"), "fan_fail"));
  CHECK(contains(refusal("messages:\n  - {text: x}"), "needs a key"));
  CHECK(contains(refusal("messages:\n  - {mnemonic: \"*-5-UP\"}"), "begin with its facility"));
  CHECK(contains(refusal("messages:\n  - {program: \"bgp*\"}"), "begin with its facility"));
  CHECK(contains(refusal("messages:\n  - {program: x, text: \"a {prot}\"}"), "unknown slot"));
  CHECK(contains(refusal("messages:\n  - {program: x, text: \"a {port\"}"), "unterminated slot"));
  CHECK(contains(refusal("messages:\n  - {program: x, text: \"{port}{*}\"}"),
                 "without text between"));
  CHECK(contains(refusal("messages:\n  - {program: x, dialect: ios}"), "unknown dialect"));
  CHECK(contains(refusal("messages:\n  - {program: x, kin: info}"), "unknown key"));
  CHECK(contains(refusal("messages:\n  - {program: x, kind: bgp_down, reason: luck}"), "luck"));
  CHECK(contains(refusal("messages: 3"), "is not a list"));
}

}  // namespace
}  // namespace weft::observe::telemetry
