// Stories: one case each, told event by event.
#include "operate/repair/repair.hpp"

#include "operate/repair/test_kit.hpp"

namespace weft::operate::repair {
namespace {

using namespace testing;
using CauseKind::device;
using CauseKind::flap;
using CauseKind::host;
using CauseKind::link;
using CauseKind::optic;

struct Story : Bench {
  explicit Story(std::string_view policy = "{}") : Bench(shared(), policy_with(policy)) {}
  static const model::Fabric& shared() {
    static const model::Fabric fabric = small_zone();
    return fabric;
  }
  model::Case fault(CauseKind kind = link, std::string_view root = cable,
                    std::string id = "c1") const {
    return make_case(fabric, std::move(id), kind, root, now);
  }
  // A drained cable with a fault that test traffic shows.
  model::Case broken() {
    world.faulty.insert(std::string(cable));
    const model::Case c = fault();
    see(c);
    REQUIRE(stage("c1") == Stage::repairing);
    return c;
  }
  const Attribution ann{"ann", "because"};
};

TEST_CASE("a broken cable is drained, mended, verified, returned and watched") {
  Story s;
  const model::Case c = s.broken();
  CHECK(s.world.state(std::string(cable)) == port::Service::drained);
  CHECK(s.ticket("c1").baseline.lost > 0);
  s.run_for(3600);
  CHECK(s.stage("c1") == Stage::repairing);
  s.world.faulty.clear();
  REQUIRE(s.repair->repaired("c1", s.ann, s.now).has_value());
  s.settle();
  CHECK(s.stage("c1") == Stage::soaking);
  CHECK(s.world.state(std::string(cable)) == port::Service::in_service);
  s.see(closed(c, s.now));
  s.run_for(31 * 60);
  CHECK(s.stage("c1") == Stage::returned);
  CHECK(s.ticket("c1").resolution == Resolution::repaired);
  CHECK(s.world.acts == std::vector<std::string>{"drain rtsw:0--ctsw:0", "undrain rtsw:0--ctsw:0"});
  CHECK(s.world.notices == std::vector<std::string>{"case_opened", "repair_drained",
                                                    "repair_returned", "case_closed",
                                                    "repair_closed"});
  CHECK_FALSE(s.repair->next_due().has_value());
}

TEST_CASE("a missed objective is told once for each part, and not after a restart again") {
  Story s;
  s.broken();
  const auto told = [&] { return std::ranges::count(s.world.notices, "repair_overdue"); };
  s.run_for(23 * 3600);
  CHECK(told() == 0);
  s.run_for(2 * 3600);
  CHECK(told() == 1);
  s.start();
  s.run_for(48 * 3600);
  CHECK(s.stage("c1") == Stage::repairing);
  CHECK(told() == 1);
}

TEST_CASE("the parts of the time to repair add up to the whole") {
  Story s;
  s.now = at(100);
  model::Case c = s.fault();
  c.opened = at(95);
  s.world.faulty.insert(std::string(cable));
  s.world.hand = Hand::slow;
  s.see(c);
  s.run_for(7);
  s.world.service[std::string(cable)] = port::Service::drained;
  s.world.hand = Hand::works;
  s.run_for(60);
  const Timestamp mended = s.now;
  s.world.faulty.clear();
  REQUIRE(s.repair->repaired("c1", s.ann, s.now).has_value());
  s.run_for(600);
  const Ticket& t = s.ticket("c1");
  REQUIRE(t.stage == Stage::soaking);
  std::int64_t sum = 0;
  for (const std::int64_t ns : t.spent_ns) sum += ns;
  CHECK(sum == t.returned_at->ns - c.opened.ns);
  CHECK(t.spent_ns[0] == 5 * ns_per_s);
  CHECK(t.spent_ns[2] == t.drained_at->ns - at(100).ns);
  CHECK(t.spent_ns[3] == mended.ns - t.drained_at->ns);
}

TEST_CASE("a verification that fails is repair time; only the one that passes is verify time") {
  Story s("{problems: {cable: {verify: {quiet: 10 min}}}}");
  model::Case c = s.broken();
  s.run_for(60);
  REQUIRE(s.repair->repaired("c1", s.ann, s.now).has_value());
  s.settle();
  REQUIRE(s.stage("c1") == Stage::verifying);
  s.run_until(at(700));
  REQUIRE(s.stage("c1") == Stage::repairing);
  s.world.faulty.clear();
  c.members.push_back({s.now, 2, model::Relation::itself});
  s.see(c);
  REQUIRE(s.repair->repaired("c1", s.ann, s.now).has_value());
  s.run_until(at(1400));
  const Ticket& t = s.ticket("c1");
  REQUIRE(t.returned_at == at(1300));
  CHECK(t.spent_ns[3] == 700 * ns_per_s);
  CHECK(t.spent_ns[4] == 600 * ns_per_s);
}

TEST_CASE("what heals by itself before it is drained is left alone") {
  Story s("{problems: {cable: {acts_early: false}}}");
  model::Case c = s.fault();
  c.state = model::CaseState::provisional;
  s.see(c);
  CHECK(s.stage("c1") == Stage::detected);
  s.see(closed(c, s.now));
  CHECK(s.stage("c1") == Stage::closed);
  CHECK(s.ticket("c1").resolution == Resolution::healed);
  CHECK(s.world.acts.empty());
}

TEST_CASE("a part that never shows a fault is returned: no fault found") {
  Story s;
  s.see(s.fault());
  CHECK(s.stage("c1") == Stage::soaking);
  CHECK(s.ticket("c1").resolution == Resolution::no_fault_found);
}

TEST_CASE("modes: observe, propose and approve do not act by themselves") {
  Story s(
      "{problems: {cable: {mode: observe}, optic: {mode: propose}, port_flap: {mode: approve}}}");
  s.see(s.fault(link, "rtsw:0--ctsw:0", "a"));
  s.see(s.fault(optic, "rtsw:1--ctsw:1", "b"));
  s.see(s.fault(flap, "rtsw:2--ctsw:2", "c"));
  CHECK(s.stage("a") == Stage::watched);
  CHECK(s.stage("b") == Stage::proposed);
  CHECK(s.stage("c") == Stage::proposed);
  CHECK(s.world.acts.empty());
  CHECK_FALSE(s.repair->approve("a", s.ann, s.now).has_value());
  CHECK_FALSE(s.repair->approve("b", s.ann, s.now).has_value());
  REQUIRE(s.repair->approve("c", s.ann, s.now).has_value());
  s.settle();
  CHECK(s.world.acts.front() == "drain rtsw:2--ctsw:2");
  CHECK_FALSE(s.repair->approve("nobody", s.ann, s.now).has_value());
}

TEST_CASE("low confidence is watched, and acted on when it grows") {
  Story s;
  model::Case c = s.fault();
  c.confidence = 0.5;
  s.see(c);
  CHECK(s.stage("c1") == Stage::watched);
  CHECK(contains(s.ticket("c1").reason, "0.50, but 0.70"));
  c.confidence = 0.8;
  s.see(c);
  CHECK(s.world.acts.size() == 2);
}

TEST_CASE("hosts and their NICs are proposed, and nothing is drained") {
  Story s;
  const model::Case c = s.fault(host, "host:0");
  s.see(c);
  CHECK(s.stage("c1") == Stage::proposed);
  REQUIRE(s.repair->repaired("c1", s.ann, s.now).has_value());
  s.settle();
  CHECK(s.stage("c1") == Stage::verifying);
  s.see(closed(c, s.now));
  CHECK(s.stage("c1") == Stage::closed);
  CHECK(s.ticket("c1").resolution == Resolution::repaired);
}

TEST_CASE("two cases in one step do not share capacity that only holds one") {
  Story s;  // 3 of 4 uplinks have to stay
  s.repair->see(s.fault(link, "rtsw:0--ctsw:0", "a"), s.now);
  s.repair->see(s.fault(link, "rtsw:0--ctsw:1", "b"), s.now);
  s.world.faulty = {"rtsw:0--ctsw:0", "rtsw:0--ctsw:1"};
  s.settle();
  // Each counts the other as gone already, for it is suspected.
  CHECK(s.stage("a") == Stage::blocked);
  CHECK(s.stage("b") == Stage::blocked);
  CHECK(contains(s.ticket("a").reason, "rtsw:0 would keep 800 of 1600 Gbps"));

  Story t("{defaults: {counts_as_gone: false}}");
  t.repair->see(t.fault(link, "rtsw:0--ctsw:0", "a"), t.now);
  t.repair->see(t.fault(link, "rtsw:0--ctsw:1", "b"), t.now);
  t.world.faulty = {"rtsw:0--ctsw:0", "rtsw:0--ctsw:1"};
  t.settle();
  CHECK(t.stage("a") == Stage::repairing);
  CHECK(t.stage("b") == Stage::blocked);
}

TEST_CASE("an actuator that lies is tried again, a bounded number of times, and then undone") {
  Story s;
  s.world.hand = Hand::lies;
  s.see(s.fault());
  CHECK(s.stage("c1") == Stage::draining);
  s.run_for(600);
  CHECK(s.stage("c1") == Stage::failed);
  CHECK(s.memory.count("order", "\"what\":\"drain\"") == 3);
  CHECK(std::ranges::count(s.world.notices, "repair_failed") == 1);
  CHECK(s.world.acts.empty());
  CHECK_FALSE(s.ticket("c1").is_reserved);
  s.world.hand = Hand::works;
  REQUIRE(s.repair->approve("c1", s.ann, s.now).has_value());
  s.settle();
  CHECK(s.stage("c1") == Stage::soaking);
}

TEST_CASE("an undrain that is not confirmed needs a person, and still counts as out") {
  Story s;
  s.broken();
  s.world.faulty.clear();
  s.world.hand = Hand::lies;
  REQUIRE(s.repair->repaired("c1", s.ann, s.now).has_value());
  s.run_for(600);
  CHECK(s.stage("c1") == Stage::failed);
  CHECK(s.ticket("c1").is_reserved);
  REQUIRE(s.repair->held().size() == 1);
  SUBCASE("a person asks for another try") {
    s.world.hand = Hand::works;
    REQUIRE(s.repair->approve("c1", s.ann, s.now).has_value());
    s.settle();
    CHECK(s.stage("c1") == Stage::soaking);
  }
  SUBCASE("a person returns it by hand") {
    s.world.service[std::string(cable)] = port::Service::in_service;
    s.run_for(600);
    CHECK_FALSE(s.ticket("c1").is_reserved);
    s.see(closed(s.fault(), s.now));
    CHECK(s.stage("c1") == Stage::rolled_back);
  }
}

TEST_CASE("a result that is lost leads to a look, not to another act") {
  Story s;
  s.world.hand = Hand::works_unheard;
  s.world.faulty.insert(std::string(cable));
  s.see(s.fault());
  CHECK(s.stage("c1") == Stage::repairing);
  CHECK(s.memory.count("order", "\"what\":\"drain\"") == 1);
}

TEST_CASE("what the actuator refuses is blocked and tried again later") {
  Story s;
  s.world.hand = Hand::refuses;
  s.see(s.fault());
  CHECK(s.stage("c1") == Stage::blocked);
  CHECK(contains(s.ticket("c1").reason, "the world says no"));
  s.world.hand = Hand::works;
  s.run_for(4.9 * minute);
  CHECK(s.stage("c1") == Stage::blocked);
  s.run_for(0.2 * minute);
  CHECK(s.stage("c1") == Stage::soaking);
}

TEST_CASE("the kill switch stops all acts at once, those on their way too") {
  Story s;
  s.repair->see(s.fault(), s.now);
  s.step();  // snapshot and forecast
  while (s.perform_one()) {
  }
  s.step();
  REQUIRE(s.queue.size() == 1);
  REQUIRE(s.queue.front().kind == OrderKind::act);
  s.repair->set_kill_switch(Switch::on, s.ann, s.now);
  CHECK_FALSE(s.repair->may_act(s.queue.front(), s.now));
  s.settle();
  s.run_for(3600);
  CHECK(s.world.acts.empty());
  CHECK(contains(s.ticket("c1").reason, "kill switch"));
  CHECK(s.memory.count("killed") == 1);
  s.repair->set_kill_switch(Switch::off, s.ann, s.now);
  s.run_for(60);
  CHECK(s.stage("c1") == Stage::soaking);
}

TEST_CASE("under the kill switch what is drained stays drained, unless the policy says otherwise") {
  for (const std::string_view policy : {"{}", "{guards: {undrain_when_killed: true}}"}) {
    Story s(policy);
    s.broken();
    s.repair->set_kill_switch(Switch::on, s.ann, s.now);
    s.world.faulty.clear();
    REQUIRE(s.repair->repaired("c1", s.ann, s.now).has_value());
    s.run_for(60);
    CHECK(s.stage("c1") == (policy == "{}" ? Stage::returning : Stage::soaking));
  }
}

TEST_CASE("no drain inside a freeze, and the first after it") {
  Story s;
  REQUIRE(s.repair->freeze(at(0), at(1000), s.ann, s.now).has_value());
  CHECK_FALSE(s.repair->freeze(at(10), at(10), s.ann, s.now).has_value());
  s.see(s.fault());
  CHECK(s.stage("c1") == Stage::blocked);
  CHECK(s.ticket("c1").retry_at == at(1000));
  s.run_until(at(999));
  CHECK(s.world.acts.empty());
  s.run_until(at(1001));
  CHECK(s.stage("c1") == Stage::soaking);
}

TEST_CASE("a freeze is lifted: what waited for it goes on, in this run or the next") {
  for (const bool restarts : {false, true}) {
    Story s;
    CHECK(s.repair->thaw(s.ann, s.now).error().code == Errc::infeasible);
    REQUIRE(s.repair->freeze(s.now, at(100'000), s.ann, s.now).has_value());
    s.see(s.fault());
    s.run_for(100);
    CHECK(s.stage("c1") == Stage::blocked);
    if (restarts) s.start();
    REQUIRE(s.repair->thaw(s.ann, s.now).has_value());
    CHECK(s.repair->freezes().empty());
    s.settle();
    CHECK(s.stage("c1") == Stage::soaking);
  }
}

TEST_CASE("what a freeze takes, the next start reads") {
  Story s;
  const Timestamp last{time_ns_max}, beyond{time_ns_max + 1};
  CHECK(s.repair->freeze(s.now, beyond, s.ann, s.now).error().code == Errc::value);
  CHECK(s.repair->freeze({-beyond.ns}, at(10), s.ann, s.now).error().code == Errc::value);
  REQUIRE(s.repair->freeze(s.now, last, s.ann, s.now).has_value());
  s.see(s.fault());
  CHECK(s.ticket("c1").retry_at == last);
  s.start();
  CHECK(s.ticket("c1").retry_at == last);
  CHECK(s.repair->freezes().at(0).until == last);
}

TEST_CASE("a hold keeps a part as it is") {
  Story s;
  s.broken();
  REQUIRE(s.repair->hold("c1", Switch::on, s.ann, s.now).has_value());
  s.world.faulty.clear();
  s.run_for(7200);
  CHECK(s.stage("c1") == Stage::returning);
  CHECK(s.world.state(std::string(cable)) == port::Service::drained);
  REQUIRE(s.repair->hold("c1", Switch::off, s.ann, s.now).has_value());
  s.settle();
  CHECK(s.stage("c1") == Stage::soaking);
}

TEST_CASE("a forecast that is too dear, or missing, blocks a drain") {
  Story s;
  s.world.forecast = {.jobs = 2, .stalled = 0, .slowdown_max = 1.5, .worst = "llama3"};
  s.see(s.fault());
  CHECK(s.stage("c1") == Stage::blocked);
  CHECK(contains(s.ticket("c1").reason, "1.500 times"));
  CHECK(s.world.acts.empty());
  s.world.forecast = {.jobs = 2, .stalled = 0, .slowdown_max = 1.05};
  s.run_for(301);
  CHECK(s.stage("c1") == Stage::soaking);
}

TEST_CASE("a cause that moves to another part: the old one is undone, the new one drained") {
  Story s("{guards: {rack_share: 0.5}}");
  model::Case c = s.broken();
  c.root = part(s.fabric, "rtsw:0--ctsw:1");
  s.world.faulty = {"rtsw:0--ctsw:1"};
  s.see(c);
  CHECK(s.world.state("rtsw:0--ctsw:0") == port::Service::in_service);
  CHECK(s.world.state("rtsw:0--ctsw:1") == port::Service::drained);
  CHECK(s.repair->tickets().at("c1/1").resolution == Resolution::moved);
  CHECK(s.ticket("c1").id == "c1/2");
  CHECK(s.stage("c1") == Stage::repairing);
}

TEST_CASE("a cause that moves while the drain is on its way is undone once that is known") {
  Story s;
  s.world.hand = Hand::slow;
  model::Case c = s.fault();
  s.see(c);
  REQUIRE(s.stage("c1") == Stage::draining);
  s.world.hand = Hand::works;
  s.repair->retract("c1", "other", s.now);
  s.settle();
  CHECK(s.stage("c1") == Stage::rolled_back);
  CHECK(s.world.state(std::string(cable)) == port::Service::in_service);
  CHECK(s.ticket("c1").resolution == Resolution::moved);
}

TEST_CASE("a cause that moves before anything was done takes its ticket along") {
  Story s("{problems: {cable: {mode: approve}, switch: {mode: approve}}}");
  model::Case c = s.fault();
  s.see(c);
  REQUIRE(s.stage("c1") == Stage::proposed);
  c.kind = device;
  c.root = part(s.fabric, "ctsw:0");
  s.see(c);
  CHECK(s.repair->tickets().size() == 1);
  CHECK(s.ticket("c1").part == part(s.fabric, "ctsw:0"));
  CHECK(s.stage("c1") == Stage::proposed);
}

TEST_CASE("new evidence in the soak takes the part out again; too often, and it is replaced") {
  Story s;
  model::Case c = s.fault();
  s.see(c);
  for (int i = 0; i < 3; ++i) {
    REQUIRE(s.stage("c1") == Stage::soaking);
    s.run_for(60);
    c.members.push_back({s.now, 2, model::Relation::itself});
    s.see(c);
    REQUIRE(s.stage("c1") == Stage::repairing);
    s.run_for(3600 << i);  // it is kept out longer each time
  }
  CHECK(s.ticket("c1").rollbacks == 3);
  CHECK(s.stage("c1") == Stage::repairing);
  CHECK(s.ticket("c1").is_offender);
  CHECK(std::ranges::count(s.world.notices, "repair_replace") == 1);
  s.see(closed(c, s.now));
  s.run_for(86400);
  CHECK(s.stage("c1") == Stage::repairing);
  REQUIRE(s.repair->repaired("c1", s.ann, s.now).has_value());
  s.run_for(3600);
  CHECK(s.stage("c1") == Stage::returned);
  CHECK(s.ticket("c1").resolution == Resolution::replaced);
}

TEST_CASE("a fresh case on a part in its soak is a relapse too") {
  Story s;
  s.see(s.fault());
  s.run_for(100);
  s.world.faulty.insert(std::string(cable));
  s.see(s.fault(flap, cable, "c2"));
  CHECK(s.ticket("c2").id == "c1/1");
  CHECK(s.stage("c1") == Stage::repairing);
}

TEST_CASE("a part that was repaired three times in a month is not returned a fourth time") {
  Story s;
  for (int i = 0; i < 4; ++i) {
    const std::string id = fmt::format("c{}", i);
    const model::Case c = s.fault(link, cable, id);
    s.see(c);
    s.see(closed(c, s.now));
    s.run_for(86400);
    CHECK(s.stage(id) == (i < 3 ? Stage::returned : Stage::repairing));
  }
  CHECK(s.ticket("c3").is_offender);
}

TEST_CASE("without means to check, a person's word is needed, and enough") {
  Story s;
  s.world.has_no_check = true;
  s.see(s.fault());
  s.run_for(86400);
  CHECK(s.stage("c1") == Stage::repairing);
  REQUIRE(s.repair->repaired("c1", s.ann, s.now).has_value());
  s.settle();
  CHECK(s.stage("c1") == Stage::soaking);
}

TEST_CASE("a rejected drain is taken back, and its case left alone until it closes") {
  Story s;
  model::Case c = s.broken();
  REQUIRE(s.repair->reject("c1", s.ann, s.now).has_value());
  s.settle();
  CHECK(s.stage("c1") == Stage::rolled_back);
  c.members.push_back({{s.now.ns + 3600 * ns_per_s}, 2, model::Relation::itself});
  s.see(c);
  s.run_for(600);
  CHECK(s.repair->tickets().size() == 1);
  CHECK(s.world.state(std::string(cable)) == port::Service::in_service);
}

using Events = std::vector<std::string>;

Events told_of_cases(const Story& s) {
  Events out;
  for (const std::string& event : s.world.notices)
    if (event.starts_with("case_")) out.push_back(event);
  return out;
}

TEST_CASE("people hear of a case once, of what it turns into, and of its end") {
  Story s("{guards: {rack_share: 0.5}}");
  model::Case c = s.broken();
  s.see(c);
  s.start();  // a new life knows what was told
  s.settle();
  CHECK(told_of_cases(s) == Events{"case_opened"});
  c.root = part(s.fabric, "rtsw:0--ctsw:1");
  s.see(c);
  CHECK(told_of_cases(s) == Events{"case_opened", "case_updated"});
  s.see(closed(c, s.now));
  CHECK(told_of_cases(s) == Events{"case_opened", "case_updated", "case_closed"});
}

TEST_CASE("people hear of the end of a case that outlives its repair") {
  Story s;
  const model::Case c = s.broken();
  REQUIRE(s.repair->reject("c1", s.ann, s.now).has_value());
  s.settle();
  REQUIRE(is_over(s.stage("c1")));
  CHECK(told_of_cases(s) == Events{"case_opened"});
  s.start();
  s.see(closed(c, s.now));
  CHECK(told_of_cases(s) == Events{"case_opened", "case_closed"});
  s.see(closed(c, s.now));
  CHECK(told_of_cases(s).size() == 2);
}

TEST_CASE("people do not hear of cases that come and go, or that maintenance explains") {
  Story s;
  model::Case c = s.fault();
  c.state = model::CaseState::provisional;
  s.see(c);
  s.run_for(1);
  s.repair->retract("c1", "", s.now);
  s.settle();
  c.id = "c2";
  c.state = model::CaseState::maintenance;
  s.see(c);
  s.see(closed(c, s.now));
  CHECK(told_of_cases(s).empty());
  c.id = "c3";
  c.state = model::CaseState::provisional;
  s.see(c);
  s.run_for(2);
  s.repair->retract("c3", "c4", s.now);
  s.settle();
  CHECK(told_of_cases(s) == Events{"case_opened", "case_closed"});
}

TEST_CASE("maintenance is expected: watched, and closed") {
  Story s;
  model::Case c = s.fault();
  c.state = model::CaseState::maintenance;
  s.see(c);
  CHECK(s.stage("c1") == Stage::watched);
  s.see(closed(c, s.now));
  CHECK(s.stage("c1") == Stage::closed);
  CHECK(s.world.acts.empty());
}

TEST_CASE("after a crash an act without a result is looked at first") {
  for (const bool was_done : {false, true}) {
    Story s;
    s.world.faulty.insert(std::string(cable));
    s.repair->see(s.fault(), s.now);
    s.step();
    while (s.perform_one()) {
    }
    s.step();
    REQUIRE(s.queue.size() == 1);
    const Order lost = s.queue.front();
    REQUIRE(lost.kind == OrderKind::act);
    if (was_done) s.world.perform(lost);
    s.start();
    s.step();
    REQUIRE(s.queue.size() == 1);
    CHECK(s.queue.front().kind == OrderKind::look);
    s.settle();
    CHECK(s.stage("c1") == Stage::repairing);
    CHECK(s.world.effects.at(lost.action.id) == 1);
    CHECK(s.memory.count("order", "\"what\":\"drain\"") == (was_done ? 1 : 2));
  }
}

TEST_CASE("a document that is damaged is refused with its name") {
  Story s;
  s.see(s.fault());
  auto documents = s.memory.all();
  for (port::Document& d : documents)
    if (d.id == "c1/1") d.body.resize(d.body.size() / 2);
  Repair again(s.fabric, default_policy());
  const Status done = again.restore(documents, s.now);
  REQUIRE_FALSE(done.has_value());
  CHECK(contains(done.error().text(), "c1"));
}

TEST_CASE("a repair whose end nobody was told of is not forgotten before they are") {
  Story s("{timing: {remember: 1 min}}");
  const model::Case c = s.fault();
  s.repair->see(c, s.now);
  s.step();
  s.repair->see(closed(c, s.now), s.now);
  s.step();
  REQUIRE(s.stage("c1") == Stage::closed);
  s.queue.clear();
  s.now = at(3600);
  s.step();
  REQUIRE(s.repair->find("c1") != nullptr);
  s.run_for(3600);
  CHECK(std::ranges::count(s.world.notices, "case_closed") == 1);
  s.step();
  CHECK(s.repair->find("c1") == nullptr);
}

TEST_CASE("of a ticket of very many cases no case is left behind") {
  Story s("{problems: {cable: {acts_early: false}}, timing: {remember: 1 min}}");
  std::vector<model::Case> cases;
  for (int i = 0; i < 250; ++i) {
    cases.push_back(s.fault(link, cable, fmt::format("c{}", i)));
    cases.back().state = model::CaseState::provisional;
    s.repair->see(cases.back(), s.now);
  }
  s.settle();
  const std::string id = s.ticket("c249").id;
  for (std::size_t i = 50; i < cases.size(); ++i) s.repair->see(closed(cases[i], s.now), s.now);
  s.settle();
  REQUIRE(s.stage(id) == Stage::closed);
  s.run_for(3600);
  REQUIRE(s.repair->find(id) == nullptr);
  CHECK(s.repair->find("c0") == nullptr);
  s.see(cases[0]);
  CHECK(s.stage("c0") == Stage::detected);
}

TEST_CASE("a drain that was never ordered does not count as one") {
  Story s("{guards: {part_drains_per_hour: 1}}");
  s.repair->see(s.fault(), s.now);
  s.step();
  while (s.perform_one()) {
  }
  s.step();
  REQUIRE(s.queue.front().kind == OrderKind::act);
  s.repair->set_kill_switch(Switch::on, s.ann, s.now);
  s.settle();
  REQUIRE(s.stage("c1") == Stage::draining);
  REQUIRE(s.repair->reject("c1", s.ann, s.now).has_value());
  s.repair->set_kill_switch(Switch::off, s.ann, s.now);
  s.settle();
  CHECK(s.stage("c1") == Stage::closed);
  CHECK(s.world.acts.empty());
  CHECK(s.repair->refusals(part(s.fabric, cable), s.now).empty());
}

TEST_CASE("a clock that was set back while nobody ran spoils no document") {
  Story s;
  s.broken();
  s.now = at(-3600);
  s.start();
  s.world.faulty.clear();
  REQUIRE(s.repair->repaired("c1", s.ann, s.now).has_value());
  s.settle();
  REQUIRE(s.stage("c1") == Stage::soaking);
  for (const std::int64_t ns : s.ticket("c1").spent_ns) CHECK(ns >= 0);
  s.start();
}

TEST_CASE("a relapse during a hold survives a death") {
  Story s;
  model::Case c = s.fault();
  s.see(c);
  REQUIRE(s.stage("c1") == Stage::soaking);
  REQUIRE(s.repair->hold("c1", Switch::on, s.ann, s.now).has_value());
  s.settle();
  s.run_for(600);
  c.members.push_back({s.now, 2, model::Relation::itself});
  s.see(c);
  REQUIRE(s.ticket("c1").has_relapsed);
  s.start();
  CHECK(s.ticket("c1").has_relapsed);
}

TEST_CASE("results nobody waits for are written down, and nothing else") {
  Story s;
  s.repair->outcome({.order = "99.9"}, s.now);
  s.step();
  CHECK(s.memory.count("late") == 1);
  CHECK(s.memory.documents.empty());
}

}  // namespace
}  // namespace weft::operate::repair
