#include "operate/repair/repair_stats.hpp"

#include "base/rng.hpp"
#include "base/test_approx.hpp"
#include "operate/repair/test_kit.hpp"

namespace weft::operate::repair {
namespace {

using namespace testing;

RepairRow done(CauseKind kind, std::string entity, double opened, std::array<int, 5> seconds,
               Resolution resolution = Resolution::repaired) {
  RepairRow row{.repair = fmt::format("{}@{}", entity, opened), .kind = kind};
  row.entity = std::move(entity);
  row.opened = at(opened);
  row.stage = Stage::returned;
  row.resolution = resolution;
  row.was_drained = true;
  for (std::size_t i = 0; i < 5; ++i) row.spent_ns[i] = seconds[i] * ns_per_s;
  return row;
}

TEST_CASE("times to repair, objectives, offenders and no-fault-found, by hand") {
  const Policy policy = policy_with(
      "{problems: {cable: {slo: {detect: 2 s, triage: 1 s, drain: 5 s, repair: 1 h, verify: 1 "
      "min}}}}");
  using enum CauseKind;
  const std::vector<RepairRow> rows{
      done(link, "a", 0, {1, 1, 5, 100, 10}), done(link, "a", 10, {3, 1, 6, 200, 10}),
      done(link, "b", 20, {2, 1, 4, 600, 90}, Resolution::no_fault_found),
      done(flap, "a", 30, {1, 1, 1, 1, 1}), done(link, "z", 5000, {9, 9, 9, 9, 9})};
  const RepairStats ledger = repair_stats(rows, policy, at(0), at(1000));
  REQUIRE(ledger.problems.size() == 2);
  const ProblemAccount& cable = ledger.problems[1];
  CHECK(cable.kind == link);
  CHECK(cable.repairs == 3);
  CHECK(cable.attained == std::array<std::uint64_t, 6>{2, 3, 2, 3, 2, 0});
  CHECK(cable.parts[3].mean_s == approx(300));
  CHECK(cable.parts[3].p50_s == 200);
  CHECK(cable.parts[3].max_s == 600);
  CHECK(cable.whole.p50_s == 220);
  REQUIRE(ledger.offenders.size() == 1);
  CHECK(ledger.offenders[0].entity == "a");
  CHECK(ledger.offenders[0].repairs == 3);
  CHECK(ledger.returned == 4);
  CHECK(ledger.no_fault_found_ratio() == 0.25);
  CHECK(contains(to_json(ledger), "\"no_fault_found_ratio\":0.25"));
  CHECK(contains(to_table(ledger), "66.7 %"));
}

TEST_CASE("what healed by itself or moved to another part is in no time to repair") {
  using enum CauseKind;
  RepairRow blip = done(link, "b", 1, {1, 1, 0, 0, 0}, Resolution::healed);
  RepairRow moved = done(link, "c", 2, {5, 5, 0, 0, 0}, Resolution::moved);
  for (RepairRow* row : {&blip, &moved}) {
    row->stage = Stage::closed;
    row->was_drained = false;
  }
  const std::vector<RepairRow> rows{done(link, "a", 0, {1, 1, 5, 100, 10}), blip, moved};
  const RepairStats ledger = repair_stats(rows, policy_with("{}"), at(0), at(1000));
  REQUIRE(ledger.problems.size() == 1);
  const ProblemAccount& cable = ledger.problems[0];
  CHECK(cable.repairs == 3);
  CHECK(cable.whole.count == 1);
  CHECK(cable.whole.mean_s == approx(117));
  CHECK(cable.parts[0].count == 1);
  CHECK(cable.healed.count == 1);
  CHECK(cable.healed.mean_s == approx(2));
  CHECK(contains(to_json(ledger), "\"healed\":{\"count\":1,\"mean_s\":2.0"));
}

// 30 days of a zone of 8 racks under 8 spines: faults at random cables, a technician within hours,
// and two cables that fail again and again.
TEST_CASE("the audit log alone gives the same account, and planted lemons are found") {
  const model::Fabric fabric = make_fabric(
      "{generator: ai_zone, racks: 8, hosts_per_rack: 2, gpus_per_host: 2, spines: 8, link: 400 "
      "Gbps}");
  Bench b(fabric, policy_with("{}"));
  Rng rng(3);
  const std::vector<std::string> lemons{"rtsw:1--ctsw:1", "rtsw:5--ctsw:2"};
  std::map<double, std::string> plan;
  for (int i = 0; i < 60; ++i)
    plan[rng.uniform() * 30 * 86400] = fmt::format("rtsw:{}--ctsw:{}", rng.below(8), rng.below(8));
  for (const std::string& lemon : lemons)
    for (int day = 1; day < 30; day += 5) plan[day * 86400 + rng.uniform() * 3600] = lemon;
  int number = 0;
  for (const auto& [t, cable] : plan) {
    b.run_until(at(t));
    const model::Case c =
        make_case(fabric, fmt::format("case{}", number++), CauseKind::link, cable, b.now);
    b.world.faulty.insert(cable);
    b.see(c);
    b.run_for(600 + 7200 * rng.uniform());
    b.world.faulty.erase(cable);
    b.see(closed(c, b.now));
    const Ticket& t2 = b.ticket(c.id);
    if (t2.is_offender) {
      REQUIRE(b.repair->repaired(t2.id, {"ann", "a new optic"}, b.now).has_value());
      b.settle();
    }
  }
  b.run_for(86400);
  const auto rows = ledger_rows(fabric, b.repair->tickets());
  const auto again = ledger_rows(b.memory.audit);
  REQUIRE_MESSAGE(again.has_value(), (again ? "" : again.error().text()));
  CHECK(rows == *again);
  const RepairStats ledger = repair_stats(rows, b.policy, at(0), at(40 * 86400));
  REQUIRE(ledger.offenders.size() >= 2);
  for (const std::string& lemon : lemons) {
    CHECK(std::ranges::find(ledger.offenders, lemon, &Offender::entity) != ledger.offenders.end());
    CHECK(std::ranges::any_of(rows, [&](const RepairRow& row) {
      return row.entity == lemon && row.resolution == Resolution::replaced;
    }));
  }
  for (const RepairRow& row : rows) CHECK(is_over(row.stage));
}

TEST_CASE("a damaged audit entry is named") {
  const std::vector<port::AuditEntry> audit{{.seq = 42, .action = "stage", .detail = "{"}};
  const auto rows = ledger_rows(audit);
  REQUIRE_FALSE(rows.has_value());
  CHECK(contains(rows.error().text(), "42"));
}

TEST_CASE("a repair as episodes: the fault, and the drain inside it") {
  const model::Fabric fabric = small_zone();
  Bench b(fabric, policy_with("{}"));
  b.now = at(10);
  b.world.faulty.insert("rtsw:0--ctsw:0");
  model::Case c = make_case(fabric, "c", CauseKind::optic, "rtsw:0--ctsw:0", at(5));
  b.see(c);
  b.run_for(3600);
  auto episodes = episodes_of(fabric, b.ticket("c"));
  REQUIRE(episodes.size() == 2);
  CHECK(episodes[0].end == model::still_open);
  b.world.faulty.clear();
  b.see(closed(c, b.now));
  b.run_for(7200);
  episodes = episodes_of(fabric, b.ticket("c"));
  CHECK(episodes[0].kind == "optic");
  CHECK(episodes[0].start == at(5));
  CHECK(episodes[0].end == *b.ticket("c").returned_at);
  CHECK(episodes[1].kind == "drain");
  CHECK(episodes[1].start == at(10));
  CHECK(episodes[1].end == episodes[0].end);
  CHECK(episodes[0].attrs[1] == std::pair<std::string, std::string>{"resolution", "repaired"});
}

}  // namespace
}  // namespace weft::operate::repair
