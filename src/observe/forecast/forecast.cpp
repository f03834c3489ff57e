#include "observe/forecast/forecast.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/json_text.hpp"
#include "base/text.hpp"
#include "observe/forecast/models.hpp"
#include "observe/forecast/outages.hpp"

namespace weft::observe::forecast {
namespace {

constexpr std::size_t hold_outs_wanted = 3;
constexpr double power = 6;    // of the ratio of errors, for the weights
constexpr double older = 0.8;  // weight of the hold-out before, against the next
// Hold-outs have chosen the weights, so that their errors are smaller than those to come. Chosen
// on every other series of M4 hourly; forecast.md has the coverage on those not used.
constexpr double widening = 1.6;

struct HoldOut {
  std::vector<Candidate> candidates;
  std::vector<double> actual;
};

std::vector<std::size_t> seasons_of(const Series& series, std::vector<std::size_t> seasons) {
  if (seasons.empty())
    for (const std::int64_t span : {ns_per_day, 7 * ns_per_day})
      if (span % series.step_ns == 0)
        seasons.push_back(static_cast<std::size_t>(span / series.step_ns));
  std::ranges::sort(seasons);
  seasons.erase(std::ranges::unique(seasons).begin(), seasons.end());
  std::erase_if(seasons, [&](std::size_t s) { return s < 2 || 5 * s > 2 * series.values.size(); });
  return seasons;
}

// Weights of the candidates that every hold-out knows, by name.
std::vector<Weight> weigh(const std::vector<Candidate>& now, const std::vector<HoldOut>& past) {
  std::vector<Weight> weights;
  for (const Candidate& candidate : now) {
    double sum = 0, count = 0, weight = 1;
    for (const HoldOut& out : past) {
      const auto same = std::ranges::find(out.candidates, candidate.name, &Candidate::name);
      if (same != out.candidates.end())
        for (std::size_t h = 0; h < out.actual.size(); ++h) {
          sum += weight * std::abs(same->values[h] - out.actual[h]);
          count += weight;
        }
      weight *= older;
    }
    weights.push_back({candidate.name, 0, count > 0 ? sum / count : -1});
  }
  double least = -1, total = 0;
  for (const Weight& w : weights)
    if (w.error >= 0 && (least < 0 || w.error < least)) least = w.error;
  const double tiny = 1e-9 * (1 + std::max(least, 0.0));
  for (Weight& w : weights) {
    if (w.error >= 0) w.weight = std::pow((least + tiny) / (w.error + tiny), power);
    total += w.weight;
  }
  for (Weight& w : weights) w.weight /= total;
  return weights;
}

std::vector<double> mix(const std::vector<Candidate>& candidates,
                        const std::vector<Weight>& weights, std::size_t horizon) {
  std::vector<double> mean(horizon, 0.0);
  double total = 0;
  for (const Weight& w : weights) {
    const auto it = std::ranges::find(candidates, w.name, &Candidate::name);
    if (it == candidates.end()) continue;
    total += w.weight;
    for (std::size_t h = 0; h < horizon; ++h) mean[h] += w.weight * it->values[h];
  }
  if (total > 0)
    for (double& v : mean) v /= total;
  return mean;
}

// Half the width of the interval per step ahead: the quantile of the hold-outs' errors within a
// window of steps around it.
std::vector<double> half_widths(const std::vector<HoldOut>& past,
                                const std::vector<Weight>& weights, std::size_t horizon,
                                double level) {
  std::vector<std::vector<double>> errors;
  for (const HoldOut& out : past) {
    errors.push_back(mix(out.candidates, weights, horizon));
    for (std::size_t h = 0; h < horizon; ++h)
      errors.back()[h] = std::abs(errors.back()[h] - out.actual[h]);
  }
  std::vector<double> widths(horizon), near;
  const std::size_t reach = std::max<std::size_t>(8, horizon / 4);
  for (std::size_t h = 0; h < horizon; ++h) {
    near.clear();
    const std::size_t from = h > reach ? h - reach : 0, to = std::min(horizon, h + reach + 1);
    for (const auto& list : errors)
      near.insert(near.end(), list.begin() + static_cast<std::ptrdiff_t>(from),
                  list.begin() + static_cast<std::ptrdiff_t>(to));
    // A limit for the next value, which is one of n + 1 alike: one rank above the percentile.
    const auto rank = std::min(near.size() - 1,
                               static_cast<std::size_t>(level * static_cast<double>(near.size())));
    std::ranges::nth_element(near, near.begin() + static_cast<std::ptrdiff_t>(rank));
    widths[h] = widening * near[rank];
  }
  return widths;
}

// Of what is too small to matter beside the rest, 0 is left: no 6.6e-54 for a reader.
void tidy(Forecast& f) {
  constexpr double tiny = 1e-9;
  double most = 0;
  for (const auto* list : {&f.values, &f.low, &f.high})
    for (const double v : *list) most = std::max(most, std::abs(v));
  const auto round = [](double& v, double scale) {
    if (std::abs(v) < tiny * scale) v = 0;
  };
  for (auto* list : {&f.values, &f.low, &f.high})
    for (double& v : *list) round(v, most);
  for (Weight& w : f.weights) {
    round(w.weight, 1);
    round(w.error, most);
  }
}

}  // namespace

Result<Forecast> predict(const Series& series, Options options, const std::string& file) {
  const std::size_t horizon = options.horizon, n = series.values.size();
  Forecast out{.start = {}, .step_ns = series.step_ns};
  out.seasons = seasons_of(series, std::move(options.seasons));
  if (horizon == 0 || n < 2 * horizon + 8)
    return fail(Errc::value, {file},
                fmt::format("{} values do not suffice for {} steps ahead", n, horizon),
                fmt::format("give at least {} values, or a shorter --horizon", 2 * horizon + 8));
  const auto first = static_cast<double>(series.start.ns);
  if (first + static_cast<double>(n + horizon) * static_cast<double>(series.step_ns) > 9.19e18)
    return fail(Errc::value, {file}, "the forecast would end after the year 2260",
                "check the times, or take a shorter --horizon");
  out.start.ns = series.start.ns + static_cast<std::int64_t>(n) * series.step_ns;
  Series measured = series;
  if (options.outages == Options::Outages::dropped)
    out.outage_count = drop_outages(measured, Hindsight::afterwards);
  const Cleaned cleaned = clean(measured, out.seasons, horizon);
  out.gap_count = cleaned.gap_count - out.outage_count;
  out.event_count = cleaned.event_count;
  const std::span<const double> values = cleaned.values;

  const std::size_t shortest =
      std::max(horizon + 8, out.seasons.empty() ? 0 : out.seasons.back() * 5 / 2);
  std::vector<HoldOut> past;
  for (std::size_t k = 1; k <= hold_outs_wanted && (past.empty() || k * horizon + shortest <= n);
       ++k) {
    const std::size_t at = n - k * horizon;
    const auto actual = values.subspan(at, horizon);
    past.push_back(
        {candidates(values.first(at), out.seasons, horizon), {actual.begin(), actual.end()}});
  }
  out.hold_outs = past.size();
  const std::vector<Candidate> now = candidates(values, out.seasons, horizon);
  out.weights = weigh(now, past);
  out.values = mix(now, out.weights, horizon);
  const std::vector<double> widths = half_widths(past, out.weights, horizon, options.level);
  for (std::size_t h = 0; h < horizon; ++h) {
    out.values[h] += cleaned.effect[h];
    out.low.push_back(out.values[h] - widths[h]);
    out.high.push_back(out.values[h] + widths[h]);
  }
  std::ranges::stable_sort(out.weights, std::ranges::greater{}, &Weight::weight);
  tidy(out);
  return out;
}

std::string to_table(const Forecast& f) {
  std::string text = fmt::format("{} gaps filled and {} values of events set aside; seasons of ",
                                 f.gap_count, f.event_count);
  text += f.seasons.empty() ? "no" : fmt::format("{}", fmt::join(f.seasons, ", "));
  if (f.outage_count > 0)
    text = fmt::format("{} values taken for an outage; ", f.outage_count) + text;
  text += fmt::format(" steps; weights from {} hold-outs\n\n", f.hold_outs);
  Table weights({{"forecaster", Table::Align::left}, {"weight"}, {"error on hold-outs"}});
  for (std::size_t i = 0; i < std::min<std::size_t>(5, f.weights.size()); ++i)
    weights.add({f.weights[i].name, fmt::format("{:.3f}", f.weights[i].weight),
                 fmt::format("{:.4g}", f.weights[i].error)});
  text += weights.text() +
          fmt::format("({} of {} forecasters)\n\n", weights.row_count(), f.weights.size());
  Table table({{"time", Table::Align::left}, {"forecast"}, {"low"}, {"high"}});
  for (std::size_t h = 0; h < f.values.size(); ++h)
    table.add({to_text(Timestamp{f.start.ns + static_cast<std::int64_t>(h) * f.step_ns}),
               fmt::format("{:.6g}", f.values[h]), fmt::format("{:.6g}", f.low[h]),
               fmt::format("{:.6g}", f.high[h])});
  return text + table.text();
}

std::string to_json(const Forecast& f) {
  JsonList weights, rows;
  for (const Weight& w : f.weights)
    weights.add(JsonObject()
                    .add("forecaster", w.name)
                    .add("weight", w.weight, digits(6))
                    .add("error", w.error, digits(6)));
  for (std::size_t h = 0; h < f.values.size(); ++h)
    rows.add(
        JsonObject()
            .add("time", to_text(Timestamp{f.start.ns + static_cast<std::int64_t>(h) * f.step_ns}))
            .add("forecast", f.values[h], digits(9))
            .add("low", f.low[h], digits(9))
            .add("high", f.high[h], digits(9)));
  return JsonObject()
      .add("gaps", f.gap_count)
      .add("outages", f.outage_count)
      .add("event_values", f.event_count)
      .add("hold_outs", f.hold_outs)
      .add("seasons", f.seasons)
      .add("weights", weights)
      .add("forecast", rows)
      .text();
}

std::string history_json(const Series& series, std::size_t most) {
  const std::size_t count = series.values.size();
  JsonList rows;
  for (std::size_t i = count - std::min(count, most); i < count; ++i)
    rows.add(
        JsonObject()
            .add("time", Timestamp{series.start.ns + static_cast<std::int64_t>(i) * series.step_ns})
            .add("value", series.values[i], digits(9))
            .add("event", i < series.events.size() ? series.events[i] : std::string()));
  return JsonObject()
      .add("step_s", static_cast<double>(series.step_ns) * 1e-9)
      .add("values", rows)
      .text();
}

}  // namespace weft::observe::forecast
