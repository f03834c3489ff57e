#include "plan/life/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "plan/life/closed_form.hpp"
#include "plan/life/simulate.hpp"

namespace weft::plan::life {
namespace {

constexpr double normal_95 = 1.959964;

Estimate estimate(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  double sum = 0, squares = 0;
  for (const double value : values) sum += value;
  for (const double value : values) squares += (value - sum / n) * (value - sum / n);
  return {sum / n, normal_95 * std::sqrt(squares / (n - 1) / n)};
}

// The closed form, corrected by the exposure of some runs, whose noise is small.
Result<double> calibrate(const Life& life, double every_s, const ReportOptions& options) {
  double scale = calibration(life, *life.calibrate).value_or(1);
  Life few = life;
  few.runs = std::min(few.runs, 200u);
  double expected = 0;
  for (int i = 0; i < 20; ++i) {
    if (i > 0 && std::abs(expected - *life.calibrate) < 1e-5 * *life.calibrate) break;
    if (i > 0) scale *= std::min(2.0, *life.calibrate / expected);
    expected = 0;
    for (const RunResult& run : simulate(few, {scale, every_s, options.seed, options.threads}))
      expected += expected_interruptions(life, scale, run) / few.runs;
  }
  if (std::abs(expected - *life.calibrate) < 1e-3 * *life.calibrate) return scale;
  return fail(Errc::infeasible, life.calibrate_at,
              fmt::format("a run has {:.1f} interruptions and not {:g}: the job waits for hosts "
                          "or has fewer of them",
                          expected, *life.calibrate),
              "more \"spares\", faster \"repair\", or no \"calibrate\"");
}

double interval(const Life& life, double scale) {
  return life.every_s
             ? *life.every_s
             : best_interval(stops_of(life, scale), life.stall_s, life.days * seconds_per_day);
}

std::vector<double> goodputs(const std::vector<RunResult>& runs) {
  std::vector<double> out;
  for (const RunResult& run : runs) out.push_back(run.goodput());
  return out;
}

void add_means(const std::vector<RunResult>& runs, LifeReport& report) {
  const auto n = static_cast<double>(runs.size());
  const double seconds = report.life.days * seconds_per_day;
  for (std::size_t p = 0; p < part_count; ++p) {
    double sum = 0;
    for (const RunResult& run : runs) sum += static_cast<double>(run.parts[p]);
    const double share = sum / n / ticks_per_s / seconds;
    report.parts.push_back(
        {std::string(to_text(static_cast<Part>(p))), share, share * seconds / 3600});
  }
  for (std::size_t g = 0; g < group_count; ++g) {
    GroupCost group{.group = std::string(to_text(static_cast<Group>(g)))};
    for (const RunResult& run : runs) {
      group.interruptions += run.interruptions[g] / n;
      group.cost += static_cast<double>(run.cost[g]) / n / ticks_per_s / seconds;
    }
    report.groups.push_back(std::move(group));
  }
  std::vector<double> counts;
  for (const RunResult& run : runs) {
    counts.push_back(run.interruption_count());
    report.waits += run.waits / n;
    report.swaps += run.swaps / n;
    report.retired += run.retired / n;
  }
  report.interruptions = estimate(counts);
}

void add_closed_form(LifeReport& report) {
  const double stall = report.life.stall_s, most = report.life.days * seconds_per_day;
  const Stops stops = stops_of(report.life, report.scale);
  report.closed = goodput(stops, report.every_s, stall);
  report.first_order = goodput_first_order(stops, report.every_s, stall);
  report.best_s = best_interval(stops, stall, most);
  report.best = goodput(stops, report.best_s, stall);
  report.young_s = young_interval(stops, stall, most);
}

void add_surface(const SurfaceAsked& asked, LifeReport& report) {
  report.surface_goodput = asked.goodput;
  std::vector<std::optional<double>> intervals{std::nullopt};
  intervals.insert(intervals.end(), asked.every_s.begin(), asked.every_s.end());
  for (const double stall : asked.stalls_s)
    for (const auto& every : intervals)
      report.surface.push_back(
          {stall, every, longest_stop(report.life, asked.goodput, stall, every)});
}

}  // namespace

Result<LifeReport> make_report(const LifePlan& plan, const ReportOptions& options) {
  LifeReport report{.life = plan.base};
  report.every_s = interval(plan.base, 1);
  if (plan.base.calibrate)
    for (int i = 0; i < (plan.base.every_s ? 1 : 2); ++i) {  // the best interval follows the rates
      WEFT_TRY(report.scale, calibrate(plan.base, report.every_s, options));
      report.every_s = interval(plan.base, report.scale);
    }
  const auto run = [&](const Life& life) {
    return simulate(life,
                    {report.scale, interval(life, report.scale), options.seed, options.threads});
  };
  const std::vector<RunResult> runs = run(plan.base);
  const std::vector<double> base = goodputs(runs);
  report.goodput = estimate(base);
  std::vector<double> sorted = base;
  std::ranges::sort(sorted);
  const std::size_t outside = (sorted.size() - 1) / 20;  // at each end
  report.low = sorted[outside];
  report.high = sorted[sorted.size() - 1 - outside];
  add_means(runs, report);
  add_closed_form(report);
  for (const WhatIf& what_if : plan.what_ifs) {
    const std::vector<double> other = goodputs(run(what_if.life));
    std::vector<double> change(base.size());
    std::ranges::transform(other, base, change.begin(), std::minus{});
    report.what_ifs.push_back({what_if.name, estimate(other), estimate(change)});
  }
  if (plan.surface) add_surface(*plan.surface, report);
  return report;
}

}  // namespace weft::plan::life
