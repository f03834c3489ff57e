// Relations learned from history: as a file, as they are mined, and at work beside the rules.
#include "operate/triage/learned.hpp"

#include "operate/triage/learner.hpp"
#include "operate/triage/test_kit.hpp"

namespace weft::operate::triage {
namespace {

using model::EventKind;
using model::Relation;
using testing::rules_with;
using testing::small_zone;
using testing::Story;

LearnedRelations relations_of(std::string_view yaml) {
  const auto config = parse_yaml(yaml, "relations.yaml");
  REQUIRE(config.has_value());
  auto out = LearnedRelations::read(*config, default_rules());
  REQUIRE_MESSAGE(out.has_value(), (out ? "" : out.error().text()));
  return *std::move(out);
}

std::string relations_refusal(std::string_view yaml) {
  const auto config = parse_yaml(yaml, "relations.yaml");
  REQUIRE(config.has_value());
  const auto out = LearnedRelations::read(*config, default_rules());
  REQUIRE_FALSE(out.has_value());
  return out.error().text();
}

constexpr std::string_view hot =
    "relations:\n"
    "  - {from: temperature_high, to: crc_errors, at: device, after: [1 s, 60 s], support: 40, "
    "confidence: 0.9}\n"
    "  - {from: crc_errors, to: memory_error, at: neighbour, after: [0 s, 30 s], support: 20, "
    "confidence: 0.7}\n";

// A switch gets hot: a case of its platform. One of its ports then makes a few bit errors, too few
// for a case.
Story hot_switch(std::string_view relations) {
  Story story(small_zone(), default_rules(),
              relations.empty() ? LearnedRelations() : relations_of(relations));
  for (int i = 0; i < 4; ++i) story.say(100 + 5 * i, "ctsw:1", "temperature_high");
  return story;
}

TEST_CASE("relations are written as they are read") {
  const LearnedRelations relations = relations_of(hot);
  REQUIRE(relations.rows().size() == 2);
  const auto led = relations.leading_to(EventKind::crc_errors);
  REQUIRE(led.size() == 1);
  CHECK(led[0].from == EventKind::temperature_high);
  CHECK(led[0].at == Nearness::device);
  CHECK(led[0].least_ns == ns_per_s);
  CHECK(led[0].most_ns == 60 * ns_per_s);
  CHECK(led[0].support == 40);
  CHECK(led[0].confidence == 0.9);
  CHECK(relations.leading_to(EventKind::link_down).empty());
  CHECK(relations.is_reason(EventKind::crc_errors));
  CHECK_FALSE(relations.is_reason(EventKind::memory_error));
  const std::string text = to_yaml(relations.rows(), "two\nlines");
  CHECK(text.starts_with("# two\n# lines\nrelations:\n  - {from: temperature_high"));
  CHECK(to_yaml(relations_of(text).rows(), "two\nlines") == text);
  CHECK(relations_of(to_yaml({}, "none")).empty());
}

TEST_CASE("a file of relations with errors is refused, each with its place") {
  const auto with = [](std::string_view row) {
    return relations_refusal(fmt::format("relations:\n  - {{{}}}\n", row));
  };
  const auto has = [](const std::string& text, std::string_view part) {
    CHECK_MESSAGE(text.find(part) != std::string::npos, text);
  };
  constexpr std::string_view rest = "at: port, after: [0 s, 9 s], support: 3, confidence: 0.5";
  has(relations_refusal("relation: []\n"), "relations");
  has(relations_refusal("relations: 3\n"), "relations.yaml:1");
  has(with(fmt::format("from: link_dwn, to: bgp_down, {}", rest)), "link_down");
  has(with(fmt::format("from: link_up, to: bgp_down, {}", rest)), "is not a fault");
  has(with(fmt::format("from: link_down, to: link_down, {}", rest)), "itself");
  has(with(fmt::format("from: link_down, {}", rest)), "\"to\"");
  const std::string pair = "from: link_down, to: bgp_down, support: 3, confidence: 0.5, ";
  has(with(pair + "at: planet, after: [0 s, 9 s]"), "relations.yaml:2");
  has(with(pair + "at: port, after: [9 s, 0 s]"), "minimum first");
  has(with(pair + "at: port, after: [0 s, 2 h]"), "1 h");
  has(with(pair + "at: port, after: 9 s"), "1 values");
  has(with(pair + "at: port, after: [0, 9]"), "unit");
  has(with("from: link_down, to: bgp_down, at: port, after: [0 s, 9 s], support: 0, "
           "confidence: 1.5, why: because"),
      "why");
  const std::string row = fmt::format("from: link_down, to: bgp_down, {}", rest);
  has(relations_refusal(fmt::format("relations:\n  - {{{}}}\n  - {{{}}}\n", row, row)),
      "relations.yaml:3:5: duplicate relation");
}

TEST_CASE("what no rule explains joins the case of what leads to it, and says so") {
  const auto crc = [](Story story) {
    story.say(130, "ctsw:1->rtsw:3", "crc_errors");
    return story;
  };
  CHECK(crc(hot_switch("")).told() == "platform ctsw:1 (4)");
  Story story = crc(hot_switch(hot));
  const auto cases = story.cases();
  REQUIRE(cases.size() == 1);
  CHECK(story.told() == "platform ctsw:1 (5)");
  CHECK(cases[0].members.back().relation == Relation::learned);
  CHECK(cases[0].members.back().confidence == 0.9);
  CHECK(story.json().find(R"({"record":"r4","relation":"learned","confidence":0.90})") !=
        std::string::npos);
  CHECK(story.counts().cases.learned == 1);
  CHECK(story.counts().cases.dismissed == 0);
}

TEST_CASE("kind, place and delay must all be as learned") {
  const auto told = [](double t, const char* entity, const char* kind) {
    Story story = hot_switch(hot);
    story.say(t, entity, kind);
    return story.told();
  };
  CHECK(told(130, "ctsw:1->rtsw:3", "crc_errors") == "platform ctsw:1 (5)");
  CHECK(told(130, "rtsw:3->ctsw:1", "crc_errors") == "platform ctsw:1 (4)");  // the other end
  CHECK(told(130, "ctsw:2->rtsw:3", "crc_errors") == "platform ctsw:1 (4)");
  CHECK(told(130, "ctsw:1->rtsw:3", "discards") == "platform ctsw:1 (4)");
  CHECK(told(176, "ctsw:1->rtsw:3", "crc_errors") == "platform ctsw:1 (4)");  // 61 s after the last
  CHECK(told(99, "ctsw:1->rtsw:3", "crc_errors") == "platform ctsw:1 (4)");   // before it
}

TEST_CASE("relations lead on from what they led to, to neighbours, as long as it is said") {
  Story story = hot_switch(hot);
  story.say(130, "ctsw:1->rtsw:3", "crc_errors").say(180, "ctsw:1->rtsw:3", "crc_errors");
  story.say(145, "rtsw:5", "memory_error");
  CHECK(story.told() == "platform ctsw:1 (7)");
}

TEST_CASE("the written rules come first, and their roots stay") {
  Story story = hot_switch(hot);
  // Three readings are a case by themselves; a dead cable is one whatever got hot before.
  for (int i = 0; i < 3; ++i) story.say(130 + i, "ctsw:1->rtsw:3", "crc_errors");
  story.link_down(140, 5, 1);
  CHECK(story.told() == "platform ctsw:1 (4); cable rtsw:3--ctsw:1 (3); cable rtsw:5--ctsw:1 (3)");
  CHECK(story.counts().cases.learned == 0);
}

TEST_CASE("what a case does not explain becomes a member where a relation leads to it") {
  const std::string_view fails =
      "relations:\n  - {from: link_down, to: card_fail, at: port, after: [0 s, 60 s], "
      "support: 9, confidence: 0.8}\n";
  Story story(small_zone(), default_rules(), relations_of(fails));
  story.link_down(100, 2, 1).say(130, "rtsw:2->ctsw:1", "card_fail");
  const auto cases = story.cases();
  REQUIRE(cases.size() == 1);
  CHECK(cases[0].members.size() == 4);
  CHECK(cases[0].unexplained.empty());
}

TEST_CASE("evidence is held for the case of its reason, once") {
  // The single bit error is decided on at 250, the temperature that was said three times at 251.
  const std::string_view slow =
      "relations:\n  - {from: temperature_high, to: fan_fail, at: neighbour, after: [0 s, 60 s], "
      "support: 9, confidence: 0.8}\n"
      "  - {from: fan_fail, to: temperature_high, at: neighbour, after: [0 s, 60 s], "
      "support: 9, confidence: 0.8}\n";
  Story story(small_zone(), default_rules(), relations_of(slow));
  for (int i = 0; i < 3; ++i) story.say(100 + 10 * i, "ctsw:1", "temperature_high");
  story.say(105, "rtsw:4", "fan_fail");
  CHECK(story.told() == "platform ctsw:1 (4)");
  // Each would wait for the other, and neither is a case.
  Story both(small_zone(), default_rules(), relations_of(slow));
  both.say(100, "ctsw:1", "temperature_high").say(105, "rtsw:4", "fan_fail");
  both.say(110, "ctsw:1", "temperature_high");
  CHECK(both.told().empty());
}

TEST_CASE("any order of arrival gives the same cases with learned relations too") {
  const auto busy = [] {
    Story story(small_zone(), default_rules(), relations_of(hot));
    Rng rng(7);
    for (int i = 0; i < 60; ++i) {
      const auto spine = static_cast<int>(rng.below(4)), rack = static_cast<int>(rng.below(8));
      for (int k = 0; k < 4; ++k)
        story.say(100 * i + k, fmt::format("ctsw:{}", spine), "temperature_high");
      story.say(100 * i + 20, fmt::format("ctsw:{}->rtsw:{}", spine, rack), "crc_errors");
      story.say(100 * i + 30, fmt::format("rtsw:{}", rack), "memory_error");
    }
    return story;
  };
  Story sorted = busy();
  const std::string expected = sorted.json();
  CHECK(sorted.counts().cases.learned >= 100);
  for (const std::uint64_t order : {11u, 12u, 13u})
    CHECK(busy().shuffle(29, order).json() == expected);
}

// Hot spines of which a port of theirs makes bit errors some 20 s later, and a neighbour of that
// runs out of memory; all of it among as many events of each kind that have no reason.
Story history(std::uint64_t seed) {
  Story story(small_zone());
  Rng rng(seed);
  const auto any = [&](std::uint64_t n) { return static_cast<int>(rng.below(n)); };
  for (int i = 0; i < 120; ++i) {
    const double t = 1000.0 * i;
    const int spine = any(4), rack = any(8);
    story.say(t, fmt::format("ctsw:{}", spine), "temperature_high");
    story.say(t + 10 + 20 * rng.uniform(), fmt::format("ctsw:{}->rtsw:{}", spine, rack),
              "crc_errors");
    if (i % 2 == 0)
      story.say(t + 40 + 10 * rng.uniform(), fmt::format("rtsw:{}", rack), "memory_error");
    story.say(120'000 * rng.uniform(), fmt::format("ctsw:{}", any(4)), "fan_fail");
    story.say(120'000 * rng.uniform(), fmt::format("rtsw:{}->ctsw:{}", any(8), any(4)),
              "crc_errors");
    story.say(120'000 * rng.uniform(), fmt::format("rtsw:{}", any(8)), "memory_error");
  }
  return story;
}

TEST_CASE("relations are learned with their place and delay, whatever the order of the records") {
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    const auto learn = [&](const Story& story) {
      Learner learner(story.context().parts, story.context().rules);
      for (const model::Record& row : story.set().rows) learner.add(story.set(), row);
      CHECK(learner.event_count() == story.set().rows.size());
      return learner.learn();
    };
    Story mixed = history(seed);
    const auto relations = learn(history(seed));
    CHECK(to_yaml(relations, "") == to_yaml(learn(mixed.shuffle(5000, 3)), ""));
    REQUIRE_MESSAGE(relations.size() == 2, to_yaml(relations, ""));
    CHECK(relations[0].from == EventKind::temperature_high);
    CHECK(relations[0].to == EventKind::crc_errors);
    CHECK(relations[0].at == Nearness::device);
    CHECK(relations[0].least_ns >= 9 * ns_per_s);
    CHECK(relations[0].most_ns <= 31 * ns_per_s);
    CHECK(relations[0].support >= 100);
    CHECK(relations[0].support <= 125);
    CHECK(relations[0].confidence > 0.8);
    CHECK(relations[1].to == EventKind::memory_error);
    CHECK(relations[1].at == Nearness::neighbour);
  }
}

TEST_CASE("of nothing, nothing is learned") {
  Story story(small_zone());
  Learner empty(story.context().parts, story.context().rules);
  CHECK(empty.learn().empty());
  story.say(1, "ctsw:1", "fan_fail").say(2, "ctsw:1", "link_up").say(3, "ctsw:1", "config_commit");
  Learner learner(story.context().parts, story.context().rules);
  for (const model::Record& row : story.set().rows) learner.add(story.set(), row);
  CHECK(learner.event_count() == 1);
  CHECK(learner.learn().empty());
}

}  // namespace
}  // namespace weft::operate::triage
