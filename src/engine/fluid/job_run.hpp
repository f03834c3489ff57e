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
#include "engine/fluid/time_histogram.hpp"
#include "workload/collective/traffic.hpp"

namespace weft::engine::fluid {

// A job runs its traffic `iterations` times, each beginning when the one before has ended.
struct Job {
  std::string name;
  workload::Traffic traffic;
  std::vector<NodeId> ranks;  // GPUs, as in the traffic's request
  std::uint32_t iterations = 1;
  Time start;
  Duration step_overhead;  // software latency added to every step of a stage
  // Per rank: how much later than the others it enters the first iteration. Empty: nobody is late.
  std::vector<Duration> late;
  // What the library needs for an iteration; none: nothing but bytes at line rate and the paths'
  // latency.
  std::optional<workload::CallCost> cost;
};

struct JobResult {
  struct Span {
    std::string name;  // of the stage
    std::uint32_t iteration;
    double start_s, end_s;
  };
  std::vector<double> iteration_s;  // finished ones
  std::vector<Span> stages;         // of the first iterations, at most span_count_max
  double roofline_s = 0;            // see traffic_floor()
  double end_s = 0;
  bool finished = false;
  std::optional<Standstill> standstill;  // where not finished
};
inline constexpr std::size_t span_count_max = 10'000;

struct JobRunResult {
  std::vector<JobResult> jobs;
  std::vector<GraphResult> graphs;
  std::vector<double> link_bytes;  // by LinkId
  TimeHistogram transfer_times;
  std::vector<model::HotLink> hot_links;  // of runs with graphs
  std::vector<std::string> unfinished;    // one line each, at most 100, then "... and N more"
  double makespan_s = 0;
  double rate_error = 0;
  std::string digest;
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

}  // namespace weft::engine::fluid
