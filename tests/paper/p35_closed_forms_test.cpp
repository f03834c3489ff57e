// P-35: alpha-beta costs of an all-reduce, N = 16, S = 64 KiB, alpha = 10 us, 50 GB/s:
// ring 302.5 us, halving/doubling 82.5 us, flat (one shot) 29.7 us. Tolerance: the printed digits.
// Formulas: Thakur, Rabenseifner, Gropp, IJHPCA 2005. 64 KB are 65,536 bytes here.
#include <doctest/doctest.h>

#include <cmath>

#include "workload/collective/timing.hpp"

namespace weft::workload {
namespace {

constexpr std::uint32_t ranks = 16;
constexpr double bytes = 65536;
constexpr alpha_beta::Link link{.alpha = 10e-6, .beta = 50e9};

double tenths_of_us(double seconds) { return std::round(seconds * 1e7) / 10; }

TEST_CASE("P-35: closed forms of an all-reduce") {
  CHECK(tenths_of_us(alpha_beta::ring_all_reduce(ranks, bytes, link)) == 302.5);
  CHECK(tenths_of_us(alpha_beta::halving_doubling_all_reduce(ranks, bytes, link)) == 82.5);
  CHECK(tenths_of_us(alpha_beta::flat_all_reduce(ranks, bytes, link)) == 29.7);
}

TEST_CASE("an all-reduce is twice an all-gather") {
  CHECK(alpha_beta::ring_all_reduce(ranks, bytes, link) ==
        2 * alpha_beta::ring_all_gather(ranks, bytes, link));
  CHECK(alpha_beta::halving_doubling_all_reduce(ranks, bytes, link) ==
        2 * alpha_beta::recursive_doubling_all_gather(ranks, bytes, link));
}

}  // namespace
}  // namespace weft::workload
