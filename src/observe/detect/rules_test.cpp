#include "observe/detect/rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "observe/detect/test_kit.hpp"

namespace weft::observe::detect {
namespace {

using testing::refusal;

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// A file of one detection with that condition and further keys.
std::string with(const std::string& condition, const std::string& more = {}) {
  return "detections:\n  - {name: x, record: {kind: card_fail}, per: card, within: 5 s, when: " +
         condition + more + "}\n";
}

void refuses(const std::string& yaml, std::string_view what) {
  const std::string said = refusal(yaml);
  CHECK_MESSAGE(contains(said, what), said);
  CHECK_MESSAGE(contains(said, "r.yaml:"), said);
}

}  // namespace

TEST_CASE("detection rules: all keys") {
  const auto rules = testing::try_rules(R"(
builtin: false
detections:
  - name: line_card_down
    record: {kind: card_fail, entity: device}
    per: card
    within: 5 s
    wait: 1 s
    hold: 60 s
    when:
      all:
        - count: {kind: link_down, share_of_ports: 0.5}
        - any:
            - count: {kind: asic_error, at_least: 2, distinct: port, source: [agent, snmp]}
            - rate: {metric: in_errors, above: 2, within: 30 s}
            - rate: {metric: in_errors, above: 2, within: 30 s}
        - not: {count: {kind: device_boot}}
        - absent: {kind: bgp_up, for: 10 s}
        - value: {metric: rx_power_dbm, below: -12, for: 30 s}
        - change: {metric: celsius, above: 5}
    suppress: [link_down, bgp_down]
)");
  REQUIRE_MESSAGE(rules.has_value(), (rules ? "" : rules.error().text()));
  const Rule& rule = rules->front();
  CHECK(rule.kind == model::EventKind::card_fail);
  CHECK(rule.per == Part::card);
  CHECK(rule.entity == Part::device);
  CHECK(rule.within_ns == 5 * ns_per_s);
  CHECK(rule.wait_ns == ns_per_s);
  CHECK(rule.hold_ns == 60 * ns_per_s);
  REQUIRE(rule.terms.size() == 7);  // equal ones are one
  CHECK(rule.terms[0].share_of_ports == 0.5);
  CHECK(rule.terms[1].at_least == 2);
  CHECK(rule.terms[1].sources.count() == 2);
  CHECK(rule.terms[2].window_ns == 30 * ns_per_s);
  CHECK(rule.terms[3].window_ns == 5 * ns_per_s);
  CHECK(rule.terms[4].window_ns == 10 * ns_per_s);
  CHECK(rule.terms[5].for_ns == 30 * ns_per_s);
  CHECK(rule.terms[5].side == Side::below);
  // Members are the suppressed and what speaks for it: link_down, asic_error, bgp_down.
  CHECK(rule.members.count() == 3);
  // True with 0, 4, 5, 6, one or both of 1 and 2, and without 3.
  CHECK(std::ranges::count(rule.truth, true) == 3);
  CHECK(rule.truth[0b1110011]);
  CHECK_FALSE(rule.truth[0b1111011]);
}

TEST_CASE("detection rules: those of a file lie over the built-in ones") {
  const Rules all = default_rules();
  CHECK(all.size() >= 12);
  const std::string own =
      "detections:\n  - {name: optic_degrading, record: {kind: tx_power}, per: port, within: 1 s, "
      "when: {count: {kind: tx_power}}}\n";
  const auto rules = testing::try_rules("without: [agent_gone, line_card_down]\n" + own);
  REQUIRE(rules.has_value());
  CHECK(rules->size() == all.size() - 2);
  CHECK(rules->back().kind == model::EventKind::tx_power);
  CHECK(testing::try_rules("builtin: false\n" + own)->size() == 1);
  CHECK(testing::try_rules("{}")->size() == all.size());
}

TEST_CASE("detection rules: mistakes") {
  const std::string some = "{count: {kind: link_down}}";
  CHECK(refusal(with(some)) == "accepted");
  refuses(with("{count: {kind: link_dwn}}"), "did you mean \"link_down\"");
  refuses(with("{count: {kind: link_down, at_leats: 2}}"), "did you mean \"at_least\"");
  refuses(with("{cuont: {kind: link_down}}"), "did you mean \"count\"");
  refuses(with("{rate: {metric: in_erors, above: 1}}"), "did you mean \"in_errors\"");
  refuses(with("{count: {kind: link_down, source: sislog}}"), "did you mean \"syslog\"");
  refuses(with("{rate: {metric: celsius, above: 1}}"), "not a counter");
  refuses(with("{value: {metric: in_errors, above: 1}}"), "a counter");
  refuses(with("{value: {metric: celsius}}"), "\"above\" or \"below\"");
  refuses(with("{value: {metric: celsius, above: 1, below: 3}}"), "\"above\" or \"below\"");
  refuses(with("{rate: {kind: link_down, below: 0}}"), "no rate is below 0");
  refuses(with("{rate: {kind: link_down, metric: in_errors, above: 0}}"), "exactly one input");
  refuses(with("{count: {}}"), "needs exactly one input");
  refuses(with("{absent: {kind: link_up}}"), "for");
  refuses(with("{count: {kind: link_down, within: 0 s}}"), "\"within\" is outside");
  refuses(with("{count: {kind: link_down, at_least: 3000}}"), "at_least");
  refuses(with("{count: {kind: link_down, share_of_ports: 2}}"), "share_of_ports");
  refuses(with("{count: {kind: link_down, share_of_ports: 0.5, at_least: 2}}"), "remove");
  refuses(with("{count: {kind: link_down, distinct: device, at_least: 2}}"), "can never be true");
  refuses(with("{not: {count: {kind: link_down}}}"), "nothing has happened");
  refuses(with("{all: [{count: {kind: link_down}}, {not: {count: {kind: link_down}}}]}"),
          "contradicts itself");
  refuses(with("{all: []}"), "needs a list");
  refuses(with("{count: {kind: link_down}, not: {count: {kind: link_up}}}"), "one key");
  refuses(with(some, ", suppress: [card_fail]"), "suppresses its own record");
  refuses(with(some, ", suppress: [link_down], wait: 6 s"), "\"wait\" is longer than \"within\"");
  refuses(with(some, ", hold: 25 h"), "\"hold\" is outside");
  refuses("without: [agent_gon]\n", "did you mean \"agent_gone\"");
  refuses("detections: 3\n", "is not a list");
  refuses("detections:\n  - {name: x, per: card, within: 5 s, when: " + some + "}\n",
          "needs a record to emit");
  refuses("detections:\n  - {name: x, record: {kind: card_fail}, per: card, within: 5 s}\n",
          "needs a condition");
  refuses(
      "detections:\n  - {name: x, record: {kind: card_fail, entity: port}, per: card, within: 5 s, "
      "when: " +
          some + "}\n",
      "no port contains a card");
  refuses(
      "detections:\n  - {name: x, record: {kind: link_down}, per: port, within: 5 s, when: "
      "{count: {kind: link_down, share_of_ports: 0.5}}}\n",
      "has no ports");
}

TEST_CASE("detection rules: all mistakes at once, each with its place") {
  const std::string said = refusal(
      "detections:\n"
      "  - name: a\n"
      "    record: {kind: card_fall}\n"
      "    per: crad\n"
      "    within: 0 s\n"
      "    when:\n"
      "      count: {kind: link_dwn}\n"
      "  - {name: a, record: {kind: psu_fail}, per: device, within: 1 s, when: {count: {kind: "
      "psu_fail}}}\n");
  for (const char* part : {"r.yaml:3:20", "r.yaml:4:10", "r.yaml:5:13", "r.yaml:7:21", "r.yaml:8:5",
                           "duplicate detection \"a\""})
    CHECK_MESSAGE(contains(said, part), said);
}

TEST_CASE("detection rules: conditions have bounds") {
  std::string terms;
  for (int i = 1; i <= 13; ++i)
    terms += "{count: {kind: link_down, at_least: " + std::to_string(i) + "}}, ";
  refuses(with("{any: [" + terms + "]}"), "13 different terms");
  std::string deep = "{count: {kind: link_down}}";
  for (int i = 0; i < 40; ++i) deep = fmt::format("{{any: [{}]}}", deep);
  refuses(with(deep), "nested too deep");
}

}  // namespace weft::observe::detect
