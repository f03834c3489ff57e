#include "observe/sli/minutes.hpp"

#include <algorithm>
#include <map>

#include "base/rng.hpp"
#include "observe/sli/test_kit.hpp"

namespace weft::observe::sli {
namespace {

using testing::Bench;
using testing::minute_zero;
using testing::RowSpec;

constexpr std::string_view zone_only = "objectives: [{name: z, scope: zone, latency_p99: 100 us}]";

Objective objective_at(Share loss) {
  Objective out;
  out.loss = loss;
  return out;
}
Cell cell_of(std::uint32_t sent, std::uint32_t lost) {
  return {.from_there = sent, .from_back = sent, .lost = lost};
}
constexpr Share permille{1'000'000};

const Cell& only_cell(const Bench& bench, std::int64_t minute = 0) {
  const Cell* cell = bench.book.by_name().front()->find(minute_zero + minute);
  REQUIRE(cell != nullptr);
  return *cell;
}

// 0.1 %, 20,000 probes, 20 losses expected. P(X >= 30) = 2.2 %, P(X >= 29) = 3.4 %: 30 is the
// first count whose 95 % interval lies above.
TEST_CASE("bad by loss: when the interval lies above the threshold") {
  const Objective o = objective_at(permille);
  CHECK(judge(cell_of(20'000, 0), o, 0.95) == Verdict::good);
  CHECK(judge(cell_of(20'000, 20), o, 0.95) == Verdict::good);
  CHECK(judge(cell_of(20'000, 29), o, 0.95) == Verdict::good);
  CHECK(judge(cell_of(20'000, 30), o, 0.95) == Verdict::bad_loss);
  CHECK(judge(cell_of(20'000, 30), o, 0.99) == Verdict::good);
  CHECK(judge(cell_of(20'000, 20'000), o, 0.95) == Verdict::bad_loss);
}

TEST_CASE("few probes are no data, unless as many are lost as would be evidence") {
  const Objective o = objective_at(permille);
  CHECK(judge(cell_of(0, 0), o, 0.95) == Verdict::no_data);
  CHECK(judge(cell_of(9'999, 0), o, 0.95) == Verdict::no_data);
  CHECK(judge(cell_of(10'000, 0), o, 0.95) == Verdict::good);
  CHECK(judge(cell_of(9, 9), o, 0.95) == Verdict::no_data);
  CHECK(judge(cell_of(10, 10), o, 0.95) == Verdict::bad_loss);
  CHECK(judge(cell_of(9'999, 10), o, 0.95) == Verdict::no_data);
}

TEST_CASE("thresholds scale, and with them what is needed") {
  const Objective o = objective_at(permille);
  CHECK(judge(cell_of(20'000, 25), o, 0.95, 0) == Verdict::bad_loss);
  CHECK(judge(cell_of(20'000, 25), o, 0.95, 1) == Verdict::good);
  CHECK(judge(cell_of(10'000, 0), o, 0.95, 0) == Verdict::no_data);
  CHECK(judge(cell_of(5'000, 0), o, 0.95, 2) == Verdict::good);
}

TEST_CASE("the two legs of a probe are one probe") {
  Bench one(zone_only), two(zone_only);
  one.add({{.sent = 1000, .lost = 30}});
  // 20 were lost on the way there, 10 of the 980 others on the way back.
  two.add({{.sent = 1000, .lost = 20, .leg = model::Leg::forward},
           {.sent = 980, .lost = 10, .leg = model::Leg::back}});
  for (const Bench* bench : {&one, &two}) {
    CHECK(only_cell(*bench).probes() == 1000);
    CHECK(only_cell(*bench).lost == 30);
  }
  Bench back_only(zone_only);
  back_only.add({{.sent = 980, .lost = 10, .leg = model::Leg::back}});
  CHECK(only_cell(back_only).probes() == 980);
}

// Nearest rank: of 1000 replies 11 are at or above the 99th percentile, 501 at or above the median.
TEST_CASE("slow replies are those that percentiles prove") {
  Bench bench(zone_only);
  bench.add({{.minute = 0, .sent = 1000, .p50 = 10, .p99 = 99},
             {.minute = 1, .sent = 1000, .p50 = 10, .p99 = 101},
             {.minute = 2, .sent = 1000, .p50 = 101, .p99 = 102},
             {.minute = 3, .sent = 1000, .lost = 100, .late = 7, .p50 = 10, .p99 = 20},
             {.minute = 4, .sent = 10, .p50 = 10, .p99 = 300},
             {.minute = 5, .sent = 1000}});
  CHECK(only_cell(bench, 0).slow_legs[as_asked] == 0);
  CHECK(only_cell(bench, 0).slow_legs[0] == 2 * 11);  // 50 us
  CHECK(only_cell(bench, 1).slow_legs[as_asked] == 2 * 11);
  CHECK(only_cell(bench, 2).slow_legs[as_asked] == 2 * 501);
  CHECK(only_cell(bench, 2).slow_legs[2] == 0);  // 200 us
  CHECK(only_cell(bench, 3).slow_legs[as_asked] == 2 * 7);
  CHECK(only_cell(bench, 3).timed_legs == 2 * 900);
  CHECK(only_cell(bench, 4).slow_legs[2] == 2 * 1);
  CHECK(only_cell(bench, 5).timed_legs == 0);
}

TEST_CASE("bad by latency: more than 1 % certainly slow, of enough replies") {
  Bench bench(zone_only);
  bench.add({{.minute = 0, .p50 = 10, .p99 = 101},
             {.minute = 1, .p50 = 10, .p99 = 100},
             {.minute = 2, .sent = 10'000, .p50 = 10, .p99 = 101},
             {.minute = 2, .sent = 10'000, .p50 = 10, .p99 = 50},
             {.minute = 3, .sent = 100, .p50 = 300, .p99 = 500},
             {.minute = 4, .lost = 20'000, .p50 = 300, .p99 = 500}});
  const auto verdict = [&](std::int64_t minute) {
    return judge(only_cell(bench, minute), bench.settings.objectives[0], 0.95);
  };
  CHECK(verdict(0) == Verdict::bad_latency);
  CHECK(verdict(1) == Verdict::good);
  CHECK(verdict(2) == Verdict::good);  // half of a percent is all that is certain
  CHECK(verdict(3) == Verdict::bad_latency);
  CHECK(verdict(4) == Verdict::bad_loss);
}

TEST_CASE("bad by corruption: more damaged than the threshold, shown by however few probes") {
  Bench bench(zone_only);  // 0.001 %, where nothing else is said
  bench.add({{.minute = 0, .sent = 20'000, .damaged = 1},
             {.minute = 1, .sent = 20'000, .damaged = 4},
             {.minute = 2, .sent = 100, .damaged = 1},
             {.minute = 3, .sent = 20'000, .lost = 200, .damaged = 4},
             {.minute = 4, .sent = 20'000, .lost = 10, .leg = model::Leg::forward, .damaged = 40},
             {.minute = 4, .sent = 19'950, .leg = model::Leg::back}});
  const auto verdict = [&](std::int64_t minute) {
    return judge(only_cell(bench, minute), bench.settings.objectives[0], 0.95);
  };
  CHECK(verdict(0) == Verdict::good);  // one of an expected 0.2 is no wonder
  CHECK(verdict(1) == Verdict::bad_corruption);
  CHECK(verdict(2) == Verdict::bad_corruption);
  CHECK(verdict(3) == Verdict::bad_loss);
  CHECK(verdict(4) == Verdict::bad_corruption);
  CHECK(only_cell(bench, 4).probes() == 20'000);
  CHECK(only_cell(bench, 4).from_back == 20'000);  // the damaged ones did not enter the way back
}

TEST_CASE("ends decide the scope") {
  Bench bench(R"(
objectives:
  - {name: rack, scope: rack-internal}
  - {name: cross, scope: cross-rack}
  - {name: zone, scope: zone}
  - {name: zones, scope: cross-zone}
  - {name: pods, scope: pod}
  - {name: all, scope: all})");
  bench.add({{.src = "nic:0", .dst = "nic:1"}, {.src = "nic:0", .dst = "nic:4"}});
  std::map<std::string, std::uint32_t> probes;
  for (const Series* s : bench.book.by_name())
    probes[bench.settings.objectives[s->objective].name + " " +
           (s->entity.valid() ? bench.fabric.name(s->entity) : "all")] =
        s->find(minute_zero)->probes();
  const std::map<std::string, std::uint32_t> expected{
      {"rack all", 20'000},     {"rack rack:0", 20'000},  {"cross all", 20'000},
      {"cross rack:0", 20'000}, {"cross rack:2", 20'000}, {"zone all", 40'000},
      {"zone zone:0", 40'000},  {"all all", 40'000}};
  CHECK(probes == expected);
  CHECK(bench.book.counts().no_scope == 0);
}

TEST_CASE("rows that no objective speaks of are counted") {
  Bench bench("objectives: [{name: r, scope: rack-internal, class: a}]");
  bench.add({{.src = "nic:0", .dst = "nic:1", .traffic_class = "b"},
             {.src = "nic:0", .dst = "nic:2", .traffic_class = "a"}});
  CHECK(bench.book.counts().no_scope == 2);
  CHECK(bench.book.series().empty());
}

TEST_CASE("what lies outside of the time asked for is counted, not used") {
  Bench bench(zone_only, {}, {.first_minute = minute_zero + 10, .last_minute = minute_zero + 19});
  bench.add({{.minute = 9}, {.minute = 10}, {.minute = 19}, {.minute = 20}});
  CHECK(bench.book.counts().outside == 2);
  CHECK(bench.book.span() == std::pair(minute_zero + 10, minute_zero + 19));
}

TEST_CASE("late rows revise what was settled") {
  Bench bench(zone_only);
  bench.add({{.minute = 0}, {.minute = 1, .sent = 9000}, {.minute = 6}});
  CHECK(bench.book.revisions().empty());
  bench.add({{.minute = 0, .lost = 1000}, {.minute = 1, .sent = 1000}, {.minute = 1, .sent = 10}});
  CHECK(bench.book.counts().late == 1);  // minute 1 is 5 behind, which is not late
  bench.add({{.minute = 8}, {.minute = 1, .sent = 10}});
  const auto revisions = bench.book.revisions();
  REQUIRE(revisions.size() == 2);  // of "all" and of "zone:0"
  for (const auto& r : revisions) {
    CHECK(r.minute == minute_zero);
    CHECK(r.before == Verdict::good);
    CHECK(r.after == Verdict::bad_loss);
  }
}

TEST_CASE("rows behind the lateness are left out") {
  Bench bench(zone_only, {}, {.lateness_minutes = 10});
  bench.add({{.minute = 20}, {.minute = 10}, {.minute = 9}});
  CHECK(bench.book.counts().too_late == 1);
  CHECK(bench.book.span().first == minute_zero + 10);
}

TEST_CASE("bounds are told, not exceeded") {
  Bench few(zone_only, {}, {.cells_max = 60});
  const auto status = few.book.add(testing::rows_of(few.fabric, {{.minute = 0}}));
  REQUIRE_FALSE(status.has_value());  // "all" and "zone:0" need an hour each
  CHECK(status.error().text().find("--from") != std::string::npos);

  Bench many(zone_only);
  const RowSpec row{.sent = 3'000'000'000};
  const auto overflow = many.book.add(testing::rows_of(many.fabric, {row, row}));
  REQUIRE_FALSE(overflow.has_value());
  CHECK(overflow.error().text().find("2026-03-01T00:00:00Z") != std::string::npos);
}

TEST_CASE("minutes before 1970") {
  CHECK(minute_of({-1}) == -1);
  CHECK(minute_of({-ns_per_minute}) == -1);
  CHECK(minute_of({-ns_per_minute - 1}) == -2);
  Bench bench(zone_only);
  bench.add({{.minute = -minute_zero - 1}, {.minute = -minute_zero - 60}});
  CHECK(bench.book.by_name().front()->find(-1)->probes() == 20'000);
  CHECK(bench.book.by_name().front()->find(-60)->probes() == 20'000);
  CHECK(bench.book.by_name().front()->find(-61) == nullptr);
}

}  // namespace
}  // namespace weft::observe::sli
