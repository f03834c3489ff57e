// Rehearsals of many seeds: the mean and the 95 % interval of every figure, alone or against a
// baseline that had the same faults and the same luck, seed by seed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "app/rehearse/rehearse.hpp"
#include "base/result.hpp"
#include "model/fabric/fabric.hpp"

namespace weft::app {

// Mean of independent samples. The interval is Student's: it holds the true mean in 95 % of cases
// where the samples are about normal. With fewer than two samples `half` is none.
struct Estimate {
  std::size_t count = 0;
  double mean = 0, least = 0, most = 0;
  std::optional<double> half;  // of the width of the interval

  // Whether the interval excludes 0.
  bool is_significant() const { return half && (mean > *half || mean < -*half); }
};
Estimate estimate(std::span<const double> samples);
// The 97.5 % quantile of Student's distribution with `freedom` > 0 degrees of freedom. Exact to
// 0.001.
double student_975(std::size_t freedom);

struct RehearseSeeds {
  std::uint32_t seeds = 1;    // options.seed and those after it
  std::uint32_t threads = 1;  // no result depends on them
};
struct RehearseSet {
  std::vector<RehearseReport> reports;   // by seed
  std::vector<RehearseReport> baseline;  // the same; empty: none was asked for
};
// `baseline`: rehearsed with each seed, too. `progress` is told the days of all rehearsals
// together, by one thread at a time. Fails: as rehearse(), of the first seed that does.
Result<RehearseSet> rehearse_seeds(const model::Fabric& fabric, const RehearseOptions& options,
                                   const std::optional<RehearseOptions>& baseline,
                                   const RehearseSeeds& seeds, const RehearseProgress& progress);

struct FigureEstimate {
  std::string name;
  Estimate value;
  std::optional<Estimate> baseline, difference;  // value - baseline, paired by seed
};
// In the order of the reports. Of a figure that some seeds do not have, those that have it count;
// of a difference, those that have both.
std::vector<FigureEstimate> estimates(const RehearseSet& set);

// What a policy costs: bad rack-minutes, visits of people, and capacity that it takes out itself.
// Weights are the user's own, in any currency; 0: nothing.
struct CostWeights {
  double bad_minute = 0, visit = 0, cable_hour = 0;
  bool is_given() const { return bad_minute > 0 || visit > 0 || cable_hour > 0; }
};
// "bad_minute=1,visit=20,cable_hour=0.1". Fails: Errc::parse, Errc::unknown.
Result<CostWeights> read_cost_weights(const std::string& text);

// Of the three costs, and of their weighted sum where there are weights.
std::vector<FigureEstimate> cost_estimates(const RehearseSet& set, const CostWeights& weights);
// The costs of `b` against those of `a` (the baseline) as a table, and in a sentence which of them
// to choose: by the sum where there are weights, else only where nothing gets worse.
std::string decision_text(const RehearseSet& set, const CostWeights& weights, const std::string& a,
                          const std::string& b);

std::string to_json(const RehearseSet& set);
std::string to_table(const RehearseSet& set);

}  // namespace weft::app
