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

// Powers of two: the parts of the aligned group of 2^round ranks around the sender. Otherwise those
// of the sender and the ranks after it.
std::vector<Rank> doubling_parts(std::uint32_t n, std::uint32_t round, Rank from) {
  const std::uint32_t d = 1u << round;
  const Rank first = std::has_single_bit(n) ? from & ~(d - 1) : from;
  std::vector<Rank> owners;
  for (std::uint32_t i = 0; i < doubling_part_count(n, round); ++i)
    owners.push_back((first + i) % n);
  return owners;
}

constexpr GatherScheme doubling_scheme{"recursive doubling", doubling_receiver, doubling_part_count,
                                       doubling_parts};

Result<std::vector<Stage>> doubling_stages(const Job& job) {
  return build_rounds(job, doubling_scheme);
}
void doubling_messages(const Job& job, MessageWriter& out) {
  expand_rounds(job, doubling_scheme, out);
}

}  // namespace

constinit const Algorithm algo::recursive_doubling{
    "recursive_doubling", {Op::all_gather, Op::reduce_scatter}, doubling_stages, doubling_messages};

}  // namespace weft::workload
