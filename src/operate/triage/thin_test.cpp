// Cases of which the first and last records are kept and the others counted.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <tuple>

#include "operate/triage/test_kit.hpp"

namespace weft::operate::triage::testing {
namespace {

using nlohmann::json;

constexpr std::size_t rows = 4;
constexpr int flaps = 500;

// A cable that goes down and up every four seconds, and whose light is faint now and then.
Story flapping() {
  Story story(small_zone());
  for (int i = 0; i < flaps; ++i) {
    story.link_down(4 * i, 2, 1).link_up(4 * i + 1.5, 2, 1);
    if (i % 3 == 0) story.say(4 * i + 2, "rtsw:2->ctsw:1", "rx_power");
  }
  return story;
}

// What a case says, but for its records.
auto head(const Case& c) {
  return std::tuple(c.id, c.state, c.kind, c.root, c.confidence, c.opened, c.closed, c.suppressed,
                    c.silent, c.split_from, c.record_count());
}

std::uint64_t unexplained_count(const Case& c) {
  std::uint64_t out = c.unexplained.size();
  for (const Case::Summary& row : c.unexplained_summarised) out += row.records;
  return out;
}

void check_same_but_shorter(Story& story) {
  const std::vector<Case> whole = story.cases(), thin = story.cases({rows});
  REQUIRE(whole.size() == thin.size());
  for (std::size_t i = 0; i < whole.size(); ++i) {
    CHECK(head(whole[i]) == head(thin[i]));
    CHECK(unexplained_count(whole[i]) == unexplained_count(thin[i]));
    CHECK(whole[i].members_summarised.empty());
    CHECK(thin[i].members.front().serial == whole[i].members.front().serial);
    CHECK(thin[i].members.back().serial == whole[i].members.back().serial);
  }
}

}  // namespace

TEST_CASE("thin: a link that flaps for good keeps its first and last records and counts the rest") {
  Story story = flapping();
  const std::vector<Case> whole = story.cases(), thin = story.cases({rows});
  REQUIRE(thin.size() == 1);
  check_same_but_shorter(story);
  CHECK(whole[0].members.size() > std::size_t{6} * flaps - 10);
  // Seven streams: downs and ups of both ends, the session's, and the light.
  CHECK(thin[0].members.size() == std::size_t{14} * rows);
  CHECK(std::ranges::is_sorted(thin[0].members, {}, &Case::Member::at));
  std::set<model::EventKind> kinds;
  for (const Case::Summary& row : thin[0].members_summarised) {
    CHECK(kinds.insert(row.kind).second);  // both ends in one row
    CHECK(model::name(story.fabric(), row.entity) == "rtsw:2--ctsw:1");
    CHECK(row.first > thin[0].opened);
    CHECK(row.last < *thin[0].closed);
  }
  CHECK(kinds.size() == 5);
}

TEST_CASE("thin: the order of arrival makes no difference") {
  Story story = flapping();
  const std::string first = story.json({rows});
  for (std::uint64_t seed = 1; seed < 4; ++seed)
    CHECK(flapping().shuffle(25, seed).json({rows}) == first);
}

TEST_CASE("thin: as JSON, listed and summarised records are all of them") {
  Story story = flapping();
  std::istringstream lines(story.json({rows}));
  std::string line;
  REQUIRE(std::getline(lines, line));
  const json thin = json::parse(line);
  std::uint64_t records = thin["members"].size();
  for (const json& row : thin["members_summarised"]) {
    CHECK(row["entity"] == "rtsw:2--ctsw:1");
    CHECK(row["source"] == "syslog");
    CHECK(row["relation"] ==
          (row["kind"] == "bgp_down" || row["kind"] == "bgp_up" ? "session over" : "end of link"));
    records += row["records"].get<std::uint64_t>();
  }
  CHECK(records == story.cases()[0].members.size());
  CHECK(story.json().find("summarised") == std::string::npos);
}

TEST_CASE("thin: a switch whose cables all flap, and a case that is split") {
  Story story(small_zone());
  story.spine_dies(100, 2, 8);
  for (int i = 0; i < 60; ++i)
    for (int rack = 0; rack < 8; ++rack)
      story.link_up(110 + 8 * i + 0.1 * rack, rack, 2).link_down(114 + 8 * i + 0.1 * rack, rack, 2);
  for (int i = 0; i < 20; ++i) story.say(700 + i, "rtsw:3->ctsw:2", "rx_power");
  check_same_but_shorter(story);
}

}  // namespace weft::operate::triage::testing
