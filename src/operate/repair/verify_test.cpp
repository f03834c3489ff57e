// What test traffic cannot see: faults that show in what the part says of itself.
#include "operate/repair/test_kit.hpp"

namespace weft::operate::repair {
namespace {

using namespace testing;

// An optic that gets darker, and loses nothing yet.
struct Fading : Bench {
  Fading() : Bench(shared(), policy_with("{problems: {optic: {verify: {quiet: 15 min}}}}")) {
    c = make_case(fabric, "c1", CauseKind::optic, "rtsw:0--ctsw:0", now);
    see(c);
  }
  static const model::Fabric& shared() {
    static const model::Fabric fabric = small_zone();
    return fabric;
  }
  // Its light is too low, says the switch.
  void tell() {
    c.members.push_back({now, c.members.size() + 1, model::Relation::end_of_link});
    see(c);
  }
  model::Case c;
  const Attribution ann{"ann", "because"};
};

}  // namespace

TEST_CASE("what is still told of is not returned, whatever test traffic says") {
  Fading f;
  CHECK(f.stage("c1") == Stage::repairing);
  CHECK(f.ticket("c1").baseline.sent > 0);
  CHECK(f.ticket("c1").baseline.lost == 0);
  for (int i = 0; i < 20; ++i) {
    f.run_for(10 * minute);
    f.tell();
    REQUIRE(f.stage("c1") == Stage::repairing);
  }
  CHECK(f.world.acts.size() == 1);
  f.run_for(14 * minute);
  CHECK(f.stage("c1") == Stage::repairing);
  f.run_for(2 * minute);  // it may have been the room's temperature
  CHECK(f.stage("c1") == Stage::soaking);
  CHECK(f.ticket("c1").rollbacks == 0);
}

TEST_CASE("a person's word is listened to as long, and is wrong when it is told of meanwhile") {
  Fading f;
  f.run_for(10 * minute);
  f.tell();
  REQUIRE(f.repair->repaired("c1", f.ann, f.now).has_value());
  f.run_for(5 * minute);
  CHECK(f.stage("c1") == Stage::verifying);
  f.tell();
  CHECK(f.stage("c1") == Stage::repairing);
  CHECK(f.ticket("c1").repaired_by.empty());
  CHECK(std::ranges::count(f.world.notices, "repair_verify_failed") == 1);
  REQUIRE(f.repair->repaired("c1", f.ann, f.now).has_value());
  f.run_for(14 * minute);
  CHECK(f.stage("c1") == Stage::verifying);
  f.run_for(2 * minute);
  CHECK(f.stage("c1") == Stage::soaking);
  CHECK(f.ticket("c1").resolution == Resolution::repaired);
}

TEST_CASE("a closed case ends the listening") {
  Fading f;
  f.run_for(minute);
  CHECK(f.stage("c1") == Stage::repairing);
  f.see(closed(f.c, f.now));
  CHECK(f.stage("c1") == Stage::soaking);
}

TEST_CASE("a cable that loses nothing, but is slower than the policy wants, is not returned") {
  static const model::Fabric fabric = small_zone();
  Bench b(fabric, policy_with("{defaults: {verify: {rate: 0.9}}}"));
  b.world.rate_share = 0.25;
  b.see(make_case(fabric, "c1", CauseKind::link, "rtsw:0--ctsw:0", b.now));
  CHECK(b.ticket("c1").baseline.lost == 0);
  CHECK(b.ticket("c1").baseline.rate_share == 0.25);
  CHECK(b.stage("c1") == Stage::repairing);
  CHECK(b.ticket("c1").reason.find("lost, at 25 % of its rate") != std::string::npos);
  b.run_for(3 * 60 * minute);
  CHECK(b.stage("c1") == Stage::repairing);
  CHECK(b.world.acts.size() == 1);
  const Attribution ann{"ann", "because"};
  REQUIRE(b.repair->repaired("c1", ann, b.now).has_value());  // it is not
  b.run_for(minute);
  CHECK(b.stage("c1") == Stage::repairing);
  b.world.rate_share = 0.9;
  REQUIRE(b.repair->repaired("c1", ann, b.now).has_value());
  b.run_for(minute);
  CHECK(b.stage("c1") == Stage::soaking);
  CHECK(b.ticket("c1").resolution == Resolution::repaired);
}

}  // namespace weft::operate::repair
