// How many replicas an SLO needs, and how far a service carries as its requests come faster.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/scenario/scenario.hpp"
#include "plan/infer/infer.hpp"

namespace weft::plan {

// As many replicas and what came of them. `decode`: 0 where replicas do both.
struct SizingTrial {
  std::uint32_t prefill = 0, decode = 0;
  bool fits = true;  // the fabric has the GPUs
  bool holds = false;
  InferReport report;  // where it fits
  std::string why;     // where it does not
  std::uint32_t replicas() const { return prefill + decode; }
};

struct Sizing {
  std::vector<SizingTrial> trials;  // in the order of the search
  // The fewest replicas that keep all objectives, an index of `trials`. None: the fabric, or the
  // limit of 4,096 replicas, ends before.
  std::optional<std::size_t> answer;
};

inline constexpr std::uint32_t sizing_replicas_max = 4096;

// One trial of the search below.
using TryReplicas = std::function<Result<SizingTrial>(std::uint32_t prefill, std::uint32_t decode)>;

// The fewest replicas for which `try_replicas` holds; `split`: the fewest of both kinds together,
// and of these the fewest that prefill. Takes for granted that more replicas of a kind never make
// it worse; a logarithm of trials where replicas do both, as many as the answer when split.
Result<Sizing> fewest_replicas(bool split, const TryReplicas& try_replicas);

// For the objectives of the scenario, whatever `replicas` says but for whether it is split.
// Fails: as infer(); Errc::parse without `slo`.
Result<Sizing> size_replicas(const model::Scenario& scenario);

// The same requests, arriving so much faster or slower.
struct CurvePoint {
  double rate_per_s = 0;  // requests, in the mean
  double goodput_per_s = 0;
  double kept = 0;  // share of the requests
  bool holds = false;
  InferReport report;
};

struct GoodputCurve {
  std::string name;                // of the variant
  std::vector<CurvePoint> points;  // by rate
  // The highest rate found that keeps all objectives, and the lowest found that does not: 1 %
  // apart. 0 where the lowest rate tried keeps them not; none where the highest keeps them.
  double capacity_per_s = 0;
  std::optional<double> over_per_s;
};

// Rates up to where less than half of the requests keep their objectives, or 256 times the
// scenario's. Fails: as size_replicas(); Errc::value where all requests come at once.
Result<GoodputCurve> goodput_curve(const model::Scenario& scenario);

std::string to_table(const Sizing& sizing);
std::string to_json(const Sizing& sizing);
std::string to_table(const GoodputCurve& curve);
std::string to_json(const GoodputCurve& curve);
// Goodput against the rate asked for, a line for each variant.
std::string to_svg(const std::vector<GoodputCurve>& curves);

}  // namespace weft::plan
