#include "observe/sli/report.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/rng.hpp"
#include "base/test_approx.hpp"
#include "observe/sli/test_kit.hpp"

namespace weft::observe::sli {
namespace {

using testing::Bench;
using testing::episode;
using testing::minute_zero;
using testing::RowSpec;
using testing::series_of;

constexpr std::string_view zone_any_delay = "objectives: [{name: z, scope: zone}]";
const std::vector<std::string_view> by_spine_0{"nic:0->rtsw:0", "rtsw:0->ctsw:0", "ctsw:0->rtsw:1",
                                               "rtsw:1->nic:2"};
const std::vector<std::string_view> by_spine_1{"nic:0->rtsw:0", "rtsw:0->ctsw:1", "ctsw:1->rtsw:1",
                                               "rtsw:1->nic:2"};

std::string causes_text(const std::vector<Attribution>& list, const Causes& causes) {
  std::string out;
  for (const Attribution& a : list)
    out += (a.episode ? causes.episode(*a.episode).id : "?") + "=" +
           std::to_string(a.micro_minutes) + " ";
  return out;
}

TEST_CASE("minutes are counted, gaps are no data") {
  Bench bench(zone_any_delay);
  bench.add({{.minute = 0},
             {.minute = 1, .lost = 200},
             {.minute = 2, .lost = 200},
             {.minute = 5, .sent = 10},
             {.minute = 9}});
  const SeriesReport all = series_of(bench.report(), "all");
  CHECK(all.minutes.good == 2);
  CHECK(all.minutes.bad_loss == 2);
  CHECK(all.minutes.no_data == 6);
  CHECK(all.minutes.all() == 10);
  CHECK(all.minutes.availability() == approx(0.5));
  CHECK(all.sent == 80'010);
  CHECK(all.lost == 400);
  REQUIRE(all.periods.size() == 1);
  CHECK(all.periods[0].first_minute == minute_zero + 1);
  CHECK(all.periods[0].last_minute == minute_zero + 2);
  CHECK(all.periods[0].lost == 400);
  CHECK(all.periods[0].loss.low < 0.01);
  CHECK(all.periods[0].loss.high > 0.01);
  CHECK(causes_text(all.causes, bench.causes) == "?=2000000 ");
  CHECK(all.timeline == "▄");
}

// 300 lost by way of spine 0, 100 by way of spine 1: the minute is shared 3 to 1.
TEST_CASE("a minute is shared by the losses on paths through each cause") {
  Bench bench(zone_any_delay, {episode("a", "loss", {"ctsw:0"}, 0, 10),
                               episode("b", "maintenance", {"rtsw:0--ctsw:1"}, 0, 10)});
  bench.add({{.lost = 300, .path = by_spine_0}, {.lost = 100, .path = by_spine_1}});
  const Report report = bench.report();
  const SeriesReport& all = series_of(report, "all");
  CHECK(causes_text(all.causes, bench.causes) == "a=750000 b=250000 ");
  CHECK(all.planned_micro == 250'000);
  CHECK(all.minutes.availability() == approx(0));
}

TEST_CASE("what no cause crosses stays unexplained; one row with two causes is halved") {
  Bench bench(zone_any_delay, {episode("a", "loss", {"ctsw:0"}, 0, 10),
                               episode("b", "loss", {"rtsw:0->ctsw:0"}, 0, 10)});
  bench.add({{.lost = 200, .path = by_spine_0}, {.lost = 200, .path = by_spine_1}});
  CHECK(causes_text(series_of(bench.report(), "all").causes, bench.causes) ==
        "a=250000 b=250000 ?=500000 ");
}

TEST_CASE("three causes of one row leave nothing over") {
  Bench bench(zone_any_delay,
              {episode("a", "loss", {"ctsw:0"}, 0, 10), episode("b", "loss", {"rtsw:0"}, 0, 10),
               episode("c", "loss", {"rtsw:1"}, 0, 10)});
  bench.add({{.lost = 100, .path = by_spine_0}});
  const auto causes = series_of(bench.report(), "all").causes;
  REQUIRE(causes.size() == 3);
  CHECK(causes[0].micro_minutes + causes[1].micro_minutes + causes[2].micro_minutes == 1'000'000);
}

TEST_CASE("minutes bad by latency are shared by slow replies") {
  Bench bench("objectives: [{name: z, scope: zone, latency_p99: 100 us}]",
              {episode("a", "congestion", {"ctsw:0"}, 0, 10)});
  bench.add({{.p50 = 200, .p99 = 300, .path = by_spine_0},
             {.p50 = 200, .p99 = 300, .path = by_spine_1},
             {.minute = 1, .p50 = 10, .p99 = 30, .path = by_spine_0}});
  const Report report = bench.report();
  const SeriesReport& all = series_of(report, "all");
  CHECK(all.minutes.bad_latency == 1);
  CHECK(causes_text(all.causes, bench.causes) == "a=500000 ?=500000 ");
}

TEST_CASE("maintenance is shown with and without") {
  Bench bench(zone_any_delay, {episode("m", "maintenance", {"ctsw:0"}, 0, 2)});
  bench.add({{.minute = 0, .lost = 500, .path = by_spine_0},
             {.minute = 1, .lost = 500, .path = by_spine_0},
             {.minute = 2},
             {.minute = 3},
             {.minute = 8, .lost = 500, .path = by_spine_0}});
  const Report report = bench.report();
  const SeriesReport& all = series_of(report, "all");
  CHECK(all.minutes.availability() == approx(2.0 / 5));
  REQUIRE(all.availability_without_planned.has_value());
  CHECK(*all.availability_without_planned == approx(2.0 / 3));
}

// rack:0 is bad half of the time, rack:2 never; both have two GPUs.
TEST_CASE("weighting by GPUs") {
  Bench bench("objectives: [{name: r, scope: rack-internal}]");
  bench.add({{.minute = 0, .src = "nic:0", .dst = "nic:1", .lost = 500},
             {.minute = 1, .src = "nic:0", .dst = "nic:1"},
             {.minute = 0, .src = "nic:4", .dst = "nic:5"},
             {.minute = 1, .src = "nic:4", .dst = "nic:5"}});
  const Report report = bench.report();
  CHECK(series_of(report, "rack:0").gpus == 2);
  CHECK(series_of(report, "rack:0").availability_by_gpus == approx(0.5));
  CHECK(series_of(report, "all").gpus == 4);
  CHECK(series_of(report, "all").minutes.good == 1);  // all probes together: one bad minute
  CHECK(series_of(report, "all").availability_by_gpus == approx(0.75));
}

// Two of three minutes have 100 probes of the 10,000 needed; the outage among them is seen.
TEST_CASE("where most minutes are thin there is no availability") {
  Bench bench(zone_any_delay);
  bench.add({{.minute = 0, .sent = 100, .lost = 100},
             {.minute = 1, .sent = 100},
             {.minute = 2, .sent = 100}});
  const SeriesReport all = series_of(bench.report(), "all");
  CHECK(all.minutes.bad() == 1);
  CHECK(all.minutes.thin == 2);
  CHECK_FALSE(all.minutes.availability().has_value());
  CHECK_FALSE(all.availability_without_planned.has_value());
}

TEST_CASE("the timeline has a character an hour") {
  Bench bench(zone_any_delay);
  std::vector<RowSpec> rows;
  for (std::int64_t m = 0; m < 240; ++m)
    if (m < 60 || m >= 120)
      rows.push_back({.minute = m, .lost = m >= 180 || m == 130 ? 5'000u : 0u});
  bench.add(rows);
  const Report report = bench.report();
  CHECK(report.timeline_hours == 1);
  CHECK(series_of(report, "all").timeline == "· ▁█");
}

TEST_CASE("sensitivity: the same minutes at half and twice the thresholds") {
  Bench bench("objectives: [{name: z, scope: zone, minimum_probes: 100}]");
  bench.add({{.minute = 0, .lost = 20}, {.minute = 1, .lost = 35}, {.minute = 2, .lost = 70}});
  const auto scaled = series_of(bench.report(), "all").scaled;
  CHECK(scaled[0].bad() == 3);
  CHECK(scaled[1].bad() == 2);
  CHECK(scaled[2].bad() == 1);
}

TEST_CASE("notes tell what was not used and what could not be judged") {
  Bench bench("objectives: [{name: z, scope: zone}, {name: x, scope: cross-zone}]",
              {episode("e", "loss", {}, 0, 1)});
  bench.add({{.sent = 700}});
  const auto notes = bench.report().notes;
  REQUIRE(notes.size() == 3);
  CHECK(notes[0].find("has 700 of the 10000") != std::string::npos);
  CHECK(notes[1].find("objective x: no probes") != std::string::npos);
  CHECK(notes[2].find("episode e has no entities") != std::string::npos);
}

TEST_CASE("more than two years are refused") {
  Bench bench(zone_any_delay);
  bench.add({{.minute = 0}, {.minute = std::int64_t{3} * 366 * 1440}});
  const auto [first, last] = bench.book.span();
  const auto report = build_report(bench.book, bench.offenders, first, last);
  REQUIRE_FALSE(report.has_value());
  CHECK(report.error().text().find("check the clocks") != std::string::npos);
}

// Random rows of all kinds, with causes that overlap.
std::vector<RowSpec> random_rows(std::uint64_t seed, std::size_t count) {
  static constexpr std::array<std::string_view, 6> nics{"nic:0", "nic:1", "nic:2",
                                                        "nic:3", "nic:4", "nic:5"};
  Rng rng(seed);
  std::vector<RowSpec> out;
  for (std::size_t i = 0; i < count; ++i) {
    RowSpec row;
    row.minute = static_cast<std::int64_t>(rng.below(200));
    row.sent = static_cast<std::uint32_t>(5'000 + rng.below(20'000));
    row.lost = rng.below(4) == 0 ? static_cast<std::uint32_t>(rng.below(100)) : 0;
    row.late = rng.below(8) == 0 ? static_cast<std::uint32_t>(rng.below(500)) : 0;
    row.p50 = static_cast<float>(rng.below(120));
    row.p99 = row.p50 + static_cast<float>(rng.below(120));
    row.traffic_class = rng.below(3) == 0 ? "a" : "b";
    const std::uint64_t way = rng.below(3);
    if (way == 2) {
      row.src = nics[rng.below(6)];
      row.dst = nics[rng.below(6)];
    } else {
      row.path = way == 0 ? by_spine_0 : by_spine_1;
      row.leg = rng.below(2) == 0 ? model::Leg::forward : model::Leg::back;
    }
    out.push_back(row);
  }
  return out;
}
constexpr std::string_view three_objectives = R"(
objectives:
  - {name: z, scope: zone, latency_p99: 100 us, loss: 0.1 %, minimum_probes: 5000}
  - {name: r, scope: rack-internal, minimum_probes: 100}
  - {name: c, scope: cross-rack, target: 90 %, window: 1 h, minimum_probes: 5000})";
std::vector<model::Episode> overlapping() {
  return {episode("a", "loss", {"ctsw:0"}, 0, 100), episode("b", "drain", {"ctsw:1"}, 50, 150),
          episode("c", "loss", {"rack:0"}, 20, 60), episode("d", "loss", {"rtsw:1"}, 20, 180)};
}
std::string all_bytes(const Bench& bench) {
  const Report report = bench.report();
  return to_json(report, bench.book) + to_table(report, bench.book) +
         to_metrics(report, bench.book);
}

TEST_CASE("any order and any split of the input give the same bytes") {
  const std::vector<RowSpec> rows = random_rows(1, 2000);
  Bench straight(three_objectives, overlapping());
  straight.add(rows);
  const std::string expected = all_bytes(straight);
  CHECK(expected.size() > 10'000);
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    std::vector<RowSpec> mixed = rows;
    Rng(seed).shuffle(std::span(mixed));
    Bench bench(three_objectives, overlapping());
    // Pieces of growing size, each a set of its own with classes in another order.
    for (std::size_t at = 0, step = 1; at < mixed.size(); at += step, step *= 3) {
      const std::size_t end = std::min(mixed.size(), at + step);
      bench.add(std::vector<RowSpec>(mixed.begin() + static_cast<std::ptrdiff_t>(at),
                                     mixed.begin() + static_cast<std::ptrdiff_t>(end)));
    }
    CHECK(all_bytes(bench) == expected);
  }
}

TEST_CASE("totals add up") {
  for (std::uint64_t seed = 10; seed < 20; ++seed) {
    Bench bench(three_objectives, overlapping());
    bench.add(random_rows(seed, 3000));
    const Report report = bench.report();
    std::int64_t bad_minutes = 0;
    for (const SeriesReport& s : report.series) {
      CHECK(s.minutes.all() == report.last_minute - report.first_minute + 1);
      for (const MinuteCounts& scaled : s.scaled) CHECK(scaled.all() == s.minutes.all());
      std::int64_t micro = 0, in_periods = 0, micro_in_periods = 0;
      for (const Attribution& a : s.causes) micro += a.micro_minutes;
      for (const BadPeriod& p : s.periods) {
        in_periods += p.last_minute - p.first_minute + 1;
        for (const Attribution& a : p.causes) micro_in_periods += a.micro_minutes;
      }
      CHECK(micro == s.minutes.bad() * 1'000'000);
      CHECK(micro_in_periods == micro);
      CHECK(in_periods == s.minutes.bad());
      CHECK(s.lost <= s.sent);
      CHECK(s.planned_micro <= micro);
      bad_minutes += s.minutes.bad();
    }
    CHECK(bad_minutes > 100);
  }
}

TEST_CASE("zone probes are those inside racks and those across them") {
  Bench bench(R"(
objectives:
  - {name: zone, scope: zone}
  - {name: rack, scope: rack-internal}
  - {name: cross, scope: cross-rack})");
  bench.add(random_rows(5, 2000));
  const Report report = bench.report();
  for (const char* c : {"a", "b"}) {
    const auto& zone = series_of(report, "all", c, 0);
    // Legs of one flow are matched within a series, so compare losses, which simply add.
    CHECK(zone.lost == series_of(report, "all", c, 1).lost + series_of(report, "all", c, 2).lost);
  }
}

TEST_CASE("the JSON is well-formed and holds the same figures") {
  Bench bench(three_objectives, overlapping());
  bench.add(random_rows(3, 1000));
  const Report report = bench.report();
  const auto json = nlohmann::json::parse(to_json(report, bench.book));
  REQUIRE(json["series"].size() == report.series.size());
  for (std::size_t i = 0; i < report.series.size(); ++i) {
    const auto& s = json["series"][i];
    CHECK(s["minutes"]["bad"] == report.series[i].minutes.bad());
    CHECK(s["entity"] == report.series[i].entity);
    CHECK(s["bad_periods"].size() == report.series[i].periods.size());
  }
}

// A month, a row a minute and path, taken in as it comes: 43,200 minutes, some 520,000 rows.
TEST_CASE("a month of minutes") {
  Bench bench("objectives: [{name: z, scope: zone, target: 99.9 %}]",
              {episode("out", "loss", {"ctsw:0"}, 20'000, 20'030)});
  Rng rng(7);
  constexpr std::int64_t month = std::int64_t{30} * 1440;
  for (std::int64_t day = 0; day < 30; ++day) {
    model::EvidenceSet set;
    testing::add_row(bench.fabric, set, {.path = by_spine_0});
    testing::add_row(bench.fabric, set, {.path = by_spine_1});
    const model::Evidence left = set.rows[0], right = set.rows[1];
    set.rows.clear();
    for (std::int64_t m = day * 1440; m < (day + 1) * 1440; ++m)
      for (int flow = 0; flow < 12; ++flow) {
        model::Evidence row = flow % 2 == 0 ? left : right;
        row.t = start_of(minute_zero + m);
        row.sent = 1000;
        row.lost = rng.below(100) == 0 ? 1 : 0;
        if (flow % 2 == 0 && m >= 20'000 && m < 20'030) row.lost = 20;
        set.rows.push_back(row);
      }
    bench.add_set(set);
  }
  const Report report = bench.report();
  const SeriesReport& all = series_of(report, "all");
  CHECK(all.minutes.all() == month);
  CHECK(all.minutes.bad() == 30);
  CHECK(all.minutes.no_data == 0);
  REQUIRE(all.causes.size() >= 1);
  CHECK(all.causes[0].episode.has_value());
  CHECK(all.causes[0].micro_minutes > 29'000'000);
  CHECK(all.budget.left_share() == approx(1 - 30 / 43.2));
  // 14.4 x 0.1 % of 60 minutes and of 5: one bad minute in either is beyond it.
  REQUIRE_FALSE(all.alerts.empty());
  CHECK(all.alerts[0].first_minute == minute_zero + 20'000);
  CHECK(report.timeline_hours == 10);
}

}  // namespace
}  // namespace weft::observe::sli
