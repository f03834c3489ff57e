// Jobs side by side on one fabric, run to their end: collectives, and operation graphs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/progress.hpp"
#include "engine/fluid/graph_run.hpp"
#include "engine/fluid/network.hpp"
#include "engine/jobs/engine.hpp"
#include "workload/collective/traffic.hpp"

namespace weft::engine::fluid {

struct JobRunResult : RunResult {
  double rate_error = 0;
  Solver::Counters counters;
};

// Semantics: chains are coupled (workload::Chain); independent flows and the messages of an
// exchange divide over the QPs as one transfer whose streams advance together. A stage pays the
// latency of its steps before the first byte. With a cost it pays its shares of that instead: the
// lead before the first byte, and it ends no sooner than its bytes' time after
// (workload::StageShare). A chain whose ranks start at different times ends, in
// isolation, exactly when a message-by-message run does (workload::ring_time); what the early ranks
// do meanwhile to others is not modelled.
// Graphs run beside the jobs, on the same links; their semantics: graph_run.hpp.
JobRunResult run_jobs(std::span<const Job> jobs, std::span<const GraphJob> graphs, Router& router,
                      std::span<const StateChange> changes, const NetworkOptions& options,
                      Progress& progress);
// The same with replicas that serve. Fails: as ServingPlayer::create() and take_result().
Result<JobRunResult> run_work(const Work& work, Router& router,
                              std::span<const StateChange> changes, const NetworkOptions& options,
                              Progress& progress);

// Max-min fair rates.
struct FluidEngine {
  static constexpr std::string_view name = "fluid";
  NetworkOptions options;

  Result<RunResult> run(const Work& work, Router& router, std::span<const StateChange> changes,
                        const Watch& watch) const;
};
static_assert(Engine<FluidEngine>);

}  // namespace weft::engine::fluid
