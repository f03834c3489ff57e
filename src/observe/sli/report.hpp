// Good and bad minutes, who is to blame, and what is left of the budget: the result as plain data.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "observe/sli/binomial.hpp"
#include "observe/sli/burn.hpp"
#include "observe/sli/minutes.hpp"
#include "observe/sli/offenders.hpp"

namespace weft::observe::sli {

struct MinuteCounts {
  std::int64_t good = 0, bad_loss = 0, bad_corruption = 0, bad_latency = 0, no_data = 0;
  std::int64_t thin = 0;  // of no_data: with probes, but too few

  std::int64_t bad() const { return bad_loss + bad_corruption + bad_latency; }
  std::int64_t judged() const { return good + bad(); }
  std::int64_t all() const { return judged() + no_data; }
  // Of the judged ones; none when no minute was, or more were thin: among thin minutes only the
  // worst can be judged.
  std::optional<double> availability() const;
};

// Millionths of bad minutes; `episode` none: unexplained.
struct Attribution {
  std::optional<EpisodeIndex> episode;
  std::int64_t micro_minutes = 0;
};

// Bad minutes on end.
struct BadPeriod {
  std::int64_t first_minute = 0, last_minute = 0;
  std::uint64_t sent = 0, lost = 0, late_legs = 0;
  Interval loss;
  std::vector<Attribution> causes;  // add up to the minutes of the period
};

struct AlertPeriod {
  std::size_t alert = 0;  // index in Settings::alerts
  std::int64_t first_minute = 0, last_minute = 0;
};

// One objective, class and entity.
struct SeriesReport {
  std::size_t objective = 0;  // index in Settings::objectives
  std::string traffic_class, entity;
  bool is_all = false;  // every probe of the objective; the entity then reads "all"
  MinuteCounts minutes;
  std::array<MinuteCounts, scale_percents.size()> scaled;  // at other thresholds
  std::uint64_t sent = 0, lost = 0, damaged = 0, late_legs = 0;
  std::uint64_t timed_legs = 0, slow_legs = 0;
  Interval loss;
  std::uint64_t probes_median = 0;  // a minute, over minutes with any
  std::vector<Attribution> causes;  // by size; add up to the bad minutes
  std::int64_t planned_micro = 0;   // of it, by what was planned
  std::optional<double> availability_without_planned;
  // Of "all": minutes of its single entities, each weighted by its GPUs. Else as minutes.
  std::uint64_t gpus = 0;
  std::optional<double> availability_by_gpus;
  Budget budget;
  std::vector<double> burn_rates;  // over the long window of each alert, at the end
  std::vector<AlertPeriod> alerts;
  std::vector<BadPeriod> periods;
  std::string timeline;  // one character for `timeline_hours` of the report
};

struct Report {
  std::int64_t first_minute = 0, last_minute = 0;
  std::int64_t timeline_hours = 1;
  std::vector<SeriesReport> series;  // by objective, class, entity; "all" first
  Offenders offenders;
  std::vector<std::string> notes;
};

// Judges every minute from `first_minute` to `last_minute`.
// Fails: Errc::infeasible when that is more than two years.
// Cost: some 10 ns a minute and series, more for those with losses.
Result<Report> build_report(const MinuteCounters& book, const OffenderBook& offenders,
                            std::int64_t first_minute, std::int64_t last_minute);

// A table an objective, timelines, causes, sensitivity, offenders: for the terminal.
std::string to_table(const Report& report, const MinuteCounters& book);
std::string to_json(const Report& report, const MinuteCounters& book);
// Prometheus text exposition.
std::string to_metrics(const Report& report, const MinuteCounters& book);
// OpenSLO v1: a Service, and one SLO an objective and threshold, with time slices of a minute.
std::string to_openslo(const Settings& settings);

}  // namespace weft::observe::sli
