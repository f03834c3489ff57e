// Parts that go back to their vendor.
#include "operate/repair/repair.hpp"
#include "operate/repair/repair_stats.hpp"
#include "operate/repair/test_kit.hpp"

namespace weft::operate::repair {
namespace {

using namespace testing;

struct RmaStory : Bench {
  explicit RmaStory(std::string_view policy = "{}") : Bench(zone(), policy_with(policy)) {}
  static const model::Fabric& zone() {
    static const model::Fabric fabric = small_zone();
    return fabric;
  }
  model::Case broken_cable() {
    world.faulty.insert(std::string(cable));
    const model::Case c = make_case(fabric, "c1", CauseKind::link, cable, now);
    see(c);
    REQUIRE(stage("c1") == Stage::repairing);
    return c;
  }
  Status say(RmaStep step, std::string_view number = "") {
    const Status done = repair->rma("c1", step, number, {"ann", "because"}, now);
    settle();
    return done;
  }
  std::int64_t spent(TtrPart part) const {
    return ticket("c1").spent_ns[static_cast<std::size_t>(part)];
  }
};

TEST_CASE("a part is ordered, shipped and received; the wait is a part of the time to repair") {
  RmaStory s;
  const model::Case c = s.broken_cable();
  s.run_until(at(100));
  CHECK(s.say(RmaStep::shipped).error().code == Errc::infeasible);
  CHECK(s.say(RmaStep::ordered).error().code == Errc::value);
  CHECK(s.say(RmaStep::ordered, std::string(129, 'x')).error().code == Errc::value);
  CHECK(s.say(RmaStep::ordered, "\xff").error().code == Errc::value);
  REQUIRE(s.stage("c1") == Stage::repairing);
  REQUIRE(s.say(RmaStep::ordered, "RMA-4711").has_value());
  CHECK(s.stage("c1") == Stage::rma);
  CHECK(s.ticket("c1").reason == "RMA RMA-4711 ordered by ann");
  // It is gone: nothing is sent over it, and it stays out of service.
  const auto checks = s.memory.count("order", "\"what\":\"check\"");
  s.run_until(at(100 + 86'400));
  CHECK(s.memory.count("order", "\"what\":\"check\"") == checks);
  CHECK(s.repair->held().size() == 1);
  REQUIRE(s.say(RmaStep::ordered, "RMA-4712").has_value());  // a slip of the pen
  REQUIRE(s.say(RmaStep::shipped).has_value());
  s.start();  // it survives a restart
  CHECK(s.stage("c1") == Stage::rma);
  s.run_until(at(100 + 5 * 86'400));
  REQUIRE(s.say(RmaStep::received).has_value());
  CHECK(s.stage("c1") == Stage::repairing);
  s.run_until(at(100 + 5 * 86'400 + 50));
  s.world.faulty.clear();
  REQUIRE(s.repair->repaired("c1", {"bob", "new optic"}, s.now).has_value());
  s.settle();
  CHECK(s.stage("c1") == Stage::soaking);
  s.see(closed(c, s.now));
  s.run_for(31 * 60);
  REQUIRE(s.stage("c1") == Stage::returned);

  const Ticket& t = s.ticket("c1");
  REQUIRE(t.rma.has_value());
  CHECK(t.rma->number == "RMA-4712");
  CHECK(t.rma->ordered == at(100));
  CHECK(t.rma->shipped == at(100 + 86'400));
  CHECK(t.rma->received == at(100 + 5 * 86'400));
  CHECK(s.spent(TtrPart::rma) == 5 * ns_per_day);
  CHECK(s.spent(TtrPart::repair) == 150 * ns_per_s);
  for (const char* action : {"rma_shipped", "rma_received"}) CHECK(s.memory.count(action) == 1);
  CHECK(s.memory.count("rma_ordered", "RMA-4711") == 1);
  // The account says so too, from the tickets and from the audit log alone.
  for (const auto& rows :
       {ledger_rows(s.fabric, s.repair->tickets()), *ledger_rows(s.memory.audit)}) {
    const RepairStats stats = repair_stats(rows, s.policy, at(0), at(1'000'000'000));
    REQUIRE(stats.problems.size() == 1);
    const auto& spread = stats.problems[0].parts[static_cast<std::size_t>(TtrPart::rma)];
    CHECK(spread.count == 1);
    CHECK(spread.max_s == 432'000);
    CHECK(stats.problems[0].attained[static_cast<std::size_t>(TtrPart::rma)] == 1);
  }
}

TEST_CASE("an RMA has its own objective, which is told when it is missed") {
  RmaStory s("{defaults: {slo: {rma: 3 d}}}");
  s.broken_cable();
  const auto told = [&] { return std::ranges::count(s.world.notices, "repair_overdue"); };
  REQUIRE(s.say(RmaStep::ordered, "1").has_value());
  s.run_for(2.9 * 86'400);
  CHECK(told() == 0);  // that of the repair, 24 h, does not run meanwhile
  s.run_for(0.2 * 86'400);
  CHECK(told() == 1);
  REQUIRE(s.say(RmaStep::received).has_value());
  s.run_for(23 * 3'600);
  CHECK(told() == 1);
  s.run_for(2 * 3'600);
  CHECK(told() == 2);
}

TEST_CASE("a part that cannot be drained goes to its vendor as well") {
  RmaStory s;
  const model::Case c = make_case(s.fabric, "c1", CauseKind::host, "host:1", s.now);
  s.see(c);
  REQUIRE(s.stage("c1") == Stage::proposed);
  REQUIRE(s.say(RmaStep::ordered, "7").has_value());
  CHECK(s.stage("c1") == Stage::rma);
  SUBCASE("and comes back") {
    REQUIRE(s.say(RmaStep::received).has_value());
    CHECK(s.stage("c1") == Stage::proposed);
  }
  SUBCASE("its case ends before that is said") {
    s.see(closed(c, s.now));
    CHECK(s.stage("c1") == Stage::closed);
  }
}

TEST_CASE("what is with its vendor can be reported as repaired, or given back") {
  RmaStory s;
  s.broken_cable();
  REQUIRE(s.say(RmaStep::ordered, "7").has_value());
  SUBCASE("repaired") {
    s.world.faulty.clear();
    REQUIRE(s.repair->repaired("c1", {"bob", "a spare"}, s.now).has_value());
    s.settle();
    CHECK(s.stage("c1") == Stage::soaking);
    CHECK(s.ticket("c1").rma->received.has_value());
  }
  SUBCASE("rejected") {
    REQUIRE(s.repair->reject("c1", {"bob", "leave it"}, s.now).has_value());
    s.settle();
    CHECK(s.stage("c1") == Stage::rolled_back);
  }
  SUBCASE("withdrawn") {
    s.repair->retract("c1", "", s.now);
    s.world.faulty.clear();
    s.run_for(3'600);
    CHECK(is_over(s.stage("c1")));
  }
}

}  // namespace
}  // namespace weft::operate::repair
