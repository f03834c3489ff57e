// What it costs the running jobs when a part of the fabric is taken out of service.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/config.hpp"
#include "base/json_text.hpp"
#include "model/events/entity.hpp"
#include "operate/jobs/running.hpp"
#include "operate/repair/what_if.hpp"
#include "plan/run/setup.hpp"

namespace weft::operate::jobs {

struct Cluster {
  const plan::Setup& setup;
  const Config& described;  // the scenario's jobs:, null for none
  std::uint64_t seed;
};

// The running jobs as work for the engine. Those that have the name of a described job do what that
// one does, on the hosts where they run. `is_known`: all do, and fit there; else they have ranks
// alone, which is enough for WhatIf's bound. Cost: as plan::read_jobs.
struct Work {
  plan::Jobs jobs;  // called by their ids
  bool is_known = false;
};
Work work_of(const Cluster& cluster, std::span<const RunningJob> running);

// WhatIf for them: simulated where they are known, bounded where not.
Result<operate::repair::Impact> predict(const Cluster& cluster, const Work& work,
                                        std::span<const model::Entity> out,
                                        const model::Entity& part);

struct JobEffect {
  std::size_t job = 0;  // of `running`
  repair::JobImpact impact;
  std::vector<std::uint32_t> at_part;  // its hosts that lose a link, or all
  // For a job that would stall: such a host, and the free host nearest to it.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> spares;
};
struct Effects {
  repair::Impact::Method method = repair::Impact::Method::bounded;
  std::vector<JobEffect> jobs;  // that lose speed, or have a host there; worst first
  std::size_t unaffected = 0;
};

// Of taking `part` out while `out` is. Spare hosts are in no job, and neither at the part, nor at
// those that are out, nor at `suspects`; same rack before same zone before others.
// Fails: as WhatIf::predict. Cost: two runs of all jobs.
Result<Effects> effects_of(const Cluster& cluster, std::span<const RunningJob> running,
                           std::span<const model::Entity> out,
                           std::span<const model::Entity> suspects, const model::Entity& part);

JsonObject to_json(const Effects& effects, std::span<const RunningJob> running,
                   const NodeNames& names);

}  // namespace weft::operate::jobs
