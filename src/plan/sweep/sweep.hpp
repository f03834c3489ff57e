// A scenario over the cartesian product of some of its keys.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/progress.hpp"
#include "model/scenario/scenario.hpp"
#include "model/work/outcome.hpp"

namespace weft::plan {

inline constexpr std::size_t sweep_points_max = 100'000;

// One combination of values.
struct SweepPoint {
  std::vector<std::pair<std::string, std::string>> values;  // key path, value as written
  model::ScenarioFile scenario;
};

// `sweep: {fabric.spines: [16, 18], routing.qps: [1, 4]}`; the last key varies fastest. The values
// hold in every variant. Fails: Errc::parse on keys without a list, Errc::value on an empty list
// or more than sweep_points_max points, and on keys that no scenario has at its top level.
Result<std::vector<SweepPoint>> sweep_points(const model::ScenarioFile& file);

// Of the fabric of one variant, by a price table.
struct SweepCost {
  double price = 0, watts = 0;
};

// What one job of one variant made of one point; an error in its place where the point cannot run,
// beside it where transfers of the variant could not finish.
struct SweepRow {
  std::vector<std::string> values;  // by key
  std::string variant;
  model::JobOutcome job;
  double worst_mmr = model::no_number;
  std::string error;  // one line; empty when it ran
  std::optional<SweepCost> cost;
  // Among the rows of the same job: no other is at least as good in time, price and power and
  // better in one of them; and of those, the first with the most iterations per price.
  bool on_front = false, is_best = false;
};

struct SweepResult {
  std::vector<std::string> keys;
  std::vector<SweepRow> rows;  // in order of points, whatever thread ran them
  std::size_t failed_points = 0;
  std::string currency;  // of the costs; empty: no prices were asked for
};

using RunPoint = std::function<Result<model::Outcome>(const model::ScenarioFile&)>;

using PriceVariant = std::function<Result<SweepCost>(const model::Scenario&)>;

// Runs every point on `threads` threads (at least 1); `run` must be safe to call from several at
// once. A point that fails becomes a row with its error, and the others go on.
// So does a variant that `price`, where there is one, refuses.
SweepResult run_sweep(const std::vector<SweepPoint>& points, const RunPoint& run,
                      std::uint32_t threads, Progress& progress, const PriceVariant& price = {});

std::string to_table(const SweepResult& result);
std::string to_csv(const SweepResult& result);
std::string to_json(const SweepResult& result);

}  // namespace weft::plan
