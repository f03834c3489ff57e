// Recursive doubling: the nearest exchange first, and twice as much over twice the distance in each
// further round. Pairs for powers of two; Bruck's one-way variant for other numbers of ranks.
#include <algorithm>
#include <bit>

#include "workload/collective/rounds.hpp"

namespace weft::workload {
namespace {

Rank doubling_receiver(std::uint32_t n, std::uint32_t round, Rank from) {
  const std::uint32_t d = 1u << round;
  return std::has_single_bit(n) ? from ^ d : (from + n - d) % n;
}

std::uint32_t doubling_part_count(std::uint32_t n, std::uint32_t round) {
  const std::uint32_t d = 1u << round;
  return std::min(d, n - d);
}

constexpr GatherScheme doubling_scheme{"recursive doubling", doubling_receiver,
                                       doubling_part_count};

Result<std::vector<Stage>> doubling_stages(const Job& job) {
  return build_rounds(job, doubling_scheme);
}
}  // namespace

constinit const Algorithm algo::recursive_doubling{
    "recursive_doubling", {Op::all_gather, Op::reduce_scatter}, doubling_stages};

}  // namespace weft::workload
