// Stories of networks on which somebody works: what an order brings about is no fault, and a fault
// next to it is one all the same. Told as devices and probers tell it.
#include "operate/triage/planned.hpp"

#include "operate/triage/test_kit.hpp"

namespace weft::operate::triage {
namespace {

using testing::at_ns;
using testing::small_zone;
using testing::Story;

// One end closes the session by its configuration, the other is told so; then the routes are gone.
void sessions_close(Story& story, double t, int rack, int spine) {
  story.say(t, fmt::format("rtsw:{}->ctsw:{}", rack, spine), "bgp_down",
            {.attrs = {{"reason", "policy"}}});
  story.say(t + 0.02, fmt::format("ctsw:{}->rtsw:{}", spine, rack), "bgp_down",
            {.attrs = {{"reason", "reset"}}});
}
void sessions_come_back(Story& story, double t, int rack, int spine) {
  story.say(t, fmt::format("rtsw:{}->ctsw:{}", rack, spine), "bgp_up");
  story.say(t + 0.01, fmt::format("ctsw:{}->rtsw:{}", spine, rack), "bgp_up");
}
// Probers name the cable once a second.
void losses(Story& story, double from, double to, std::string_view cable) {
  for (double t = from; t < to; t += 1)
    story.say(t, cable, "probe_loss", {.source = model::Source::probe, .value = 0.01});
}

TEST_CASE("a grey cable that is drained stays a cable: the drain's own lines are no cause") {
  Story story(small_zone());
  losses(story, 100, 106, "ctsw:2->rtsw:1");
  story.say(105.5, "rtsw:1--ctsw:2", "drain");
  sessions_close(story, 107.9, 1, 2);
  story.say(200, "rtsw:1--ctsw:2", "undrain", {.attrs = {{"verified", "0 of 2000 lost"}}});
  sessions_come_back(story, 203, 1, 2);
  CHECK(story.told() == "cable rtsw:1--ctsw:2 (6)");
  CHECK(story.counts().cases.planned == 6);
  const auto cases = story.cases();
  CHECK(cases[0].unexplained.empty());
  REQUIRE(cases[0].closed);  // test traffic came through
  CHECK(cases[0].closed->ns == at_ns(200));
}

TEST_CASE("without an order the same lines are somebody's change, as before") {
  Story story(small_zone());
  sessions_close(story, 107.9, 1, 2);
  CHECK(story.told() == "misconfiguration rtsw:1 (2)");
}

TEST_CASE("an order alone, on a cable or on a switch, is no case") {
  Story cable(small_zone());
  cable.say(100, "rtsw:1--ctsw:2", "drain");
  sessions_close(cable, 102, 1, 2);
  cable.say(102.5, "rtsw:1->ctsw:2", "link_down").say(102.6, "ctsw:2->rtsw:1", "link_down");
  cable.say(150, "rtsw:1--ctsw:2", "undrain");
  cable.say(151, "rtsw:1->ctsw:2", "link_up").say(151, "ctsw:2->rtsw:1", "link_up");
  sessions_come_back(cable, 153, 1, 2);
  CHECK(cable.told().empty());
  Story spine(small_zone());
  spine.say(100, "ctsw:2", "drain").say(101, "ctsw:2", "config_commit");
  for (int rack = 0; rack < 8; ++rack) sessions_close(spine, 103 + 0.2 * rack, rack, 2);
  // A rack switch was changed by nobody: that its session ends, too, is the spine's drain.
  CHECK(spine.told().empty());
}

TEST_CASE("an automation that takes a minute, and an order that is tried again") {
  Story story(small_zone());
  story.say(100, "rtsw:1--ctsw:2", "drain").say(130, "rtsw:1--ctsw:2", "drain");
  sessions_close(story, 185, 1, 2);
  CHECK(story.told().empty());
}

TEST_CASE("lines with clocks of their own: whole seconds, and a clock three seconds behind") {
  Story story(small_zone());
  story.say(100.7, "rtsw:1--ctsw:2", "drain");
  story.say(100, "ctsw:2->rtsw:1", "bgp_down", {.attrs = {{"reason", "reset"}}});
  story.say(98.2, "rtsw:1->ctsw:2", "bgp_down", {.attrs = {{"reason", "policy"}}});
  CHECK(story.told().empty());
}

TEST_CASE("a carrier that is lost because of the fault is not the order's") {
  Story story(small_zone());
  story.link_down(100, 1, 2).say(102, "rtsw:1--ctsw:2", "drain");
  story.say(104, "rtsw:1->ctsw:2", "bgp_down", {.attrs = {{"reason", "policy"}}});
  CHECK(story.told() == "cable rtsw:1--ctsw:2 (3)");
  // A session that died over a link that kept its carrier, and is why the cable was drained.
  Story dead(small_zone());
  dead.say(100, "rtsw:1->ctsw:2", "bgp_down", {.attrs = {{"reason", "hold_timer"}}});
  dead.say(100.5, "ctsw:2->rtsw:1", "bgp_down", {.attrs = {{"reason", "hold_timer"}}});
  dead.say(103, "rtsw:1--ctsw:2", "drain");
  dead.say(105, "rtsw:1->ctsw:2", "bgp_down", {.attrs = {{"reason", "policy"}}});
  CHECK(dead.told() == "cable rtsw:1--ctsw:2 (2)");
}

TEST_CASE("a fault on a part that is drained is a fault: its light, its carrier, its losses") {
  const auto drained = [](Story& story) {
    story.say(100, "rtsw:1--ctsw:2", "drain");
    sessions_close(story, 102, 1, 2);
  };
  Story optic(small_zone());
  drained(optic);
  for (int i = 0; i < 4; ++i) optic.say(110 + 20 * i, "rtsw:1->ctsw:2", "rx_power");
  CHECK(optic.told() == "optic rtsw:1--ctsw:2 (4)");
  Story carrier(small_zone());
  drained(carrier);
  carrier.say(400, "rtsw:1->ctsw:2", "link_down").say(400, "ctsw:2->rtsw:1", "link_down");
  CHECK(carrier.told() == "cable rtsw:1--ctsw:2 (2)");
  Story loss(small_zone());
  drained(loss);
  losses(loss, 103, 110, "rtsw:1--ctsw:2");
  CHECK(loss.told() == "cable rtsw:1--ctsw:2 (7)");
}

TEST_CASE("a neighbour's fault is not the order's, nor is what comes long after the return") {
  Story story(small_zone());
  story.say(100, "rtsw:1--ctsw:2", "drain");
  sessions_close(story, 102, 1, 2);
  story.link_down(103, 1, 3).link_down(103, 2, 2);
  CHECK(story.told() == "cable rtsw:1--ctsw:3 (3); cable rtsw:2--ctsw:2 (3)");
  Story later(small_zone());
  later.say(100, "rtsw:1--ctsw:2", "drain").say(200, "rtsw:1--ctsw:2", "undrain");
  sessions_close(later, 290, 1, 2);
  CHECK(later.told() == "misconfiguration rtsw:1 (2)");
}

TEST_CASE("a push that has nothing to do with the order keeps its case, on the same switch") {
  Story story(small_zone());
  story.say(100, "rtsw:1--ctsw:2", "drain");
  sessions_close(story, 101, 1, 2);
  story.say(103, "rtsw:1", "config_commit", {.attrs = {{"change", "900012"}}});
  sessions_close(story, 104, 1, 0);
  sessions_close(story, 104, 1, 1);
  const auto cases = story.cases();
  REQUIRE(cases.size() == 1);
  CHECK(cases[0].kind == CauseKind::config);
  CHECK(cases[0].change == "900012");
  CHECK(cases[0].members.size() == 5);
}

TEST_CASE("the same records in any order of arrival give the same cases, byte for byte") {
  const auto tell = [](Story& story) {
    losses(story, 100, 106, "ctsw:2->rtsw:1");
    story.say(105.5, "rtsw:1--ctsw:2", "drain").say(140, "rtsw:3--ctsw:2", "drain");
    sessions_close(story, 107.9, 1, 2);
    sessions_close(story, 141, 3, 2);
    story.link_down(142, 3, 2).link_down(150, 4, 0);
    story.say(200, "rtsw:1--ctsw:2", "undrain");
    sessions_come_back(story, 203, 1, 2);
    story.say(260, "rtsw:7--ctsw:0", "info");
  };
  Story in_order(small_zone());
  tell(in_order);
  const std::string expected = in_order.json();
  CHECK(!expected.empty());
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Story story(small_zone());
    tell(story);
    story.shuffle(25, seed);
    CAPTURE(seed);
    CHECK(story.json() == expected);
  }
}

TEST_CASE("announced maintenance: known before it begins, and what falls inside is expected") {
  Story story(small_zone());
  // Announced two hours ahead; a clock that is right says so.
  story.say(7300, "ctsw:1", "maintenance", {.until = 9000, .received = 100});
  for (int rack = 0; rack < 8; ++rack) sessions_close(story, 7400, rack, 1);
  story.spine_dies(7420, 1, 8).say(7600, "ctsw:1", "device_boot");
  story.link_down(7430, 5, 0);
  const auto cases = story.cases();
  REQUIRE(story.told() == "switch ctsw:1 (9); cable rtsw:5--ctsw:0 (3)");  // as they close
  CHECK(cases[1].state == CaseState::settled);
  CHECK(cases[0].state == CaseState::maintenance);
  CHECK(cases[0].maintenance == "r0");
  // Maintenance that says no end is over when somebody says so.
  Story open(small_zone());
  open.say(100, "ctsw:1", "maintenance").say(500, "ctsw:1", "undrain");
  open.spine_dies(200, 1, 8).say(300, "ctsw:1", "device_boot").spine_dies(9000, 1, 8);
  REQUIRE(open.cases().size() == 2);
  CHECK(open.cases()[0].state == CaseState::maintenance);
  CHECK(open.cases()[1].state == CaseState::settled);
  // After the window the same is a fault.
  Story later(small_zone());
  later.say(100, "ctsw:1", "maintenance", {.until = 200});
  later.spine_dies(300, 1, 8);
  REQUIRE(later.cases().size() == 1);
  CHECK(later.cases()[0].state == CaseState::settled);
}

TEST_CASE("a drain that ends by itself") {
  Story story(small_zone());
  story.say(100, "rtsw:1--ctsw:2", "drain", {.until = 200});
  sessions_close(story, 101, 1, 2);
  sessions_close(story, 190, 1, 2);
  CHECK(story.told().empty());
  sessions_close(story, 260, 1, 2);
  CHECK(story.told() == "misconfiguration rtsw:1 (2)");
}

}  // namespace
}  // namespace weft::operate::triage
