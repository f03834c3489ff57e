// P-49: 5 bad minutes in 30 days are 99.988 %, so one 5-minute outage breaks 99.99 % a month.
// Source: arithmetic on a month of minutes, by which networks are judged that count good and bad
// minutes ("Enhancing Network Reliability for AI Training", Networking@Scale 2024).
// Ours: a month of evidence, a row a minute, through books, verdicts and budget. Tolerance: none,
// the published figure is 1 - 5 / 43,200 to three decimals of a percent.
#include <cmath>

#include "base/test_approx.hpp"
#include "kit.hpp"
#include "observe/sli/report.hpp"

namespace weft::paper {
namespace {

namespace sli = observe::sli;

constexpr std::int64_t month = std::int64_t{30} * 24 * 60;
constexpr std::int64_t outage_start = 12'345, outage_end = 12'350;

sli::SeriesReport month_of(const sli::Settings& settings) {
  const Fabric fabric = fabric_of("{generator: ai_zone, racks: 2, hosts_per_rack: 1}");
  const auto causes = sli::Causes::create(fabric, {}, settings);
  REQUIRE(causes.has_value());
  sli::MinuteCounters book(fabric, settings, *causes);
  model::EvidenceSet set;
  model::Evidence row{.src = fabric.nics().front(), .dst = fabric.nics().back(), .sent = 20'000};
  row.traffic_class = set.class_index("0");
  for (std::int64_t minute = 0; minute < month; ++minute) {
    row.t = sli::start_of(minute);
    row.lost = minute >= outage_start && minute < outage_end ? row.sent : 0;
    set.rows.push_back(row);
  }
  REQUIRE(book.add(set).has_value());
  const auto report = sli::build_report(book, sli::OffenderBook(fabric), 0, month - 1);
  REQUIRE(report.has_value());
  return report->series.front();
}

TEST_CASE("P-49: 5 minutes of 30 days are 99.988 %") {
  sli::Settings settings = sli::default_settings();
  settings.objectives = {{.name = "zone", .span = sli::Span::zone, .target = {999'900'000}}};
  const sli::SeriesReport all = month_of(settings);
  CHECK(all.minutes.bad() == 5);
  CHECK(all.minutes.no_data == 0);
  REQUIRE(all.minutes.availability().has_value());
  CHECK(std::round(*all.minutes.availability() * 1e5) == 99'988);
  CHECK(*all.minutes.availability() < settings.objectives[0].target.value());
  CHECK(all.budget.allowed_minutes() == approx(4.32));
  CHECK(all.budget.left_share() < 0);
}

}  // namespace
}  // namespace weft::paper
