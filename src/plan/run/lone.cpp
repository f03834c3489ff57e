#include "plan/run/lone.hpp"

#include <algorithm>
#include <array>

#include "engine/fluid/job_run.hpp"
#include "engine/fluid/stage.hpp"
#include "engine/jobs/declare.hpp"

namespace weft::plan {

Result<LoneCollective> LoneCollective::run(const Setup& setup, std::uint64_t seed,
                                           workload::Request request) {
  constexpr double large = 64.0 * static_cast<double>(1_GiB .count);
  request.bytes = large;
  WEFT_TRY(workload::Traffic traffic, workload::build_traffic(setup.fabric, request));
  WEFT_TRY(route::Router router, route::Router::create(setup.fabric, setup.routing, seed));
  const auto shares = engine::stage_shares(traffic, setup.fabric);
  const engine::Job job{.name = "perf", .traffic = std::move(traffic), .ranks = request.ranks};
  engine::declare_flows({{&job, 1}, {}}, router);
  Progress silent("", 0, Progress::Show::never);
  const std::array<engine::StateChange, 1> start{{{Time{}, setup.state_at_start()}}};
  const auto result =
      engine::fluid::run_jobs({&job, 1}, {}, router, start, setup.fluid.options, silent);
  if (!result.jobs[0].finished)
    return fail(Errc::infeasible, {}, "the collective cannot finish: " + result.unfinished.front(),
                "remove the fault, or choose other GPUs");
  LoneCollective out;
  out.step_overhead_ = setup.step_overhead;
  for (std::size_t s = 0; s < shares.size(); ++s) {
    const engine::StageLatency latency(job.traffic.stages[s], router);
    const auto& span = result.jobs[0].stages[s];
    const double bytes_s = span.end_s - span.start_s - latency.seconds({});
    out.stages_.push_back({shares[s], latency, std::max(0.0, bytes_s) / large});
  }
  return out;
}

double LoneCollective::seconds(const workload::CallCost& cost, double bytes) const {
  double total = 0;
  for (const Stage& stage : stages_) {
    const double fabric_s = bytes * cost.wire_bytes * stage.s_per_byte;
    total += cost.lead_s * stage.share.lead + stage.latency.beyond_s(cost, step_overhead_) +
             std::max(cost.bytes_s * stage.share.bytes, fabric_s);
  }
  return total;
}

double LoneCollective::line_rate_seconds(double bytes) const {
  double total = 0;
  for (const Stage& stage : stages_)
    total += stage.latency.seconds(step_overhead_) + bytes * stage.s_per_byte;
  return total;
}

Result<const LoneCollective*> LoneCollectives::by(const std::string& algorithm) {
  auto found = known_.find(algorithm);
  if (found == known_.end()) {
    workload::Request request = request_;
    request.algorithm = algorithm;
    WEFT_TRY(LoneCollective lone, LoneCollective::run(*setup_, seed_, std::move(request)));
    found = known_.emplace(algorithm, std::move(lone)).first;
  }
  return &found->second;
}

Result<std::string> LoneCollectives::default_algorithm(double bytes) const {
  workload::Request request = request_;
  request.bytes = bytes;
  return workload::default_algorithm(setup_->fabric, request);
}

}  // namespace weft::plan
