// Parallel aggregated trees: every rank's part spreads along a binomial tree, farthest first, all
// trees in the same rounds. Any number of ranks, log2(n) rounds rounded up; the large messages of
// the last rounds go to the nearest ranks.
#include "workload/collective/rounds.hpp"

namespace weft::workload {
namespace {

// Round i sends over the distance 2^(rounds - 1 - i).
std::uint32_t distance(std::uint32_t n, std::uint32_t round) {
  return 1u << (rounds_over(n) - 1 - round);
}

Rank pat_receiver(std::uint32_t n, std::uint32_t round, Rank from) {
  return (from + distance(n, round)) % n;
}

// By then a rank holds the parts of the ranks a multiple of 2 * distance behind it; it passes on
// those which have not come full circle: behind + distance < n.
std::uint32_t pat_part_count(std::uint32_t n, std::uint32_t round) {
  const std::uint32_t d = distance(n, round);
  return (n - 1 - d) / (2 * d) + 1;
}

constexpr GatherScheme pat_scheme{"pat", pat_receiver, pat_part_count};

Result<std::vector<Stage>> pat_stages(const Job& job) { return build_rounds(job, pat_scheme); }

}  // namespace

constinit const Algorithm algo::pat{"pat", {Op::all_gather, Op::reduce_scatter}, pat_stages};

}  // namespace weft::workload
