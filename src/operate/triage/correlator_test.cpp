// One small story for each kind of cause, and for each way in which evidence may come.
#include "operate/triage/correlator.hpp"

#include "operate/triage/test_kit.hpp"

namespace weft::operate::triage {
namespace {

using testing::at_ns;
using testing::rules_with;
using testing::small_zone;
using testing::Story;

TEST_CASE("a cable: both ends and the session are one case, and its end closes it") {
  Story story(small_zone());
  story.link_down(100, 2, 1).link_up(300, 2, 1);
  const auto cases = story.cases();
  REQUIRE(cases.size() == 1);
  CHECK(story.told() == "cable rtsw:2--ctsw:1 (6)");
  CHECK(cases[0].opened.ns == at_ns(100));
  REQUIRE(cases[0].closed);
  CHECK(cases[0].closed->ns == at_ns(301));
  CHECK(cases[0].members[2].relation == Relation::session_over);
  CHECK(cases[0].confidence > 0.7);
}

TEST_CASE("a cable that stays down is never closed; a new fault after its repair is a new case") {
  Story story(small_zone());
  story.link_down(100, 2, 1);
  CHECK_FALSE(story.cases().at(0).closed);
  story.link_up(300, 2, 1).link_down(1200, 2, 1);
  CHECK(story.told() == "cable rtsw:2--ctsw:1 (6); cable rtsw:2--ctsw:1 (3)");
  // Minutes after it was well again it is the same trouble.
  Story again(small_zone());
  again.link_down(100, 2, 1).link_up(300, 2, 1).link_down(600, 2, 1);
  CHECK(again.told() == "cable rtsw:2--ctsw:1 (9)");
}

TEST_CASE("a single blip is no case; many are a flap, even when each is harmless") {
  Story story(small_zone());
  const auto blip = [&](double t) {
    story.say(t, "rtsw:3->ctsw:0", "link_down").say(t + 0.5, "rtsw:3->ctsw:0", "link_up");
  };
  blip(100);
  CHECK(story.told().empty());
  CHECK(story.counts().cases.dismissed == 2);
  for (int i = 1; i < 6; ++i) blip(100 + 20 * i);
  CHECK(story.told() == "port_flap rtsw:3--ctsw:0 (12)");
}

TEST_CASE("light and bit errors make an optic, also where the link later dies of it") {
  Story story(small_zone());
  for (int i = 0; i < 4; ++i) story.say(100 + 20 * i, "rtsw:5->ctsw:3", "prefec_ber");
  story.link_down(250, 5, 3);
  CHECK(story.told() == "optic rtsw:5--ctsw:3 (7)");
  // One reading a long time before is no reason.
  Story single(small_zone());
  single.say(10, "rtsw:5->ctsw:3", "prefec_ber").link_down(400, 5, 3);
  CHECK(single.told() == "cable rtsw:5--ctsw:3 (3)");
}

TEST_CASE("ports that run slower are a case of their cable, or of the NIC; one record is none") {
  const auto told = [](std::string_view part, int times) {
    Story story(small_zone());
    for (int i = 0; i < times; ++i)
      story.say(100 + 10 * i, part, "link_slow",
                {.attrs = {{"rate_share", "0.5"}}, .source = model::Source::agent, .value = 0.5});
    return story.told();
  };
  CHECK(told("rtsw:1->ctsw:2", 1).empty());
  CHECK(told("rtsw:1->ctsw:2", 4) == "cable rtsw:1--ctsw:2 (4)");
  CHECK(told("nic:5", 4) == "host_nic nic:5 (4)");
}

TEST_CASE(
    "a port that runs at its rate again has recovered, and one that slows down again has not") {
  const model::Attributes half{{"rate_share", "0.5"}}, full{{"rate_share", "1"}};
  for (const bool slows_again : {false, true}) {
    Story story(small_zone());
    const auto say = [&](double t, const char* kind, const model::Attributes& attrs) {
      story.say(t, "rtsw:1->ctsw:2", kind, {.attrs = attrs, .source = model::Source::agent});
    };
    for (int i = 0; i < 4; ++i) say(100 + 10 * i, "link_slow", half);
    say(300, "link_speed_ok", full);
    for (int i = 0; slows_again && i < 4; ++i) say(330 + 10 * i, "link_slow", half);
    const auto cases = story.cases();
    REQUIRE(cases.size() == 1);
    CHECK(cases[0].closed.has_value() == !slows_again);
    if (!slows_again) CHECK(cases[0].closed->ns == at_ns(300));
  }
}

TEST_CASE("a NIC, seen from the host and from its switch") {
  Story story(small_zone());
  story.say(100, "nic:5", "nic_down").say(100.1, "rtsw:1/1", "link_down");
  CHECK(story.told() == "host_nic nic:5 (2)");
}

TEST_CASE("a host takes its NICs with it") {
  Story story(small_zone());
  story.say(100, "rtsw:1/2", "link_down").say(101, "rtsw:1/3", "link_down");
  story.say(100, "host:3", "probe_host", {.until = 110});
  story.say(115, "host:3", "agent_silent").say(240, "host:3", "host_boot");
  story.say(241, "nic:6", "nic_up").say(241, "nic:7", "nic_up");
  CHECK(story.told() == "host host:3 (7)");
}

TEST_CASE("a line card is a run of ports, one case; the rest of the switch is not in it") {
  // Cards of four ports: racks 4 to 7 hang on card 1.
  Story story(small_zone(), rules_with("cards: {ports: 4}"));
  story.say(100, "ctsw:2/card:1", "card_fail");
  for (int rack = 4; rack < 8; ++rack) story.link_down(100.2, rack, 2);
  CHECK(story.told() == "line_card ctsw:2/card:1 (13)");
  // Without its own word, and with one cable silent: still dearer than three cables would be.
  Story silent(small_zone(), rules_with("cards: {ports: 4}"));
  for (int rack = 4; rack < 7; ++rack) silent.link_down(100.2, rack, 2);
  CHECK(silent.cases().size() == 1);
}

TEST_CASE("a spine dies: its far ends speak, or most of them") {
  Story story(small_zone());
  story.spine_dies(100, 1, 8).say(120, "ctsw:1", "device_unreachable");
  CHECK(story.told() == "switch ctsw:1 (17)");
  Story most(small_zone());
  most.spine_dies(100, 1, 6);
  CHECK(most.told() == "switch ctsw:1 (12)");
  const auto cases = most.cases();
  CHECK(cases[0].silent == 2);
  CHECK(cases[0].suppressed == 6);
}

TEST_CASE("two cables of one spine are two cables") {
  Story story(small_zone());
  story.link_down(100, 1, 1).link_down(100.5, 6, 1);
  CHECK(story.told() == "cable rtsw:1--ctsw:1 (3); cable rtsw:6--ctsw:1 (3)");
}

TEST_CASE("a rack switch: uplinks, and the NICs and hosts below it") {
  Story story(small_zone());
  for (int spine = 0; spine < 4; ++spine)
    story.say(100, fmt::format("ctsw:{}->rtsw:4", spine), "link_down");
  for (int nic = 16; nic < 20; ++nic) story.say(100.1, fmt::format("nic:{}", nic), "nic_down");
  story.say(100, "host:8", "probe_host", {.until = 110});
  CHECK(story.told() == "rack_switch rtsw:4 (9)");
  CHECK(story.cases().at(0).confidence > 0.9);  // its hosts are alive: it is not the rack's power
}

TEST_CASE("a rack without power: the same, and somebody says so, even much later") {
  Story story(small_zone());
  for (int spine = 0; spine < 4; ++spine)
    story.say(100, fmt::format("ctsw:{}->rtsw:4", spine), "link_down");
  story.say(110, "rack:4", "power_lost");
  CHECK(story.told() == "power rack:4 (5)");
  CHECK(story.counts().cases.merged <= 1);
}

TEST_CASE("late evidence moves the root of an open case and keeps its id") {
  Story story(small_zone());
  for (int spine = 0; spine < 4; ++spine)
    story.say(100, fmt::format("ctsw:{}->rtsw:4", spine), "link_down");
  const std::string before = story.cases().at(0).id;
  CHECK(story.told() == "rack_switch rtsw:4 (4)");
  story.say(109, "rack:4", "power_lost");  // decided at 117, the switch at 105
  CHECK(story.told() == "power rack:4 (5)");
  CHECK(story.cases().at(0).id == before);
}

TEST_CASE("cables that were cases of their own become symptoms when the spine is seen to be dead") {
  Story story(small_zone());
  story.link_down(100, 0, 1);  // decided before the others speak
  for (int rack = 1; rack < 8; ++rack) story.link_down(107, rack, 1);
  CHECK(story.told() == "switch ctsw:1 (24)");
  CHECK(story.counts().cases.merged == 1);
}

TEST_CASE("all spines lost is one case of the zone") {
  Story story(small_zone());
  for (int spine = 0; spine < 4; ++spine) story.spine_dies(100, spine, 8);
  CHECK(story.told() == "zone zone:0 (64)");
}

TEST_CASE("control plane: sessions end, links stay up") {
  Story story(small_zone());
  story.say(100, "rtsw:2", "process_crash");
  for (int spine = 0; spine < 4; ++spine)
    story.say(103, fmt::format("ctsw:{}->rtsw:2", spine), "bgp_down",
              {.attrs = {{"reason", "hold_timer"}}});
  CHECK(story.told() == "control_plane rtsw:2 (5)");
}

TEST_CASE("a switch that does not forward to a host has lost its control plane, once and for all") {
  Story story(small_zone());
  for (int second = 0; second < 30; ++second)
    story.say(100 + second, "ctsw:2", "probe_route", {.attrs = {{"to", "nic:5"}}});
  CHECK(story.told() == "control_plane ctsw:2 (30)");
}

TEST_CASE("a change pushed to several devices is one case, named by the change") {
  Story story(small_zone());
  for (int rack = 1; rack < 4; ++rack) {
    const double t = 100 + 5 * rack;
    story.say(t, fmt::format("rtsw:{}", rack), "config_commit", {.attrs = {{"change", "4711"}}});
    for (int spine = 0; spine < 2; ++spine)
      story.say(t + 1 + spine, fmt::format("rtsw:{}->ctsw:{}", rack, spine), "bgp_down",
                {.attrs = {{"reason", "policy"}}});
  }
  CHECK(story.told() == "misconfiguration change:4711 (9)");
}

TEST_CASE("a push of which one commit got lost is still one case") {
  Story story(small_zone());
  const model::Attributes policy{{"reason", "policy"}};
  story.say(101, "rtsw:1->ctsw:0", "bgp_down", {.attrs = policy});  // its commit is missing
  story.say(104, "rtsw:2", "config_commit", {.attrs = {{"change", "4711"}}});
  story.say(105, "rtsw:2->ctsw:0", "bgp_down", {.attrs = policy});
  CHECK(story.told() == "misconfiguration change:4711 (3)");
}

TEST_CASE("congestion: the queue to a NIC, and who was paused because of it") {
  Story story(small_zone());
  for (int i = 0; i < 6; ++i) {
    const double t = 100 + 10 * i;
    story.say(t, "rtsw:3/1", "queue_depth").say(t, "rtsw:3/1", "ecn_marks");
    story.say(t + 1, "ctsw:2->rtsw:3", "pfc_pauses");  // paused by rtsw:3
    story.say(t + 2, "rtsw:6->ctsw:2", "pfc_pauses");  // paused by ctsw:2 in turn
  }
  CHECK(story.told() == "congestion nic:13 (24)");
}

TEST_CASE("capacity of a rack is a case beside those of the faults, until it is enough again") {
  Story story(small_zone());
  story.say(100, "rtsw:1->ctsw:0", "link_down").say(100, "ctsw:0->rtsw:1", "link_down");
  story.say(140, "rtsw:1->ctsw:1", "link_down").say(140, "ctsw:1->rtsw:1", "link_down");
  story.say(200, "rack:1", "capacity_low", {.source = model::Source::controller});
  story.say(2000, "rack:1", "capacity_low", {.source = model::Source::controller});
  story.say(2100, "rack:1", "capacity_ok", {.source = model::Source::controller});
  CHECK(story.told() == "capacity rack:1 (3); cable rtsw:1--ctsw:0 (2); cable rtsw:1--ctsw:1 (2)");
  const auto cases = story.cases();
  REQUIRE(cases.size() == 3);
  CHECK(cases[0].closed.has_value());
  CHECK_FALSE(cases[1].closed.has_value());
  CHECK(cases[0].confidence > 0.7);
}

// A record that names a peer is placed on the cable between them, not on a switch that is full.
TEST_CASE("a NIC is paused and names its peer") {
  Story story(small_zone());
  for (const double t : {100.0, 101.0})
    story.say(t, "nic:0", "pfc_pauses", {.attrs = {{"peer", "rtsw:0"}}});
  CHECK(story.cases().empty());
  CHECK(story.counts().cases.dismissed == 2);
}

TEST_CASE("power supplies and fans are the platform's, and too little is nothing") {
  Story story(small_zone());
  story.say(100, "ctsw:1", "fan_fail");
  CHECK(story.told().empty());
  story.say(110, "ctsw:1", "temperature_high").say(120, "ctsw:1", "temperature_high");
  CHECK(story.told() == "platform ctsw:1 (3)");
}

TEST_CASE("part of a switch: many ports at once, not all, and no more than those") {
  Story story(
      testing::make_fabric("{generator: ai_zone, racks: 32, hosts_per_rack: 1, "
                           "gpus_per_host: 1, spines: 4, link: 400 Gbps}"));
  for (int rack = 0; rack < 24; rack += 2) story.link_down(100 + 0.01 * rack, rack, 1);
  const auto cases = story.cases();
  CHECK(story.told() == "switch ctsw:1 (36)");
  REQUIRE(cases.size() == 1);
  CHECK(cases[0].is_partial);
}

TEST_CASE("an announced window is told of as such, and holds only what it names") {
  Story story(small_zone());
  story.maintain({"mw1", "maintenance", {"ctsw:1"}, {at_ns(50)}, {at_ns(500)}, {}});
  story.spine_dies(100, 1, 8).link_down(200, 3, 2);
  const auto cases = story.cases();
  REQUIRE(cases.size() == 2);
  CHECK(cases[0].state == CaseState::maintenance);
  CHECK(cases[0].maintenance == "mw1");
  CHECK(cases[1].state == CaseState::settled);
  const auto unknown =
      Maintenance::create(story.context().parts, story.context().suspects,
                          {{"mw2", "maintenance", {"ctsw:99"}, {at_ns(50)}, {at_ns(500)}, {}}});
  REQUIRE_FALSE(unknown.has_value());
  CHECK(unknown.error().text().find("mw2") != std::string::npos);
}

TEST_CASE("what the cause does not explain is named") {
  Story story(small_zone());
  story.link_down(100, 2, 1).say(130, "rtsw:2->ctsw:1", "card_fail");
  const auto cases = story.cases();
  REQUIRE(cases.size() == 1);
  CHECK(cases[0].members.size() == 3);
  CHECK(cases[0].unexplained.size() == 1);
}

TEST_CASE("records said twice are members and count once") {
  Story story(small_zone());
  for (int i = 0; i < 5; ++i) story.say(100, "rtsw:2->ctsw:1", "link_down");
  CHECK(story.told() == "cable rtsw:2--ctsw:1 (5)");
  CHECK(story.counts().cases.repeats == 4);
}

TEST_CASE("a poll that finds an interface down minutes later belongs to what was told") {
  Story story(small_zone());
  story.link_down(100, 2, 1);
  story.say(127, "rtsw:2->ctsw:1", "interface_down", {.source = model::Source::snmp});
  CHECK(story.told() == "cable rtsw:2--ctsw:1 (4)");
}

TEST_CASE("a clock that is hours off is repaired by the time of receipt") {
  Story story(small_zone());
  story.link_down(100, 2, 1);
  story.say(7300.2, "ctsw:1->rtsw:2", "bgp_down", {.received = 100.9});
  CHECK(story.told() == "cable rtsw:2--ctsw:1 (4)");
  CHECK(story.counts().records.wrong_clocks == 1);
}

TEST_CASE("garbage in time does not stop what is sound") {
  Story story(small_zone());
  story.link_down(100, 2, 1);
  story.say(9e8, "ctsw:3", "device_unreachable").say(-9e8, "ctsw:3", "device_unreachable");
  for (int i = 0; i < 100; ++i) story.say(200 + i, "rtsw:0", "cpu_high", {.value = 1.0 * i});
  story.link_down(400, 5, 1);
  CHECK(story.told().find("cable rtsw:2--ctsw:1 (3)") != std::string::npos);
  CHECK(story.told().find("cable rtsw:5--ctsw:1 (3)") != std::string::npos);
}

// A busy hour: something of everything.
Story busy_hour(std::uint64_t seed) {
  Story story(small_zone(), rules_with("cards: {ports: 4}"));
  Rng rng(seed);
  for (int i = 0; i < 40; ++i) {
    const double t = 60 + 80 * i;
    const int rack = static_cast<int>(rng.below(8)), spine = static_cast<int>(rng.below(4));
    switch (i % 5) {
      case 0:
        story.link_down(t, rack, spine).link_up(t + 30, rack, spine);
        break;
      case 1:
        story.spine_dies(t, spine, 8);
        for (int r = 0; r < 8; ++r) story.link_up(t + 40, r, spine);
        break;
      case 2:
        for (int s = 0; s < 4; ++s) story.link_down(t, rack, s).link_up(t + 20, rack, s);
        story.say(t + 3, fmt::format("rack:{}", rack), "power_lost");
        break;
      case 3:
        story.say(t, fmt::format("rtsw:{}", rack), "process_crash");
        break;
      default:
        for (int k = 0; k < 5; ++k)
          story.say(t + 3 * k, fmt::format("rtsw:{}->ctsw:{}", rack, spine), "prefec_ber");
    }
    story.say(t + 1, fmt::format("rtsw:{}->ctsw:{}", rack, spine), "probe_loss",
              {.until = t + 11, .source = model::Source::probe});
  }
  return story;
}

TEST_CASE("any order of arrival within the lateness gives the same cases, byte for byte") {
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    const std::string sorted = busy_hour(seed).shuffle(0, 1).json();
    CHECK(sorted.size() > 1000);
    for (const std::uint64_t order : {11u, 12u, 13u, 14u})
      CHECK(busy_hour(seed).shuffle(29, order).json() == sorted);
  }
}

TEST_CASE("one spine of a 252-rack zone dies among unrelated faults: one case, that root") {
  Story story(testing::make_fabric("{generator: ai_zone, racks: 252, spines: 18, link: 400 Gbps}"));
  story.link_down(90, 17, 3).link_down(98, 200, 11).say(99, "nic:77", "nic_down");
  story.spine_dies(100, 5, 252).link_down(101, 44, 9).link_down(104, 45, 2);
  for (int nic = 160; nic < 168; ++nic)  // all of host 20
    story.say(102, fmt::format("rtsw:10/{}", nic - 160), "link_down");
  CHECK(story.told() ==
        "cable rtsw:17--ctsw:3 (3); cable rtsw:200--ctsw:11 (3); host_nic nic:77 (1); "
        "switch ctsw:5 (504); cable rtsw:44--ctsw:9 (3); host host:20 (8); "
        "cable rtsw:45--ctsw:2 (3)");
}

TEST_CASE("open cases can be told before they are done") {
  Story story(small_zone());
  story.link_down(100, 2, 1);
  Triage triage(story.context(), [](const Case&) {});
  for (const model::Record& row : story.set().rows) triage.add(story.set(), row, row.id);
  CHECK(triage.open_cases(CaseState::provisional).empty());
  triage.advance(Timestamp{at_ns(136)});  // lateness 30 s and settling 5 s
  const auto open = triage.open_cases(CaseState::provisional);
  REQUIRE(open.size() == 1);
  CHECK(open[0].state == CaseState::provisional);
  CHECK(triage.oldest_serial() == 0);
}

}  // namespace
}  // namespace weft::operate::triage
