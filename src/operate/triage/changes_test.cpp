// Who is told what changed knows as much as who describes all open cases anew.
#include <map>
#include <string>

#include "base/test_effort.hpp"
#include "operate/triage/test_kit.hpp"

namespace weft::operate::triage {
namespace {

using testing::at_ns;
using testing::small_zone;
using testing::Story;

std::string json_of(const Story& story, const Case& c) {
  return to_json(story.fabric(), c,
                 [&](std::uint64_t s) -> std::string_view { return story.set().ids[s]; }) +
         "\n";
}

struct Onlooker {
  Cursor known;
  std::map<std::uint64_t, std::string> cases;  // as JSON
  std::size_t described = 0;

  void look(const Story& story, const Triage& triage) {
    const auto [changed, gone] = triage.changes_since(known, CaseState::settled);
    for (const std::uint64_t number : gone) CHECK(cases.erase(number) == 1);
    for (const auto& [number, c] : changed) cases[number] = json_of(story, c);
    described += changed.size();
  }
  std::string all() const {
    std::string out;
    for (const auto& [number, json] : cases) out += json;
    return out;
  }
};

std::string all_open(const Story& story, const Triage& triage) {
  std::string out;
  for (const Case& c : triage.open_cases(CaseState::settled)) out += json_of(story, c);
  return out;
}

// Cables and switches that fail and come back on few parts, so that cases meet.
Story random_story(std::uint64_t seed, double until_s) {
  constexpr std::array<std::string_view, 8> kinds{"link_down",  "link_down", "link_up",
                                                  "bgp_down",   "bgp_up",    "probe_loss",
                                                  "prefec_ber", "crc_errors"};
  Rng rng(seed);
  Story story(small_zone());
  for (double t = 10; t < until_s; t += 20 * rng.uniform()) {
    const auto rack = static_cast<int>(rng.below(4)), spine = static_cast<int>(rng.below(3));
    if (rng.below(12) == 0) {
      story.say(t, fmt::format("ctsw:{}", spine), "device_unreachable").spine_dies(t, spine, 8);
    } else if (rng.below(12) == 0) {
      story.say(t, fmt::format("rtsw:{}", rack), "config_commit", {.attrs = {{"change", "7"}}});
    } else {
      story.say(t, fmt::format("rtsw:{}->ctsw:{}", rack, spine), kinds[rng.below(kinds.size())]);
    }
  }
  return story;
}

}  // namespace

TEST_CASE("what is told as changed adds up to what is open") {
  std::size_t seen = 0;
  for (std::uint64_t seed = 1; seed <= test_effort(20); ++seed) {
    CAPTURE(seed);
    const Story story = random_story(seed, 6'000);
    Triage triage(story.context(), [](const Case&) {});
    Onlooker onlooker;
    for (const model::Record& row : story.set().rows) {
      triage.add(story.set(), row, row.id);
      triage.advance(row.t);
      onlooker.look(story, triage);
      REQUIRE(onlooker.all() == all_open(story, triage));
      seen += onlooker.cases.size();
    }
  }
  CHECK(seen > 1'000);
}

TEST_CASE("looks that find nothing new describe nothing") {
  Story story(small_zone());
  for (int spine = 0; spine < 4; ++spine) story.link_down(100 + spine, 2 * spine, spine);
  Triage triage(story.context(), [](const Case&) {});
  for (const model::Record& row : story.set().rows) triage.add(story.set(), row, row.id);
  Onlooker onlooker;
  for (int tenth = 0; tenth < 20'000; ++tenth) {
    triage.advance({at_ns(100 + 0.1 * tenth)});
    onlooker.look(story, triage);
  }
  CHECK(onlooker.cases.size() == 4);
  CHECK(onlooker.described >= 4);
  CHECK(onlooker.described <= story.set().rows.size());
}

}  // namespace weft::operate::triage
