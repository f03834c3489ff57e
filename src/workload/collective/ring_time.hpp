// When a chunked ring ends in isolation: exact, without simulating it.
#pragma once

#include <cstdint>
#include <span>

namespace weft::workload {

// The rank at position r of a ring starts at start_s[r] and then sends `steps` chunks to the next,
// each taking edge_s_per_chunk[r] seconds; its chunk k waits for its own chunk k-1 and for chunk
// k-1 from the rank before:
//   end[r][k] = max(end[r][k-1], end[r-1][k-1], start[r]) + tau[r].
// Returns the end of the last chunk: max over r of end[r][steps-1], or of start where steps is 0.
// Both spans have one entry per rank, 1 or more; times are finite and 0 or more.
//
// The longest path begins at some rank a and spends its `steps` chunks moving on to the j-th rank
// after it and staying there, which is best done at the slowest edge of the path:
//   T = max over a and 0 <= j < steps of
//       start[a] + tau[a] + .. + tau[a+j-1] + (steps - j) tau[a+j].
// Proof: a path of the recursion, followed from its start, visits consecutive ranks a .. a+m, each
// for one or more of its `steps` chunks. Moving all but one visit of each rank to the slowest rank
// a+j does not shorten it; dropping then the ranks behind a+j and spending their visits there too
// does not either. Each term is itself a path. A path that laps the ring passes the slowest edge of
// all, where staying is no worse, so j < ranks suffices.
// For one position x = a+j the terms are lines in tau[x] with slope a, over a window of a: two
// convex hulls per block of window length give the maximum in O(log n).
// Cost: O(n log n); 4,096 ranks take about a millisecond, whatever the number of steps.
double ring_time(std::span<const double> edge_s_per_chunk, std::span<const double> start_s,
                 std::uint32_t steps);

}  // namespace weft::workload
