// What a drain would cost the running jobs, by the fluid engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "model/events/entity.hpp"
#include "model/fabric/state.hpp"
#include "operate/repair/ticket.hpp"
#include "plan/run/jobs.hpp"
#include "plan/run/setup.hpp"

namespace weft::operate::repair {

struct JobImpact {
  std::string name;
  double before_s = 0, after_s = 0;  // of one step or one collective; 0 where it never ends
  double slowdown = 1;               // after over before
  bool is_stalled = false;           // it runs before and not after
};

struct Impact {
  // simulated: one step or one collective of every job, all of them side by side, as `weft run`
  // has it. bounded: see WhatIf.
  enum class Method : std::uint8_t { simulated, bounded } method = Method::simulated;
  std::vector<JobImpact> jobs;
  double wall_s = 0;

  Forecast forecast() const;
};

// `out` and what is inside of it is down: what is drained carries nothing, and may be unplugged.
model::State state_without(const model::Fabric& fabric, std::span<const Entity> out);

// Simulated: exact as far as the fluid engine is; the first iteration, begun by all jobs together
// at time 0, stands for all. Where the jobs have more ranks in all than `ranks_max`, and where
// there are no jobs, it is bounded instead: every rank's NIC sends 64 MiB to the one half the job
// away, of each job alone, or of all NICs of the fabric, over paths that share all capacity ideally
// (scheme `optimal`; e_ecmp where the fabric does not allow it). That is what a job loses that does
// nothing but communicate across the network's middle: real ones lose less, but for unlucky hashes.
class WhatIf {
 public:
  struct Options {
    std::uint32_t ranks_max = 512;
    std::uint32_t flows_max = 4'096;  // of a bound: of more NICs every k-th sends
  };

  // All must outlive it.
  WhatIf(const plan::Setup& setup, const plan::Jobs& jobs, std::uint64_t seed);
  WhatIf(const plan::Setup& setup, const plan::Jobs& jobs, std::uint64_t seed, Options options);

  // Of draining `drain` while `out` is out of service. Jobs that have no way before count as not
  // changed. Fails as route::Router::create().
  // Cost: two runs; less than a second for labs, and for a zone of 252 racks under 18 spines.
  Result<Impact> predict(std::span<const Entity> out, std::span<const Entity> drain) const;

  // How busy the jobs keep each link in that state: bytes that cross it in one step or collective
  // of all jobs, by what it could carry meanwhile at its nominal rate; by LinkId, 0 to 1. Zeros
  // where there are more ranks than `ranks_max`, or no jobs. `marks`: of scheme te, those that are
  // installed; null: it assigns paths itself. Fails and costs as one run.
  using Marks = std::shared_ptr<const route::RoutingConfig::Marks>;
  Result<std::vector<double>> loads(const model::State& state, const Marks& marks = nullptr) const;

 private:
  // Seconds by job; 0 where it never ends.
  struct Run {
    std::vector<std::string> names;
    std::vector<double> seconds;
    std::vector<double> link_bytes;  // by LinkId
    double makespan_s = 0;
  };
  Result<Run> simulate(const model::State& state, const Marks& marks = nullptr) const;
  Result<Run> bound(const model::State& state) const;
  std::size_t rank_count() const;

  const plan::Setup& setup_;
  const plan::Jobs& jobs_;
  std::uint64_t seed_;
  Options options_;
};

}  // namespace weft::operate::repair
