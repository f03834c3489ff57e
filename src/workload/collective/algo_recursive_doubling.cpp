// Recursive doubling: the nearest exchange first, and twice as much over twice the distance in each
// further round. Pairs for powers of two; Bruck's one-way variant for other numbers of ranks.
#include <algorithm>
#include <bit>

#include "workload/collective/rounds.hpp"

namespace weft::workload {
namespace {

std::uint32_t rounds(std::uint32_t n) { return static_cast<std::uint32_t>(std::bit_width(n - 1)); }

Rank receiver(std::uint32_t n, std::uint32_t round, Rank from) {
  const std::uint32_t d = 1u << round;
  return std::has_single_bit(n) ? from ^ d : (from + n - d) % n;
}

std::uint32_t part_count(std::uint32_t n, std::uint32_t round) {
  const std::uint32_t d = 1u << round;
  return std::min(d, n - d);
}

// Powers of two: the parts of the aligned group of 2^round ranks around the sender. Otherwise those
// of the sender and the ranks after it.
std::vector<Rank> parts(std::uint32_t n, std::uint32_t round, Rank from) {
  const std::uint32_t d = 1u << round;
  const Rank first = std::has_single_bit(n) ? from & ~(d - 1) : from;
  std::vector<Rank> owners;
  for (std::uint32_t i = 0; i < part_count(n, round); ++i) owners.push_back((first + i) % n);
  return owners;
}

constexpr GatherScheme scheme{"recursive doubling", rounds, receiver, part_count, parts};

Result<std::vector<Stage>> build(const Job& job) { return build_rounds(job, scheme); }
void expand(const Job& job, MessageWriter& out) { expand_rounds(job, scheme, out); }

}  // namespace

constinit const Algorithm algo::recursive_doubling{
    "recursive_doubling", {Op::all_gather, Op::reduce_scatter}, build, expand};

}  // namespace weft::workload
