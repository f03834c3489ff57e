// Collective jobs side by side on one fabric, run to their end.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/progress.hpp"
#include "engine/fluid/network.hpp"
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
};

struct JobResult {
  struct Span {
    std::string name;  // of the stage
    std::uint32_t iteration;
    double start_s, end_s;
  };
  std::vector<double> iteration_s;  // finished ones
  std::vector<Span> stages;         // of the first iterations, at most span_count_max
  double roofline_s = 0;            // see roofline_s()
  double end_s = 0;
  bool finished = false;
  std::uint64_t transfers = 0;  // chains, flows and messages sent in all
};
inline constexpr std::size_t span_count_max = 10'000;

// Transfer times of all jobs, in bins of equal ratio, for the completion curve of the report.
class TimeHistogram {
 public:
  void add(double seconds);
  std::uint64_t count() const { return count_; }
  double mean() const { return count_ > 0 ? sum_ / static_cast<double>(count_) : 0; }
  // Upper bin edge at which `share` of all values is reached; within 1 % of the exact value.
  double quantile(double share) const;

 private:
  std::vector<std::uint64_t> bins_;
  std::uint64_t count_ = 0;
  double sum_ = 0;
};

struct JobRunResult {
  std::vector<JobResult> jobs;
  std::vector<double> link_bytes;  // by LinkId
  TimeHistogram transfer_times;
  std::vector<std::string> unfinished;  // one line each, at most 100, then "... and N more"
  double makespan_s = 0;
  double rate_error = 0;
  std::string digest;
  Solver::Counters counters;
};

// Semantics: chains are coupled (workload::Chain); independent flows and the messages of an
// exchange divide over the QPs as one transfer whose streams advance together. A stage pays the
// latency of its steps before the first byte. A chain whose ranks start at different times ends, in
// isolation, exactly when a message-by-message run does (workload::ring_time); what the early ranks
// do meanwhile to others is not modelled.
JobRunResult run_jobs(std::span<const Job> jobs, Router& router,
                      std::span<const StateChange> changes, const Simulation::Options& options,
                      Progress& progress);

// Lower bound of one iteration: every stage at the speed of its busiest host-side link (NVLink,
// PCIe, NIC port), as if the fabric had no limit, plus the stages' latency.
double roofline_s(const Job& job, Router& router);

}  // namespace weft::engine::fluid
