#include "plan/replay/replay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "model/work/outcome.hpp"

namespace weft::plan::replay {
namespace {

double seconds_of(const Interval& interval) {
  return static_cast<double>(interval.until.ns - interval.from.ns) * 1e-9;
}

// By variant, then job: seconds of a step.
Result<std::vector<Line>> run_in(const model::ScenarioFile& file, const State& state,
                                 const RunOptions& options) {
  model::ScenarioFile now = file;
  now.sweep = {};
  for (model::Scenario& variant : now.variants)
    WEFT_TRY_STATUS(variant.set("faults", faults_of(state)));
  WEFT_TRY(const model::Outcome outcome, run_scenario(now, options));
  std::vector<Line> out;
  for (const model::VariantOutcome& variant : outcome.variants)
    for (const model::JobOutcome& job : variant.jobs) {
      Line& line = out.emplace_back();
      line.variant = variant.name;
      line.job = job.name;
      line.healthy_s = model::time_of(job);
    }
  return out;
}

void add_up(const Timeline& timeline, Line& line) {
  double all_s = 0, moving_s = 0, steps = 0;
  for (const Interval& interval : timeline.intervals) {
    const double d = seconds_of(interval), t = line.states_s[interval.state];
    all_s += d;
    if (std::isnan(t) || t <= 0) {
      line.still_s += d;
      continue;
    }
    moving_s += d;
    steps += d / t;
    line.worst_s = std::max(line.worst_s, t);
  }
  if (steps > 0) line.mean_s = moving_s / steps;
  line.lost_s = all_s - steps * line.healthy_s;
}

}  // namespace

Result<Replay> replay(const model::ScenarioFile& file, Timeline timeline,
                      const RunOptions& options) {
  if (timeline.states.size() > states_max)
    return fail(Errc::value, {},
                fmt::format("the records make {} different states, more than {}",
                            timeline.states.size(), states_max),
                "give a shorter time with --from and --to");
  Replay out{std::move(timeline), {}};
  WEFT_TRY(out.lines, run_in(file, {}, options));
  for (const Line& line : out.lines)
    if (std::isnan(line.healthy_s))
      return fail(Errc::infeasible, {},
                  fmt::format("job {} of variant {} does not end on the healthy fabric", line.job,
                              line.variant),
                  "see weft run");
  for (const State& state : out.timeline.states) {
    if (state.empty()) {
      for (Line& line : out.lines) line.states_s.push_back(line.healthy_s);
      continue;
    }
    WEFT_TRY(const std::vector<Line> now, run_in(file, state, options));
    for (std::size_t i = 0; i < out.lines.size(); ++i)
      out.lines[i].states_s.push_back(now[i].healthy_s);
  }
  for (Line& line : out.lines) add_up(out.timeline, line);
  return out;
}

}  // namespace weft::plan::replay
