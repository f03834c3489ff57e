#include "plan/infer/sizing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/progress.hpp"
#include "plan/infer/inference_config.hpp"

namespace weft::plan {
namespace {

using namespace workload;

// Trials by their replicas, each made once.
class Trials {
 public:
  Trials(const TryReplicas& make, Sizing& out) : make_(make), out_(out) {}

  // Of the two that end a search upwards: the objectives hold, or the fabric is full.
  Result<bool> enough(std::uint32_t prefill, std::uint32_t decode) {
    WEFT_TRY(const std::size_t i, index_of(prefill, decode));
    return out_.trials[i].holds || !out_.trials[i].fits;
  }
  // An answer, if that is why it was enough. It was tried.
  bool take(std::uint32_t prefill, std::uint32_t decode) {
    const std::size_t i = known_.at({prefill, decode});
    if (out_.trials[i].holds) out_.answer = i;
    return out_.trials[i].holds;
  }

 private:
  Result<std::size_t> index_of(std::uint32_t prefill, std::uint32_t decode) {
    const auto [known, is_new] = known_.try_emplace({prefill, decode}, out_.trials.size());
    if (is_new) {
      WEFT_TRY(SizingTrial trial, make_(prefill, decode));
      out_.trials.push_back(std::move(trial));
    }
    return known->second;
  }

  const TryReplicas& make_;
  Sizing& out_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> known_;
};

// The least n of (under, known] that is enough; `known` is, `under` is not.
template <class Enough>
Result<std::uint32_t> bisect(std::uint32_t under, std::uint32_t known, const Enough& enough) {
  while (known - under > 1) {
    const std::uint32_t middle = under + (known - under) / 2;
    WEFT_TRY(const bool is_enough, enough(middle));
    (is_enough ? known : under) = middle;
  }
  return known;
}

// The first power of two that is enough, at most `most`; none: `most` is not.
template <class Enough>
Result<std::optional<std::uint32_t>> doubled(std::uint32_t most, const Enough& enough) {
  for (std::uint32_t n = 1; n <= most; n *= 2) {
    WEFT_TRY(const bool is_enough, enough(n));
    if (is_enough) return n;
  }
  return std::nullopt;
}

Status size_whole(Trials& trials) {
  const auto enough = [&](std::uint32_t n) { return trials.enough(n, 0); };
  WEFT_TRY(const std::optional<std::uint32_t> known, doubled(sizing_replicas_max, enough));
  if (!known) return {};
  WEFT_TRY(const std::uint32_t least, bisect(*known / 2, *known, enough));
  trials.take(least, 0);
  return {};
}

// For every number that prefill, the fewest that decode and are less in all than the best so far.
Status size_split(Trials& trials) {
  const auto in_pairs = [&](std::uint32_t n) { return trials.enough(n, n); };
  WEFT_TRY(const std::optional<std::uint32_t> pairs, doubled(sizing_replicas_max / 2, in_pairs));
  // Nothing from here on is wanted; as many as the pairs still are, with fewer that prefill.
  std::uint32_t total = sizing_replicas_max + 1;
  if (pairs) total = 2 * *pairs + (trials.take(*pairs, *pairs) ? 1 : 0);
  for (std::uint32_t prefill = 1; prefill + 1 < total; ++prefill) {
    const auto enough = [&](std::uint32_t n) { return trials.enough(prefill, n); };
    const std::uint32_t most = total - prefill - 1;
    WEFT_TRY(const bool is_enough, enough(most));
    if (!is_enough) continue;
    WEFT_TRY(const std::uint32_t decode, bisect(0, most, enough));
    if (trials.take(prefill, decode)) total = prefill + decode;
  }
  return {};
}

// The section with objectives, as --size and --curve want it.
Result<InferenceConfig> read_objective_section(const model::Scenario& scenario) {
  WEFT_TRY(InferenceConfig config, read_inference(scenario));
  if (config.objectives.empty())
    return fail(Errc::parse, scenario.section("inference").where,
                "\"slo\" is missing: there is no latency target to size for",
                "add e.g. slo: {ttft: 500 ms, tpot: 50 ms, percentile: 99}");
  return config;
}

class Curve {
 public:
  Curve(const model::Scenario& scenario, InferenceConfig config, double rate)
      : scenario_(scenario),
        config_(std::move(config)),
        recorded_(config_.trace.requests),
        rate_(rate) {}

  // Of the scenario's rate.
  Result<const CurvePoint*> at(double factor) {
    for (std::size_t i = 0; i < recorded_.size(); ++i)
      config_.trace.requests[i].arrival = {
          std::llround(static_cast<double>(recorded_[i].arrival.ps) / factor)};
    WEFT_TRY(InferReport report, infer(scenario_, config_));
    CurvePoint point{.rate_per_s = rate_ * factor, .goodput_per_s = *report.goodput};
    point.kept = report.kept();
    point.holds = report.holds();
    point.report = std::move(report);
    return &points_.insert_or_assign(factor, std::move(point)).first->second;
  }

  GoodputCurve take(double capacity, std::optional<double> over) {
    GoodputCurve out{.name = scenario_.name};
    for (auto& [factor, point] : points_) out.points.push_back(std::move(point));
    out.capacity_per_s = rate_ * capacity;
    if (over) out.over_per_s = rate_ * *over;
    return out;
  }

 private:
  const model::Scenario& scenario_;
  InferenceConfig config_;
  std::vector<InferenceRequest> recorded_;
  double rate_;
  std::map<double, CurvePoint> points_;
};

constexpr double factor_max = 256, capacity_step = 1.01;
constexpr int curve_points = 12;

}  // namespace

Result<Sizing> fewest_replicas(bool split, const TryReplicas& try_replicas) {
  Sizing out;
  Trials trials(try_replicas, out);
  WEFT_TRY_STATUS(split ? size_split(trials) : size_whole(trials));
  return out;
}

Result<Sizing> size_replicas(const model::Scenario& scenario) {
  WEFT_TRY(InferenceConfig config, read_objective_section(scenario));
  const bool split = config.cluster.decode_replicas > 0;
  Progress progress("sizes tried", 0);
  std::uint32_t made = 0;
  return fewest_replicas(split,
                         [&](std::uint32_t prefill, std::uint32_t decode) -> Result<SizingTrial> {
                           SizingTrial out{.prefill = prefill, .decode = decode};
                           config.cluster.replicas = prefill;
                           config.cluster.decode_replicas = decode;
                           auto report = infer(scenario, config);
                           progress.update(++made);
                           // One that fails by itself is an error of the scenario; further ones
                           // lack GPUs.
                           if (!report && (made == 1 || report.error().code != Errc::infeasible))
                             return std::unexpected(report.error());
                           out.fits = report.has_value();
                           if (!report) {
                             out.why = report.error().text();
                             return out;
                           }
                           out.holds = report->holds();
                           out.report = *std::move(report);
                           return out;
                         });
}

Result<GoodputCurve> goodput_curve(const model::Scenario& scenario) {
  WEFT_TRY(InferenceConfig config, read_objective_section(scenario));
  config.trace.measured.clear();  // of other arrivals
  const std::vector<InferenceRequest>& requests = config.trace.requests;
  const double span = requests.back().arrival.seconds();
  if (span <= 0)
    return fail(Errc::value, scenario.section("inference").where,
                "all requests come at once: there is no rate to change", "give a trace that lasts");
  const double rate = static_cast<double>(requests.size() - 1) / span;
  Curve curve(scenario, std::move(config), rate);
  Progress progress("rates tried", 0);
  double made = 0;
  const auto at = [&](double factor) {
    progress.update(++made);
    return curve.at(factor);
  };
  // The end of the drawing: by doubling from the rate given, down too where that is too much.
  double top = 1;
  for (bool reached = false; !reached;) {
    WEFT_TRY(const CurvePoint* point, at(top));
    reached = point->kept < 0.5 || top >= factor_max;
    if (!reached) top *= 2;
  }
  double under = 0;
  std::optional<double> over;
  for (int i = 1; i <= curve_points; ++i) {
    const double factor = top * i / curve_points;
    WEFT_TRY(const CurvePoint* point, at(factor));
    if (point->holds && !over) under = factor;
    if (!point->holds && !over) over = factor;
  }
  // Below the lowest point too, down to a 64th of it.
  for (int i = 0; i < 6 && under == 0; ++i) {
    const double half = *over / 2;
    WEFT_TRY(const CurvePoint* point, at(half));
    (point->holds ? under : *over) = half;
  }
  while (over && under > 0 && *over / under > capacity_step) {
    const double middle = std::sqrt(*over * under);
    WEFT_TRY(const CurvePoint* point, at(middle));
    (point->holds ? under : *over) = middle;
  }
  return curve.take(under, over);
}

}  // namespace weft::plan
