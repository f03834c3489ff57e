// Parts that fail again after their return, and parts that are accused and healthy.
#include "operate/repair/test_kit.hpp"

namespace weft::operate::repair {
namespace {

using namespace testing;

constexpr double hour = 3'600;

// Probers say that the cable loses packets; no device says anything.
struct Accused : Bench {
  explicit Accused(std::string_view policy = "{}") : Bench(shared(), policy_with(policy)) {}
  static const model::Fabric& shared() {
    static const model::Fabric fabric = small_zone();
    return fabric;
  }
  // A case of its own each time, as when the last one is over.
  void accuse(model::Relation by = model::Relation::probe_over) {
    model::Case c = make_case(fabric, fmt::format("c{}", ++cases_), CauseKind::link, cable, now);
    c.members.front().relation = by;
    see(last = c);
  }
  void end() { see(closed(last, now)); }
  bool is_out() const { return world.state(std::string(cable)) == port::Service::drained; }
  std::size_t drains() const {
    return static_cast<std::size_t>(std::ranges::count(world.acts, fmt::format("drain {}", cable)));
  }
  model::Case last;
  const Attribution ann{"ann", "because"};

 private:
  int cases_ = 0;
};

}  // namespace

TEST_CASE("a part that fails again is kept out longer each time, whichever repair it is") {
  Accused s;
  std::vector<double> out_for;
  for (int i = 0; i < 3; ++i) {
    s.world.faulty.insert(std::string(cable));
    s.accuse();
    REQUIRE(s.is_out());
    const Timestamp drained = s.now;
    s.world.faulty.clear();  // whatever is done next, the test is clean at once
    s.end();
    while (s.is_out()) s.run_for(minute);
    out_for.push_back(static_cast<double>(s.now.ns - drained.ns) / 1e9);
    s.run_for(40 * minute);  // its soak is over: the next one is a new repair
    REQUIRE(s.stage(s.last.id) == Stage::returned);
  }
  CHECK(out_for[0] <= 2 * minute);
  CHECK(out_for[1] >= hour);
  CHECK(out_for[1] <= hour + 2 * minute);
  CHECK(out_for[2] >= 2 * hour);
  CHECK(out_for[2] <= 2 * hour + 2 * minute);
}

TEST_CASE("a fault that shows itself in service only costs two drains an hour at most") {
  Accused s("{defaults: {soak: 3 s}, timing: {recheck: 1 s, recheck_max: 2 s, grace: 2 s}}");
  std::vector<Timestamp> times;
  for (int i = 0; i < 3'600; ++i) {  // six hours
    const std::size_t before = s.drains();
    if (!s.is_out()) {
      s.world.faulty.insert(std::string(cable));
      s.accuse();
    } else {
      s.world.faulty.clear();
      s.end();
    }
    s.run_for(6);
    if (s.drains() > before) times.push_back(s.now);
  }
  REQUIRE(times.size() >= 2);
  for (std::size_t i = 2; i < times.size(); ++i)
    CHECK(times[i].ns - times[i - 2].ns >= 3'600 * ns_per_s);
  CHECK(times.size() <= 5);
}

TEST_CASE("the hold survives a death, and a person's word ends it") {
  Accused s;
  s.accuse(model::Relation::itself);
  s.end();
  s.run_for(40 * minute);
  s.world.faulty.insert(std::string(cable));
  s.accuse(model::Relation::itself);
  REQUIRE(s.stage("c2") == Stage::repairing);
  REQUIRE(s.ticket("c2").held_until.has_value());
  CHECK(contains(s.ticket("c2").reason, "kept out of service until"));
  s.world.faulty.clear();
  s.start();
  s.run_for(50 * minute);
  CHECK(s.is_out());
  SUBCASE("nobody says anything") {
    s.run_for(12 * minute);
    CHECK_FALSE(s.is_out());
  }
  SUBCASE("ann has changed the cable") {
    REQUIRE(s.repair->repaired("c2", s.ann, s.now).has_value());
    s.settle();
    CHECK_FALSE(s.is_out());
  }
}

TEST_CASE("a part is not drained a third time within the hour, whoever mended it") {
  Accused s;
  for (int i = 0; i < 3; ++i) {
    s.world.faulty.insert(std::string(cable));
    s.accuse(model::Relation::itself);
    if (i == 2) break;
    REQUIRE(s.is_out());
    s.world.faulty.clear();
    REQUIRE(s.repair->repaired(s.last.id, s.ann, s.now).has_value());
    s.end();
    s.run_for(3 * minute);
    REQUIRE_FALSE(s.is_out());
  }
  CHECK(s.stage("c1") == Stage::blocked);  // the same repair: it was in its soak
  CHECK(contains(s.ticket("c1").reason, "drained 2 times within the last hour; the limit is 2"));
  s.run_for(hour);
  CHECK(s.is_out());
  CHECK(s.drains() == 3);
}

// 3 of 10,000 were lost in service: 10,000 clean ones happen by chance once in 20 times (e^-3),
// 7 * 3,334 once in 1,000 times.
TEST_CASE("a rare loss is refuted by as many test packets as it takes, not by the usual number") {
  Accused s;
  s.world.losses = {3, 0, 0, 1};
  s.world.faulty.insert(std::string(cable));
  SUBCASE("the third round loses one") {
    s.accuse();
    CHECK(s.stage("c1") == Stage::repairing);
    CHECK(contains(s.ticket("c1").reason, "1 of 23338 test packets lost"));
  }
  SUBCASE("nothing is lost any more") {
    s.world.losses.back() = 0;
    s.accuse();
    CHECK(s.stage("c1") == Stage::soaking);
    CHECK(s.ticket("c1").resolution == Resolution::no_fault_found);
    CHECK(s.ticket("c1").verify.sent == 23'338);
  }
  SUBCASE("one lost packet of 10,000 asks for the most") {
    s.world.losses.assign(40, 0);
    s.world.losses.front() = 1;
    s.accuse();
    CHECK(s.ticket("c1").verify.sent == 70'007);
  }
}

TEST_CASE("a part that only probers accuse is asked before it is drained") {
  Accused s;
  s.accuse();
  CHECK(s.stage("c1") == Stage::blocked);
  CHECK(contains(s.ticket("c1").reason, "0 of 10000 test packets lost over rtsw:0--ctsw:0"));
  CHECK(s.world.acts.empty());
  CHECK(s.repair->suspected().empty());  // and costs the others none of their capacity
  CHECK(std::ranges::count(s.world.notices, "repair_blocked") == 1);
  s.run_for(3 * hour);
  CHECK(s.world.acts.empty());
  const std::size_t checks = s.memory.count("order", "\"what\":\"check\"");
  CHECK(checks >= 5);
  CHECK(checks <= 12);  // 1, 2, 4, ... 30 min
  SUBCASE("the fault shows itself in a later test") {
    s.world.faulty.insert(std::string(cable));
    s.run_for(31 * minute);
    CHECK(s.is_out());
  }
  SUBCASE("a switch says so, too") {
    s.last.members.push_back({s.now, 2, model::Relation::end_of_link});
    s.see(s.last);
    s.run_for(31 * minute);
    CHECK(s.drains() == 1);
  }
  SUBCASE("it was a false alarm") {
    s.end();
    CHECK(s.stage("c1") == Stage::closed);
    CHECK(s.ticket("c1").resolution == Resolution::healed);
  }
}

TEST_CASE("a policy may do without asking; and where nobody can test, nobody is asked") {
  Accused trusting("{defaults: {checks_first: false}}");
  trusting.accuse();
  CHECK(trusting.drains() == 1);
  Accused blind;
  blind.world.has_no_check = true;
  blind.accuse();
  CHECK(blind.drains() == 1);
  Accused broken;  // no answer, five times in a row
  broken.world.is_blind = true;
  broken.accuse();
  broken.run_for(10 * minute);
  CHECK(broken.memory.count("order", "\"what\":\"drain\"") >= 1);
}

TEST_CASE("a part whose first check is clean goes back at once, and nobody is called") {
  Accused s;
  s.accuse(model::Relation::end_of_link);
  CHECK(s.stage("c1") == Stage::soaking);
  CHECK(s.ticket("c1").resolution == Resolution::no_fault_found);
  CHECK(std::ranges::count(s.world.notices, "repair_drained") == 0);
  CHECK(s.memory.count("stage", "\"to\":\"repairing\"") == 0);
  CHECK(s.memory.count("order", "\"what\":\"check\"") == 1);
}

TEST_CASE("documents of a version without these fields are read") {
  Accused s;
  s.accuse(model::Relation::itself);
  auto documents = s.memory.all();
  for (port::Document& d : documents)
    for (const std::string_view key : {"\"exonerations\":0,", "\"held_until\":null,"}) {
      const std::size_t at = d.body.find(key);
      if (at != std::string::npos) d.body.erase(at, key.size());
    }
  Repair again(s.fabric, default_policy());
  const Status done = again.restore(documents, s.now);
  CHECK_MESSAGE(done.has_value(), (done ? "" : done.error().text()));
}

}  // namespace weft::operate::repair
