#include "app/rehearse/seeds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "base/json_text.hpp"
#include "base/plural.hpp"
#include "base/text.hpp"

namespace weft::app {
namespace {

// Seeds of one rehearsal or of both, by index: first all of the rehearsal, then of the baseline.
using Values = std::map<std::string, std::map<std::size_t, double>>;  // by figure, by seed

Values values_of(const std::vector<RehearseReport>& reports, std::vector<std::string>* order) {
  Values out;
  for (std::size_t i = 0; i < reports.size(); ++i) {
    std::size_t at = 0;
    for (RehearseFigure& figure : figures(reports[i])) {
      out[figure.name][i] = figure.value;
      // What a seed has for the first time stands behind what it has before that.
      const auto known = std::ranges::find(*order, figure.name);
      if (known != order->end()) {
        at = static_cast<std::size_t>(known - order->begin()) + 1;
        continue;
      }
      order->insert(order->begin() + static_cast<std::ptrdiff_t>(at++), std::move(figure.name));
    }
  }
  return out;
}

Estimate estimate_of(const std::map<std::size_t, double>& by_seed) {
  std::vector<double> samples;
  for (const auto& [seed, value] : by_seed) samples.push_back(value);
  return estimate(samples);
}

}  // namespace

// From: Cornish and Fisher's expansion (Abramowitz and Stegun, 26.7.5) where it is exact enough.
double student_975(std::size_t freedom) {
  constexpr std::array<double, 10> few{12.7062, 4.3027, 3.1824, 2.7764, 2.5706,
                                       2.4469,  2.3646, 2.3060, 2.2622, 2.2281};
  if (freedom <= few.size()) return few[freedom - 1];
  constexpr double z = 1.959964;
  const double n = static_cast<double>(freedom), z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z;
  return z + (z3 + z) / (4 * n) + (5 * z5 + 16 * z3 + 3 * z) / (96 * n * n) +
         (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * n * n * n);
}

Estimate estimate(std::span<const double> samples) {
  Estimate out{.count = samples.size()};
  if (samples.empty()) return out;
  const auto n = static_cast<double>(samples.size());
  for (const double x : samples) out.mean += x / n;
  out.least = std::ranges::min(samples);
  out.most = std::ranges::max(samples);
  if (samples.size() < 2) return out;
  double squares = 0;
  for (const double x : samples) squares += (x - out.mean) * (x - out.mean);
  out.half = student_975(samples.size() - 1) * std::sqrt(squares / (n - 1) / n);
  return out;
}

Result<RehearseSet> rehearse_seeds(const model::Fabric& fabric, const RehearseOptions& options,
                                   const std::optional<RehearseOptions>& baseline,
                                   const RehearseSeeds& seeds, const RehearseProgress& progress) {
  const std::size_t count = seeds.seeds * (baseline ? std::size_t{2} : 1);
  std::vector<std::optional<Result<RehearseReport>>> results(count);
  std::vector<double> days(count);
  double done = 0;
  std::mutex mutex;  // of `days`, `done` and `progress`
  std::atomic<std::size_t> next{0};
  std::atomic<bool> has_failed{false};
  const auto work = [&] {
    for (std::size_t i = next++; i < count && !has_failed; i = next++) {
      RehearseOptions own = i < seeds.seeds ? options : *baseline;
      own.seed = options.seed + i % seeds.seeds;
      results[i] = rehearse(fabric, own, [&](double day) {
        const std::lock_guard lock(mutex);
        done += day - std::exchange(days[i], day);
        progress(done);
      });
      if (!*results[i]) has_failed = true;
    }
  };
  {
    std::vector<std::jthread> pool;
    const std::size_t threads = std::min<std::size_t>(std::max(seeds.threads, 1U), count);
    for (std::size_t t = 1; t < threads; ++t) pool.emplace_back(work);
    work();
  }
  RehearseSet out;
  for (const auto& result : results)
    if (result && !*result) return std::unexpected(result->error());
  for (std::size_t i = 0; i < count; ++i)
    (i < seeds.seeds ? out.reports : out.baseline).push_back(**std::move(results[i]));
  return out;
}

std::vector<FigureEstimate> estimates(const RehearseSet& set) {
  std::vector<std::string> order;
  const Values values = values_of(set.reports, &order);
  const Values before = values_of(set.baseline, &order);
  std::vector<FigureEstimate> out;
  for (const std::string& name : order) {
    FigureEstimate row{.name = name};
    const auto own = values.find(name), other = before.find(name);
    if (own != values.end()) row.value = estimate_of(own->second);
    if (!set.baseline.empty()) {
      std::map<std::size_t, double> differences;
      if (own != values.end() && other != before.end())
        for (const auto& [seed, value] : own->second)
          if (const auto pair = other->second.find(seed); pair != other->second.end())
            differences[seed] = value - pair->second;
      row.baseline = other == before.end() ? Estimate{} : estimate_of(other->second);
      row.difference = estimate_of(differences);
    }
    out.push_back(std::move(row));
  }
  return out;
}

namespace {

JsonObject estimate_object(const Estimate& e) {
  JsonObject out;
  out.add("count", e.count);
  if (e.count == 0) return out;
  out.add("mean", e.mean, digits(9))
      .add("least", e.least, digits(9))
      .add("most", e.most, digits(9));
  if (e.half) out.add("low", e.mean - *e.half, digits(9)).add("high", e.mean + *e.half, digits(9));
  return out;
}

JsonList report_list(const std::vector<RehearseReport>& reports) {
  JsonList out;
  for (const RehearseReport& report : reports) out.add(JsonText{to_json(report)});
  return out;
}

std::string shown(const Estimate& e, double value) {
  return e.count == 0 ? "-" : fmt::format("{:.5g}", value);
}
std::string interval(const Estimate& e) {
  if (!e.half) return "-";
  return fmt::format("{:.5g} to {:.5g}", e.mean - *e.half, e.mean + *e.half);
}

bool is_zero(const Estimate& e) { return e.least == 0 && e.most == 0; }

// Those that say something to people: problems that did not occur are left out.
std::vector<FigureEstimate> rows_of(const RehearseSet& set) {
  std::vector<FigureEstimate> out = estimates(set);
  std::erase_if(out, [](const FigureEstimate& row) {
    const bool is_part = row.name.starts_with("bad_minutes.") || row.name.starts_with("faults.");
    return is_part && is_zero(row.value) && (!row.baseline || is_zero(*row.baseline));
  });
  return out;
}

Table table_of(const std::vector<FigureEstimate>& rows) {
  using enum Table::Align;
  Table table({{"figure", left}, {"seeds"}, {"mean"}, {"95 % interval"}, {"least"}, {"most"}});
  for (const FigureEstimate& row : rows)
    table.add({row.name, fmt::to_string(row.value.count), shown(row.value, row.value.mean),
               interval(row.value), shown(row.value, row.value.least),
               shown(row.value, row.value.most)});
  return table;
}

Table compared(const std::vector<FigureEstimate>& rows) {
  using enum Table::Align;
  Table table({{"figure", left},
               {"seeds"},
               {"mean"},
               {"baseline"},
               {"difference"},
               {"95 % interval"},
               {"significant", left}});
  for (const FigureEstimate& row : rows)
    table.add({row.name, fmt::to_string(row.difference->count), shown(row.value, row.value.mean),
               shown(*row.baseline, row.baseline->mean),
               shown(*row.difference, row.difference->mean), interval(*row.difference),
               row.difference->is_significant() ? "yes" : ""});
  return table;
}

double bad_minutes_of(const RehearseReport& report) {
  std::uint64_t out = 0;
  for (const auto& [name, problem] : report.problems)
    out += problem.bad_inside + problem.bad_across;
  return static_cast<double>(out);
}
double visits_of(const RehearseReport& report) { return static_cast<double>(report.visits); }
double cable_hours_of(const RehearseReport& report) { return report.drained_cable_hours; }

template <class Cost>
FigureEstimate cost_estimate(std::string name, const RehearseSet& set, const Cost& cost) {
  std::vector<double> b, a, difference;
  for (std::size_t i = 0; i < set.reports.size(); ++i) {
    b.push_back(cost(set.reports[i]));
    if (set.baseline.empty()) continue;
    a.push_back(cost(set.baseline[i]));
    difference.push_back(b.back() - a.back());
  }
  FigureEstimate out{.name = std::move(name), .value = estimate(b)};
  if (!set.baseline.empty()) out.baseline = estimate(a), out.difference = estimate(difference);
  return out;
}

// "8.7 % fewer bad minutes", "3.1 times as many visits"
std::string change_text(const FigureEstimate& row) {
  const double of = row.baseline->mean, now = row.value.mean;
  if (of > 0 && now > 2 * of) return fmt::format("{:.1f} times as many {}", now / of, row.name);
  const double by = std::abs(row.difference->mean);
  const std::string much =
      of > 0 ? fmt::format("{:.1f} %", 100 * by / of) : fmt::format("{:.4g}", by);
  return fmt::format("{} {} {}", much, now < of ? "fewer" : "more", row.name);
}

std::string listed(const std::vector<std::string>& parts) {
  std::string out;
  for (std::size_t i = 0; i < parts.size(); ++i)
    out += (i == 0 ? "" : i + 1 == parts.size() ? " and " : ", ") + parts[i];
  return out;
}

}  // namespace

Result<CostWeights> read_cost_weights(const std::string& text) {
  CostWeights out;
  for (const std::string_view part : split(text, ',')) {
    const std::size_t equals = part.find('=');
    const std::string_view name = trim(part.substr(0, equals));
    double* const weight = name == "bad_minute"   ? &out.bad_minute
                           : name == "visit"      ? &out.visit
                           : name == "cable_hour" ? &out.cable_hour
                                                  : nullptr;
    if (weight == nullptr || equals == std::string_view::npos)
      return fail(Errc::unknown, {"--cost", 0, 0},
                  fmt::format("{} is not a valid cost", quote(part)),
                  "write e.g. bad_minute=1,visit=20,cable_hour=0.1");
    WEFT_TRY(*weight, parse_number({part.substr(equals + 1), {"--cost", 0, 0}}));
    if (*weight < 0)
      return fail(Errc::value, {"--cost", 0, 0}, fmt::format("{} is below 0", quote(part)),
                  "a cost is 0 or more");
  }
  return out;
}

std::vector<FigureEstimate> cost_estimates(const RehearseSet& set, const CostWeights& weights) {
  std::vector<FigureEstimate> out;
  out.push_back(cost_estimate("bad minutes", set, bad_minutes_of));
  out.push_back(cost_estimate("visits", set, visits_of));
  out.push_back(cost_estimate("drained cable-hours", set, cable_hours_of));
  if (weights.is_given())
    out.push_back(cost_estimate("cost", set, [&](const RehearseReport& report) {
      return weights.bad_minute * bad_minutes_of(report) + weights.visit * visits_of(report) +
             weights.cable_hour * cable_hours_of(report);
    }));
  return out;
}

std::string decision_text(const RehearseSet& set, const CostWeights& weights, const std::string& a,
                          const std::string& b) {
  using enum Table::Align;
  const std::vector<FigureEstimate> rows = cost_estimates(set, weights);
  Table table({{"cost", left}, {a}, {b}, {"difference"}, {"95 % interval"}, {"", left}});
  std::vector<std::string> better, worse;
  for (const FigureEstimate& row : rows) {
    const bool sure = row.difference->is_significant();
    table.add({row.name, fmt::format("{:.5g}", row.baseline->mean),
               fmt::format("{:.5g}", row.value.mean), fmt::format("{:+.4g}", row.difference->mean),
               interval(*row.difference), sure ? "sure" : "may be chance"});
    if (!sure || row.name == "cost") continue;
    (row.difference->mean < 0 ? better : worse).push_back(change_text(row));
  }
  std::string out = table.text() + "\n";
  const std::string parts = better.empty() && worse.empty() ? "nothing differs significantly"
                            : worse.empty()                 ? listed(better)
                            : better.empty()                ? listed(worse)
                                             : listed(better) + ", for " + listed(worse);
  const auto choose = [&](const std::string& name, const std::string& why) {
    return fmt::format("Choose {}: {}.\n", name, why);
  };
  if (weights.is_given()) {
    const FigureEstimate& cost = rows.back();
    if (!cost.difference->is_significant())
      return out + fmt::format(
                       "Either: the difference in cost is not significant ({} has {}). Try more "
                       "--seeds.\n",
                       b, parts);
    return out + choose(cost.difference->mean < 0 ? b : a,
                        fmt::format("it costs {:.1f} % less ({} has {})",
                                    100 * std::abs(cost.difference->mean) /
                                        std::max(cost.baseline->mean, cost.value.mean),
                                    b, parts));
  }
  if (better.empty() && worse.empty())
    return out + fmt::format("Either: {} in {}. Try more --seeds.\n", parts,
                             counted(set.reports.size(), "seed"));
  if (worse.empty()) return out + choose(b, parts);
  if (better.empty()) return out + choose(a, fmt::format("{} has {}", b, parts));
  return out + fmt::format("It depends: {} has {}. With --cost they can be added.\n", b, parts);
}

std::string to_json(const RehearseSet& set) {
  const RehearseReport& first = set.reports.front();
  JsonObject figures;
  for (const FigureEstimate& row : estimates(set)) {
    JsonObject figure;
    figure.add("value", estimate_object(row.value));
    if (row.difference)
      figure.add("baseline", estimate_object(*row.baseline))
          .add("difference", estimate_object(*row.difference));
    figures.add(row.name, figure);
  }
  return JsonObject()
             .add("span_s", 86400.0 * first.days)
             .add("seed", first.seed)
             .add("seeds", set.reports.size())
             .add("figures", figures)
             .add("rehearsals", report_list(set.reports))
             .add_if("baseline", report_list(set.baseline))
             .text() +
         "\n";
}

std::string to_table(const RehearseSet& set) {
  const RehearseReport& first = set.reports.front();
  const std::vector<FigureEstimate> rows = rows_of(set);
  std::string out = fmt::format("{} days, seeds {} to {}", first.days, first.seed,
                                first.seed + set.reports.size() - 1);
  if (set.baseline.empty()) return out + "\n\n" + table_of(rows).text();
  out += ", each against the baseline with the same faults\n\n" + compared(rows).text();
  return out;
}

}  // namespace weft::app
