// A collective that has the fabric to itself, for every size from one run.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/jobs/stage_cost.hpp"
#include "plan/run/setup.hpp"
#include "workload/collective/cost.hpp"
#include "workload/collective/traffic.hpp"

namespace weft::plan {

// Times on the scenario's fabric: routing, hashes, oversubscription and the faults that are there
// from the start included.
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

// One request by several algorithms: each runs once.
class LoneCollectives {
 public:
  // `setup` must outlive it.
  LoneCollectives(const Setup& setup, std::uint64_t seed, workload::Request request)
      : setup_(&setup), seed_(seed), request_(std::move(request)) {}

  // Valid as long as this object is. Fails: as LoneCollective::run().
  Result<const LoneCollective*> by(const std::string& algorithm);
  // The algorithm of the request's own, of so many bytes, where no library chooses.
  Result<std::string> default_algorithm(double bytes) const;

 private:
  const Setup* setup_;
  std::uint64_t seed_;
  workload::Request request_;
  std::map<std::string, LoneCollective> known_;
};

}  // namespace weft::plan
