#include "observe/straggler/what_if.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "base/json_text.hpp"

namespace weft::observe::straggler {
namespace {

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// Of an even number: the mean of the two in the middle.
double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

std::array<double, kind_count> typical(const Timeline& t, const std::vector<double>& seconds) {
  std::array<std::vector<double>, kind_count> of;
  for (std::size_t i = 0; i < seconds.size(); ++i)
    of[static_cast<std::size_t>(t.ops[i % t.ops.size()].kind)].push_back(seconds[i]);
  std::array<double, kind_count> out{};
  for (std::size_t k = 0; k < kind_count; ++k)
    if (!of[k].empty())
      out[k] = is_communication(static_cast<Kind>(k)) ? median(std::move(of[k])) : mean(of[k]);
  return out;
}

class WhatIf {
 public:
  WhatIf(const Timeline& timeline, const StepModel& model)
      : t_(timeline), model_(model), actual_(model.durations(timeline)) {
    typical_ = typical(t_, actual_);
    for (std::size_t i = 0; i < actual_.size(); ++i)
      ideal_.push_back(typical_[static_cast<std::size_t>(t_.ops[i % t_.ops.size()].kind)]);
  }

  const std::array<double, kind_count>& typical_times() const { return typical_; }
  const std::vector<double>& ideal() const { return ideal_; }
  std::vector<double> steps() const { return model_.play(t_, actual_); }
  double ideal_step() const { return mean(model_.play(t_, ideal_)); }

  // The mean step in which the chosen operations keep their times.
  using Choice = std::function<bool(std::size_t replica, const Op& op)>;
  double keeping(const Choice& keep) const {
    std::vector<double> seconds = ideal_;
    for (std::size_t r = 0; r < t_.replicas.size(); ++r)
      for (std::size_t op = 0; op < t_.ops.size(); ++op)
        if (keep(r, t_.ops[op]))
          for (std::size_t s = 0; s < t_.steps.size(); ++s)
            seconds[t_.index(s, r, op)] = actual_[t_.index(s, r, op)];
    return mean(model_.play(t_, seconds));
  }

  // By step, replica and stage: backward computes of its micro-batches.
  std::vector<double> backward(std::size_t step, std::size_t replica, std::uint32_t stage) const {
    std::vector<double> out;
    for (std::size_t op = 0; op < t_.ops.size(); ++op)
      if (t_.ops[op].stage == stage && t_.ops[op].kind == Kind::backward_compute)
        out.push_back(actual_[t_.index(step, replica, op)]);
    return out;
  }

 private:
  const Timeline& t_;
  const StepModel& model_;
  std::vector<double> actual_, ideal_;
  std::array<double, kind_count> typical_{};
};

double covariance(const std::vector<double>& a, const std::vector<double>& b) {
  const double mean_a = mean(a), mean_b = mean(b);
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - mean_a) * (b[i] - mean_b);
  return sum;
}

// Long sequences make the same micro-batches slow on every stage.
void add_spread(const Timeline& t, const WhatIf& what, Report& out) {
  std::vector<double> spreads, correlations;
  for (std::size_t s = 0; s < t.steps.size(); ++s)
    for (std::size_t r = 0; r < t.replicas.size(); ++r) {
      std::vector<double> before;
      for (std::uint32_t stage = 0; stage < t.stage_count; ++stage) {
        std::vector<double> now = what.backward(s, r, stage);
        if (now.size() < 2) continue;
        const double variance = covariance(now, now);
        if (const double m = mean(now); m > 0)
          spreads.push_back(std::sqrt(variance / static_cast<double>(now.size() - 1)) / m);
        if (before.size() == now.size())
          if (const double scale = std::sqrt(variance * covariance(before, before)); scale > 0)
            correlations.push_back(covariance(before, now) / scale);
        before = std::move(now);
      }
    }
  out.spread = median(std::move(spreads));
  out.correlation = median(std::move(correlations));
}

// The paper calls a job straggling from S = 1.1 on, and a part the cause of it from half of what it
// loses; unequal sequences are told first, because they also raise the last stage's share.
Cause cause_of(const Report& r) {
  constexpr double straggling = 1.1, most = 0.5, spread_min = 0.1, correlation_min = 0.8;
  if (r.slowdown() < straggling) return Cause::none;
  if (r.slowest_share > most) return Cause::worker;
  if (r.spread > spread_min && r.correlation > correlation_min) return Cause::sequence_lengths;
  if (r.last_stage_share > most) return Cause::last_stage;
  return Cause::many;
}

}  // namespace

std::string_view to_text(Cause cause) {
  constexpr std::array<std::string_view, 5> names{"none", "worker", "sequence_lengths",
                                                  "last_stage", "many"};
  return names[static_cast<std::size_t>(cause)];
}

std::string_view meaning(Cause cause) {
  constexpr std::array<std::string_view, 5> sentences{
      "no straggler: steps are within 10 % of the ideal",
      "a few workers are slow: look at their GPUs and hosts, and replace them",
      "micro-batches differ: balance the lengths of sequences over micro-batches and replicas",
      "the last stage has more to do than the others: give it fewer layers",
      "many small causes: no worker, stage or kind of sequence stands out"};
  return sentences[static_cast<std::size_t>(cause)];
}

Report analyse(const Timeline& t, const StepModel& model) {
  const WhatIf what(t, model);
  Report out;
  out.step_s = what.steps();
  out.actual_s = mean(out.step_s);
  out.ideal_s = what.ideal_step();
  out.typical_s = what.typical_times();
  const auto slowdown = [&](const WhatIf::Choice& keep) {
    return out.ideal_s > 0 ? what.keeping(keep) / out.ideal_s : 1;
  };
  for (std::size_t r = 0; r < t.replicas.size(); ++r)
    out.by_replica.push_back(
        slowdown([&](std::size_t replica, const Op&) { return replica == r; }));
  for (std::uint32_t p = 0; p < t.stage_count; ++p)
    out.by_stage.push_back(slowdown([&](std::size_t, const Op& op) { return op.stage == p; }));
  for (std::size_t k = 0; k < kind_count; ++k)
    if (std::ranges::find(t.ops, static_cast<Kind>(k), &Op::kind) != t.ops.end())
      out.by_kind[k] =
          slowdown([&](std::size_t, const Op& op) { return op.kind == static_cast<Kind>(k); });
  for (std::size_t r = 0; r < t.replicas.size(); ++r)
    for (std::uint32_t p = 0; p < t.stage_count; ++p)
      out.workers.push_back({r, p, std::min(out.by_replica[r], out.by_stage[p])});
  std::ranges::stable_sort(out.workers, std::greater{}, &Report::Worker::slowdown);

  out.slowest_count = (3 * out.workers.size() + 99) / 100;
  const std::span slowest(out.workers.data(), out.slowest_count);
  const auto is_slowest = [&](std::size_t replica, const Op& op) {
    return std::ranges::any_of(slowest, [&](const Report::Worker& w) {
      return w.replica == replica && w.stage == op.stage;
    });
  };
  const double lost = out.actual_s - out.ideal_s;
  const auto share = [&](const WhatIf::Choice& keep) {
    return lost > 0 ? (out.actual_s - what.keeping(keep)) / lost : 0;
  };
  out.slowest_share = share([&](std::size_t r, const Op& op) { return !is_slowest(r, op); });
  out.last_stage_share =
      share([&](std::size_t, const Op& op) { return op.stage + 1 != t.stage_count; });
  add_spread(t, what, out);
  out.cause = cause_of(out);
  return out;
}

std::string ideal_trace(const Timeline& t, const StepModel& model) {
  std::vector<StepModel::Span> spans;
  model.play(t, WhatIf(t, model).ideal(), &spans);
  double first = t.start_s.front();
  for (std::size_t i = 0; i < t.replicas.size() * t.ops.size(); ++i)
    first = std::min(first, t.start_s[i]);
  JsonList events;
  const auto add = [&](std::size_t i, std::string_view what, std::size_t process,
                       StepModel::Span s) {
    const Op& op = t.ops[i % t.ops.size()];
    const std::size_t replica = i / t.ops.size();
    events.add(JsonObject()
                   .add("name", to_text(op.kind))
                   .add("cat", what)
                   .add("ph", "X")
                   .add("pid", 2 * replica + process)
                   .add("tid", op.stage * 2 + (is_communication(op.kind) ? 1 : 0))
                   .add("ts", s.start_s * 1e6)
                   .add("dur", (s.end_s - s.start_s) * 1e6));
  };
  for (std::size_t r = 0; r < t.replicas.size(); ++r)
    for (const auto& [process, name] : {std::pair{0, "recorded"}, {1, "ideal"}})
      events.add(JsonObject()
                     .add("name", "process_name")
                     .add("ph", "M")
                     .add("pid", 2 * r + static_cast<std::size_t>(process))
                     .add("args", JsonObject().add(
                                      "name", fmt::format("replica {}, {}", t.replicas[r], name))));
  for (std::size_t i = 0; i < t.replicas.size() * t.ops.size(); ++i) {
    add(i, "recorded", 0, {t.start_s[i] - first, t.end_s[i] - first});
    add(i, "ideal", 1, spans[i]);
  }
  return JsonObject().add("traceEvents", events).text();
}

}  // namespace weft::observe::straggler
