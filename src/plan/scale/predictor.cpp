#include "plan/scale/predictor.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <span>
#include <utility>

#include "observe/forecast/outages.hpp"

namespace weft::plan::scale {
namespace {

constexpr std::array<std::size_t, 4> days_alike{1, 2, 3, 7};
constexpr std::size_t days_of_errors = 14;
constexpr double growth_least = 0.5, growth_most = 3;
constexpr double trend_damping = 0.7;
constexpr double error_memory = 0.995;  // a step
constexpr double never_below = 0.9;     // of today's level
constexpr double factor_unknown = 1.3;  // without errors to learn from
constexpr double factor_most = 2;       // what breaks off and comes back is no lesson
constexpr double error_least = 1e-9;

// Windows in steps, for steps of `minutes`.
struct Windows {
  explicit Windows(std::size_t steps_a_day) : day(steps_a_day) {
    const auto steps = [&](std::size_t minutes) {
      return std::max<std::size_t>(1, minutes * day / (std::size_t{24} * 60));
    };
    level = steps(5);
    trend = steps(10);
    around = steps(120);
    recent = steps(180);
    renew = steps(5);
  }
  std::size_t day, level, trend, around, recent, renew;
};

class Predictor {
 public:
  Predictor(const Demand& demand, const PredictorOptions& options)
      : demand_(demand),
        options_(options),
        windows_(demand.steps_a_day),
        sums_(demand.values.size() + 1, 0),
        forecast_(demand.values.size(), 0),
        said_(demand.values.size()),
        excess_(demand.values.size(), 0) {
    for (std::size_t t = 0; t < demand.values.size(); ++t) sums_[t + 1] = sums_[t] + value(t);
    for (std::size_t t = 0; t < demand.events.size(); ++t)
      if (const std::string& name = demand.events[t];
          !name.empty() && (t == 0 || demand.events[t - 1] != name))
        starts_[name].push_back(t);
  }

  std::vector<double> run() {
    std::vector<double> out(demand_.values.size(), 0);
    double factor = factor_unknown;
    for (std::size_t t = windows_.day; t < out.size(); ++t) {
      learn(t);
      predict(t);
      if ((t - windows_.day) % windows_.renew == 0) factor = safety(t);
      out[t] = forecast_[t] * factor;
    }
    return out;
  }

 private:
  double value(std::size_t t) const { return demand_.values[t]; }
  // Mean of [first, last).
  double mean(std::size_t first, std::size_t last) const {
    return (sums_[last] - sums_[first]) / static_cast<double>(last - first);
  }
  // Of the last minutes up to and with t.
  double level(std::size_t t) const {
    const std::size_t count = std::min(windows_.level, t + 1);
    return mean(t + 1 - count, t + 1);
  }

  // How demand went on after `then`, which lies so far back that all of it is past at t.
  void add_growth(std::size_t then, std::size_t t, std::vector<double>& out) const {
    const std::size_t reach = then + options_.lead + windows_.level;
    if (then < windows_.level || reach > t) return;
    const double before = mean(then - windows_.level, then + windows_.level);
    const double after =
        std::max(level(then + options_.lead), level(then + options_.lead + windows_.level / 2));
    if (before > 0) out.push_back(after / before);
  }

  static double mean_growth(std::span<const double> found) {
    double sum = 0;
    for (const double one : found) sum += one;
    return found.empty()
               ? 1
               : std::clamp(sum / static_cast<double>(found.size()), growth_least, growth_most);
  }

  double daily_growth(std::size_t t) const {
    std::vector<double> found;
    for (const std::size_t days : days_alike)
      if (days * windows_.day <= t) add_growth(t - days * windows_.day, t, found);
    return mean_growth(found);
  }

  // Where an event will be under way: what came of earlier ones of its name; else 0.
  double event_growth(std::size_t t) const {
    const std::size_t ahead = t + options_.lead;
    if (ahead >= demand_.events.size() || demand_.events[ahead].empty()) return 0;
    const auto& starts = starts_.at(demand_.events[ahead]);
    const auto current = std::ranges::upper_bound(starts, ahead) - 1;
    std::vector<double> found;
    for (auto start = starts.begin(); start != current; ++start)
      if (const std::size_t back = *current - *start; back <= t) add_growth(t - back, t, found);
    return found.empty() ? 0 : mean_growth(found);
  }

  void predict(std::size_t t) {
    const double now = level(t);
    const double slope =
        (now - level(t - std::min(windows_.trend, t))) / static_cast<double>(windows_.trend);
    const double trend = trend_damping * slope * static_cast<double>(options_.lead);
    said_[t] = {now * daily_growth(t), std::max(0.0, now + trend), now};
    double sum = 0, weights = 0;
    for (std::size_t i = 0; i < said_[t].size(); ++i) {
      const double weight = std::pow(errors_[i] + error_least, -4);
      sum += weight * said_[t][i];
      weights += weight;
    }
    forecast_[t] = std::max({sum / weights, never_below * now, event_growth(t) * now});
  }

  // From what was forecast for this step.
  void learn(std::size_t t) {
    if (t < windows_.day + options_.lead) return;
    const std::size_t then = t - options_.lead;
    const double now = level(t);
    for (std::size_t i = 0; i < errors_.size(); ++i)
      errors_[i] = error_memory * errors_[i] + (1 - error_memory) * std::abs(said_[then][i] - now);
    if (forecast_[then] > 0) excess_[t] = value(t) / forecast_[then];
  }

  double safety(std::size_t t) {
    seen_.clear();
    const auto take = [&](std::size_t first, std::size_t last) {
      for (std::size_t i = first; i < last; ++i)
        if (excess_[i] > 0) seen_.push_back(excess_[i]);
    };
    for (int twice = 0; twice < 2; ++twice)  // what is recent counts double
      take(t - std::min(t, windows_.recent), t + 1);
    for (std::size_t days = 1; days <= days_of_errors; ++days) {
      const std::size_t back = days * windows_.day;
      if (back > t + options_.lead) break;
      const std::size_t there = t + options_.lead - back;
      take(there - std::min(there, windows_.around), std::min(there + windows_.around, t + 1));
    }
    if (seen_.empty()) return factor_unknown;
    // A limit for the next value, which is one of n + 1 alike: one rank above the percentile.
    const auto rank =
        std::min(seen_.size() - 1,
                 static_cast<std::size_t>(options_.quantile * static_cast<double>(seen_.size())));
    std::ranges::nth_element(seen_, seen_.begin() + static_cast<std::ptrdiff_t>(rank));
    return std::min(seen_[rank], factor_most);
  }

  const Demand& demand_;
  const PredictorOptions& options_;
  Windows windows_;
  std::vector<double> sums_;
  using Said = std::array<double, 3>;                       // by growth, by trend, today's level
  std::vector<double> forecast_;                            // made at a step, for `lead` later
  std::vector<Said> said_;                                  // the same, one by one
  std::vector<double> excess_;                              // demand over what was forecast for it
  std::map<std::string, std::vector<std::size_t>> starts_;  // of events, by name
  Said errors_{};                                           // recent absolute ones
  std::vector<double> seen_;
};

}  // namespace

Demand demand_of(const observe::forecast::Series& series) {
  observe::forecast::Series measured = series;
  Demand out{.events = series.events};
  out.outages = observe::forecast::drop_outages(measured, observe::forecast::Hindsight::live);
  out.values = std::move(measured.values);
  for (std::size_t t = 0; t < out.values.size(); ++t)
    if (std::isnan(out.values[t])) {
      out.values[t] = t > 0 ? out.values[t - 1] : 0;
      ++out.gaps;
    }
  out.gaps -= out.outages;
  constexpr std::int64_t day_ns = 24 * ns_per_hour;
  if (series.step_ns > 0 && day_ns % series.step_ns == 0)
    out.steps_a_day = static_cast<std::size_t>(day_ns / series.step_ns);
  return out;
}

std::vector<double> predict_peaks(const Demand& demand, const PredictorOptions& options) {
  if (demand.steps_a_day == 0 || demand.values.size() <= demand.steps_a_day)
    return std::vector<double>(demand.values.size(), 0);
  return Predictor(demand, options).run();
}

}  // namespace weft::plan::scale
