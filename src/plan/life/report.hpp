// The weeks of a job: what is made of them, why, and what would change them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plan/life/life.hpp"

namespace weft::plan::life {

// A mean over the runs and the half width of its 95 % interval.
struct Estimate {
  double mean = 0, within = 0;
};

struct PartShare {
  std::string part;
  double share = 0, hours = 0;  // of the wall time; in one run
};
struct GroupCost {
  std::string group;
  double interruptions = 0;  // in one run
  double cost = 0;           // lost work and stops, as a share of the wall time
};
struct WhatIfResult {
  std::string name;
  Estimate goodput;
  Estimate change;  // against the base, run by run
};
struct SurfacePoint {
  double stall_s = 0;
  std::optional<double> every_s;         // none: the best interval
  std::optional<double> longest_stop_s;  // none: out of reach
};

struct LifeReport {
  Life life;
  double scale = 1;  // on the rates, by `calibrate`
  double every_s = 0;
  Estimate goodput;
  double low = 0, high = 0;  // 5 and 95 % of the runs lie below
  Estimate interruptions;
  std::vector<PartShare> parts;
  std::vector<GroupCost> groups;
  double waits = 0, swaps = 0, retired = 0;  // in one run
  double closed = 0, first_order = 0;        // goodput at that interval
  double best_s = 0, best = 0;               // interval of the best closed form, and its goodput
  double young_s = 0;
  std::vector<WhatIfResult> what_ifs;
  std::optional<double> surface_goodput;
  std::vector<SurfacePoint> surface;
};

struct ReportOptions {
  std::uint64_t seed = 1;
  std::uint32_t threads = 1;
};

// Fails: Errc::infeasible where a job that waits for hosts cannot be interrupted as often as
// `calibrate` says.
Result<LifeReport> make_report(const LifePlan& plan, const ReportOptions& options);

std::string to_table(const LifeReport& report);
std::string to_json(const LifeReport& report);

}  // namespace weft::plan::life
