// A share of all bytes and of all compute is run, and the whole extrapolated from it.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "engine/jobs/jobs.hpp"
#include "workload/collective/cost.hpp"
#include "workload/collective/traffic.hpp"

namespace weft::engine::packet {

// No estimate is made from more: a half, a quarter and an eighth cost as much as the whole.
inline constexpr double estimate_share_max = 0.5;

// Bytes, and the time the library needs. A ring in turns takes fewer of them, each as long as
// before, so that its latency shrinks as its bytes do; trees and exchanges have smaller messages.
void scale(double share, workload::Traffic& traffic, std::optional<workload::CallCost>& cost);
// Also when it starts, and how late its ranks are.
Job scaled(double share, const Job& job);
// Its start alone: lower_graph() scales what it does.
GraphJob scaled(double share, const GraphJob& job);

// Runs of a share of the work, of half and of a quarter of that share.
struct PartRuns {
  double share = 1;
  std::array<RunResult, 3> runs;
};

// Seconds; of any job.
double shortest_iteration(const RunResult& run);

// What the whole takes: every time and the bytes of every link on the straight line through the two
// larger parts, since start-up comes once and the rest grows with the bytes. Counters of packets,
// queues and pauses are those of the largest part; times of single transfers, the busiest interval
// and hot links are left out. A job that does not end in some part is as it is there, and
// link_bytes and makespan_s are then those of the largest part. RunResult::estimate compares the
// line with that through the two smaller parts. Cost: O(iterations + spans + links).
RunResult extrapolate(PartRuns parts);

}  // namespace weft::engine::packet
