// A collective that has the fabric to itself, for every size from one run.
#pragma once

#include <vector>

#include "engine/jobs/stage_cost.hpp"
#include "plan/run/setup.hpp"
#include "workload/collective/cost.hpp"
#include "workload/collective/traffic.hpp"

namespace weft::plan {

// Times on the scenario's fabric: routing, hashes, oversubscription and faults included.
class LoneCollective {
 public:
  // Runs the request once, at a size where nothing but bytes counts. Fails: as build_traffic() and
  // Router::create(); Errc::infeasible where it cannot finish. Cost: one run of the fluid engine.
  static Result<LoneCollective> run(const Setup& setup, std::uint64_t seed,
                                    workload::Request request);

  // As `weft run` times a call of that cost: workload::StageShare.
  double seconds(const workload::CallCost& cost, double bytes) const;
  // The same where no library is in the way: workload::Library::Cost::line_rate.
  double line_rate_seconds(double bytes) const;

 private:
  struct Stage {
    workload::StageShare share;
    engine::StageLatency latency;
    double s_per_byte;  // of data, on the fabric
  };
  std::vector<Stage> stages_;
  Duration step_overhead_;
};

}  // namespace weft::plan
