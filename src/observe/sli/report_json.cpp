// The report for programs: JSON.
#include <array>
#include <nlohmann/json.hpp>

#include "base/timestamp.hpp"
#include "observe/sli/report.hpp"

namespace weft::observe::sli {
namespace {

using Json = nlohmann::ordered_json;

Json number_or_null(std::optional<double> value) { return value ? Json(*value) : Json(nullptr); }
double minutes_of(std::int64_t micro) { return static_cast<double>(micro) * 1e-6; }
double as_double(std::uint64_t value) { return static_cast<double>(value); }

Json to_json(const MinuteCounts& counts) {
  return {{"good", counts.good},
          {"bad", counts.bad()},
          {"bad_loss", counts.bad_loss},
          {"bad_corruption", counts.bad_corruption},
          {"bad_latency", counts.bad_latency},
          {"no_data", counts.no_data},
          {"thin", counts.thin},
          {"all", counts.all()}};
}

Json loss_json(std::uint64_t sent, std::uint64_t lost, const Interval& interval) {
  return {{"share", sent > 0 ? Json(as_double(lost) / as_double(sent)) : Json(nullptr)},
          {"low", interval.low},
          {"high", interval.high}};
}

Json causes_json(const std::vector<Attribution>& list, const Causes& causes) {
  Json out = Json::array();
  for (const Attribution& a : list) {
    const model::Episode* episode = a.episode ? &causes.episode(*a.episode) : nullptr;
    out.push_back({{"episode", episode ? Json(episode->id) : Json(nullptr)},
                   {"kind", episode ? episode->kind : "unexplained"},
                   {"planned", episode != nullptr && causes.is_planned(*a.episode)},
                   {"minutes", minutes_of(a.micro_minutes)}});
  }
  return out;
}

Json objective_json(const Objective& o) {
  return {{"name", o.name},
          {"scope", to_text(o.span)},
          {"class", o.traffic_class.empty() ? Json(nullptr) : Json(o.traffic_class)},
          {"loss", o.loss.value()},
          {"corruption", o.corruption.value()},
          {"latency_p99_s", o.latency_p99_us > 0 ? Json(o.latency_p99_us / 1e6) : Json(nullptr)},
          {"probes_needed", probes_needed(o, 100)},
          {"target", o.target.value()},
          {"window_s", o.window_minutes * 60}};
}

Json period_json(const BadPeriod& p, const Causes& causes) {
  return {{"from", to_text(start_of(p.first_minute))},
          {"to", to_text(start_of(p.last_minute + 1))},
          {"minutes", p.last_minute - p.first_minute + 1},
          {"sent", p.sent},
          {"lost", p.lost},
          {"late", (p.late_legs + 1) / 2},
          {"loss", loss_json(p.sent, p.lost, p.loss)},
          {"causes", causes_json(p.causes, causes)}};
}

Json budget_json(const SeriesReport& s, const Settings& settings) {
  Json burn = Json::array();
  for (std::size_t i = 0; i < settings.alerts.size(); ++i)
    burn.push_back({{"alert", settings.alerts[i].name},
                    {"long_minutes", settings.alerts[i].long_minutes},
                    {"rate", s.burn_rates[i]}});
  return {{"allowed_minutes", s.budget.allowed_minutes()},
          {"bad_minutes", s.budget.bad},
          {"left", s.budget.left_share()},
          {"burn_rates", std::move(burn)}};
}

Json sensitivity_json(const SeriesReport& s) {
  Json out = Json::array();
  for (std::size_t i = 0; i < scale_percents.size(); ++i) {
    Json row{{"thresholds", scale_percents[i] / 100.0}};
    row.update(to_json(s.scaled[i]));
    row["availability"] = number_or_null(s.scaled[i].availability());
    out.push_back(std::move(row));
  }
  return out;
}

Json series_json(const SeriesReport& s, const Settings& settings, const Causes& causes) {
  Json alerts = Json::array();
  for (const AlertPeriod& a : s.alerts)
    alerts.push_back({{"alert", settings.alerts[a.alert].name},
                      {"from", to_text(start_of(a.first_minute + 1))},
                      {"to", to_text(start_of(a.last_minute + 1))}});
  Json periods = Json::array();
  for (const BadPeriod& p : s.periods) periods.push_back(period_json(p, causes));
  const Objective& objective = settings.objectives[s.objective];
  return {
      {"objective", objective.name},
      {"scope", to_text(objective.span)},
      {"class", s.traffic_class},
      {"entity", s.entity},
      {"minutes", to_json(s.minutes)},
      {"coverage", static_cast<double>(s.minutes.judged()) / static_cast<double>(s.minutes.all())},
      {"availability", number_or_null(s.minutes.availability())},
      {"availability_without_planned", number_or_null(s.availability_without_planned)},
      {"planned_minutes", minutes_of(s.planned_micro)},
      {"gpus", s.gpus},
      {"availability_by_gpus", number_or_null(s.availability_by_gpus)},
      {"sent", s.sent},
      {"lost", s.lost},
      {"damaged", s.damaged},
      {"late", (s.late_legs + 1) / 2},
      {"loss", loss_json(s.sent, s.lost, s.loss)},
      {"probes_median", s.probes_median},
      {"budget", budget_json(s, settings)},
      {"causes", causes_json(s.causes, causes)},
      {"sensitivity", sensitivity_json(s)},
      {"alerts", std::move(alerts)},
      {"bad_periods", std::move(periods)},
      {"timeline", s.timeline}};
}

std::string day_text(std::int64_t day) { return to_text(start_of(day * 24 * 60)).substr(0, 10); }

Json offenders_json(const Offenders& offenders) {
  Json slow = Json::array(), repeats = Json::array();
  for (const SlowBurn& s : offenders.slow)
    slow.push_back({{"entity", s.entity},
                    {"kind", s.kind},
                    {"days_suspicious", s.days_suspicious},
                    {"days_seen", s.days_seen},
                    {"first_day", day_text(s.first_day)},
                    {"last_day", day_text(s.last_day)},
                    {"sent", s.sent},
                    {"lost", s.lost},
                    {"background", s.background},
                    {"p_value", s.p_value}});
  for (const RepeatOffender& r : offenders.repeats)
    repeats.push_back({{"entity", r.entity},
                       {"count", r.episodes.size()},
                       {"no_fault_found", r.no_fault_found},
                       {"episodes", r.episodes}});
  return {{"tested", offenders.tested},
          {"slow_burn", std::move(slow)},
          {"repeats", std::move(repeats)}};
}

}  // namespace

std::string to_json(const Report& report, const MinuteCounters& book) {
  Json objectives = Json::array(), series = Json::array();
  for (const Objective& o : book.settings().objectives) objectives.push_back(objective_json(o));
  for (const SeriesReport& s : report.series)
    series.push_back(series_json(s, book.settings(), book.causes()));
  const Json out{{"from", to_text(start_of(report.first_minute))},
                 {"to", to_text(start_of(report.last_minute + 1))},
                 {"minutes", report.last_minute - report.first_minute + 1},
                 {"timeline_s", report.timeline_hours * 3600},
                 {"confidence", book.settings().confidence},
                 {"objectives", std::move(objectives)},
                 {"series", std::move(series)},
                 {"offenders", offenders_json(report.offenders)},
                 {"notes", report.notes}};
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace weft::observe::sli
