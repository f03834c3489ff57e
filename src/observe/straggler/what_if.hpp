// What a job's steps would take without stragglers, and who makes them slow. Definitions of the
// paper: S = actual / ideal step; ideal is every operation at its kind's typical time (computes:
// the mean; transfers: the median), with the recorded waits replaced by those that follow.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "observe/straggler/step_model.hpp"
#include "observe/straggler/timeline.hpp"

namespace weft::observe::straggler {

enum class Cause : std::uint8_t { none, worker, sequence_lengths, last_stage, many };
std::string_view to_text(Cause cause);
// A sentence for people.
std::string_view meaning(Cause cause);

struct Report {
  double actual_s = 0, ideal_s = 0;  // of a step, mean; played, so without gaps between steps
  std::vector<double> step_s;        // actual, by step
  std::array<double, kind_count> typical_s{};  // 0 where the kind does not occur
  // S where only these keep their times and all others are ideal.
  std::vector<double> by_replica, by_stage;
  std::array<double, kind_count> by_kind{};
  struct Worker {
    std::size_t replica;
    std::uint32_t stage;
    double slowdown;  // the smaller of its replica's and its stage's
  };
  std::vector<Worker> workers;  // slowest first
  // Shares of (actual - ideal) that go away when these become ideal: the slowest 3 % of workers
  // (one at least), the last stage.
  std::size_t slowest_count = 0;
  double slowest_share = 0, last_stage_share = 0;
  // Of backward computes: standard deviation over the micro-batches of a worker by their mean, and
  // correlation between neighbouring stages; medians.
  double spread = 0, correlation = 0;
  Cause cause = Cause::none;

  double slowdown() const { return ideal_s > 0 ? actual_s / ideal_s : 1; }
};

// Cost: O(operations x (replicas + stages)).
Report analyse(const Timeline& timeline, const StepModel& model);

// The ideal step beside the first recorded one, as a Chrome trace.
std::string ideal_trace(const Timeline& timeline, const StepModel& model);

}  // namespace weft::observe::straggler
