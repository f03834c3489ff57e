// Cases that late evidence shows to be several.
#include <algorithm>

#include "operate/triage/test_kit.hpp"

namespace weft::operate::triage {
namespace {

using testing::make_fabric;
using testing::rules_with;
using testing::small_zone;
using testing::Story;

// Two of a rack switch's four uplinks and both NICs of one of its hosts go down within seconds:
// one switch is cheaper than two cables and a host.
Story four_ports() {
  Story story(small_zone());
  story.link_down(100, 4, 0).link_down(101, 4, 1);
  story.say(101.5, "rtsw:4/0", "link_down").say(101.6, "rtsw:4/1", "link_down");
  return story;
}

Story& optic_complains(Story& story, double t, int rack, int spine) {
  for (int i = 0; i < 3; ++i)
    story.say(t + 20 * i, fmt::format("rtsw:{}->ctsw:{}", rack, spine), "rx_power");
  return story;
}

const Case& find(const std::vector<Case>& cases, CauseKind kind) {
  const auto at = std::ranges::find(cases, kind, &Case::kind);
  REQUIRE(at != cases.end());
  return *at;
}

TEST_CASE("a switch that was an optic, a cable and a host") {
  Story story = four_ports();
  CHECK(story.told() == "rack_switch rtsw:4 (8)");
  const std::string name = story.cases().at(0).id;
  optic_complains(story, 200, 4, 0);
  CHECK(story.told() == "cable rtsw:4--ctsw:1 (3); host host:8 (2); optic rtsw:4--ctsw:0 (6)");
  CHECK(story.counts().cases.split == 1);
  CHECK(story.counts().cases.cases == 3);
  // No part kept the root: the one with the first record keeps the name.
  const auto cases = story.cases();
  const Case& optic = find(cases, CauseKind::optic);
  CHECK(optic.id == name);
  CHECK(optic.split_from.empty());
  for (const CauseKind kind : {CauseKind::link, CauseKind::host}) {
    const Case& part = find(cases, kind);
    CHECK(part.split_from == name);
    CHECK(part.id != name);
    CHECK(part.members.front().relation != model::Relation::learned);
  }
  CHECK(story.json().find(fmt::format(R"("split_from":"{}")", name)) != std::string::npos);
}

TEST_CASE("a host that boots has failed by itself") {
  Story story = four_ports();
  story.say(400, "host:8", "host_boot").say(401, "rtsw:4/0", "link_up");
  story.say(401, "rtsw:4/1", "link_up");
  CHECK(story.told() == "host host:8 (5); cable rtsw:4--ctsw:0 (3); cable rtsw:4--ctsw:1 (3)");
  const auto cases = story.cases();
  CHECK(find(cases, CauseKind::host).closed);
  CHECK_FALSE(find(cases, CauseKind::link).closed);
}

TEST_CASE("the part that keeps the root keeps the name") {
  // The switch says twice that something is wrong with it: enough for two uplinks of four.
  Story story(small_zone(), rules_with("cards: {ports: 4}\n"
                                       "causes:\n  rack_switch:\n"
                                       "    direct: {asic_error: 5, device_unreachable: 5}\n"));
  story.link_down(100, 4, 0).link_down(100.5, 4, 1);
  story.say(99, "rtsw:4/0", "link_down").say(99, "rtsw:4/1", "link_down");
  story.say(101, "rtsw:4/card:1", "asic_error").say(101, "rtsw:4", "device_unreachable");
  CHECK(story.told() == "rack_switch rtsw:4 (10)");
  const std::string name = story.cases().at(0).id;
  story.say(400, "host:8", "host_boot").say(401, "rtsw:4/0", "link_up");
  story.say(401, "rtsw:4/1", "link_up");
  CHECK(story.told() == "host host:8 (5); rack_switch rtsw:4 (8)");
  const auto cases = story.cases();
  REQUIRE(cases.size() == 2);
  CHECK(cases[1].id == name);  // though the first record is the host's now
  CHECK(cases[1].split_from.empty());
  CHECK(cases[0].id != name);
  CHECK(cases[0].split_from == name);
}

TEST_CASE("what is left may be worth its root without any doubt, and nothing is split") {
  // Half of a spine's ports to 16 racks die in one blow, and later two optics among them complain:
  // eight are as good a sign of the switch as nine were.
  const auto story_of = [](int dead) {
    Story story(
        make_fabric("{generator: ai_zone, racks: 16, hosts_per_rack: 1, gpus_per_host: 1, "
                    "spines: 4, link: 400 Gbps}"));
    for (int rack = 0; rack < dead; ++rack) story.link_down(100 + 0.01 * rack, rack, 1);
    return story;
  };
  Story many = story_of(9);
  const std::string name = many.cases().at(0).id;
  CHECK(many.told() == "switch ctsw:1 (27)");
  optic_complains(many, 200, 3, 1);
  CHECK(many.counts().cases.split == 0);
  CHECK(many.told() == "switch ctsw:1 (27); optic rtsw:3--ctsw:1 (3)");
  CHECK(many.cases().at(0).id == name);
}

TEST_CASE("a case is not split by what comes after it was well, nor a rack by its hosts' boots") {
  Story well = four_ports();
  well.link_up(300, 4, 0).link_up(300, 4, 1).say(300, "rtsw:4/0", "link_up");
  well.say(300, "rtsw:4/1", "link_up");
  const std::string before = well.told();
  optic_complains(well, 330, 4, 0);
  CHECK(well.told() == before + "; optic rtsw:4--ctsw:0 (3)");
  CHECK(well.counts().cases.split == 0);
  Story power(small_zone());
  for (int spine = 0; spine < 4; ++spine)
    power.say(100, fmt::format("ctsw:{}->rtsw:4", spine), "link_down");
  power.say(103, "rack:4", "power_lost").say(900, "host:8", "host_boot");
  CHECK(power.told() == "power rack:4 (6)");
}

TEST_CASE("a split case is the same in any order of arrival, and can be split but once") {
  const auto busy = [] {
    Story story = four_ports();
    optic_complains(story, 200, 4, 0);
    story.say(400, "host:8", "host_boot").link_up(500, 4, 1);
    return story;
  };
  Story sorted = busy();
  const std::string expected = sorted.json();
  CHECK(sorted.counts().cases.split == 1);
  CHECK(expected.find("split_from") != std::string::npos);
  for (const std::uint64_t order : {11u, 12u, 13u})
    CHECK(busy().shuffle(29, order).json() == expected);
}

}  // namespace
}  // namespace weft::operate::triage
