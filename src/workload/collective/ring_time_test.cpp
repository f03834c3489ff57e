#include "workload/collective/ring_time.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "base/rng.hpp"
#include "base/test_approx.hpp"

namespace weft::workload {
namespace {

// The recursion itself, O(n * steps).
double by_recursion(const std::vector<double>& tau, const std::vector<double>& start,
                    std::uint32_t steps) {
  const std::size_t n = tau.size();
  std::vector<double> end = start, before;
  for (std::uint32_t k = 0; k < steps; ++k) {
    before = end;
    for (std::size_t r = 0; r < n; ++r)
      end[r] = std::max(before[r], k == 0 ? 0.0 : before[(r + n - 1) % n]) + tau[r];
  }
  return *std::ranges::max_element(end);
}

// The formula of the header, term by term.
double by_formula(const std::vector<double>& tau, const std::vector<double>& start,
                  std::uint32_t steps) {
  const std::size_t n = tau.size();
  double longest = 0;
  for (std::size_t a = 0; a < n; ++a) {
    double path = start[a];
    for (std::uint32_t j = 0; j < steps; ++j) {
      longest = std::max(longest, path + (steps - j) * tau[(a + j) % n]);
      path += tau[(a + j) % n];
    }
  }
  return longest;
}

TEST_CASE("equal edges and starts: steps times tau") {
  for (const std::uint32_t n : {1u, 2u, 8u, 4096u}) {
    const std::vector<double> tau(n, 0.25), start(n, 3.0);
    CHECK(ring_time(tau, start, 2 * n) == approx(3.0 + 0.5 * n).epsilon(1e-14));
    CHECK(ring_time(tau, start, 0) == 3.0);
  }
}

TEST_CASE("one slow edge is passed by every chunk; one late rank is waited for once") {
  std::vector<double> tau(16, 1.0), start(16, 0.0);
  tau[5] = 2.0;
  // Edge 5 has 30 chunks to send; each of them finds it ready but for the first.
  CHECK(ring_time(tau, start, 30) == approx(60.0));
  tau[5] = 1.0;
  start[7] = 4.0;
  CHECK(ring_time(tau, start, 30) == approx(34.0));
}

TEST_CASE("random rings: closed form, term-by-term formula and recursion agree") {
  Rng rng(7);
  for (int round = 0; round < 4000; ++round) {
    const std::size_t n = 1 + rng.below(24);
    const auto steps = static_cast<std::uint32_t>(1 + rng.below(3 * n));
    std::vector<double> tau(n), start(n);
    // Small integers make ties and collinear lines, fractions make none.
    const bool ties = rng.below(2) == 0;
    for (double& t : tau) t = ties ? static_cast<double>(rng.below(3)) : rng.uniform();
    for (double& s : start)
      s = rng.below(3) == 0 ? 0 : (ties ? static_cast<double>(rng.below(9)) : 9 * rng.uniform());
    const double expected = by_recursion(tau, start, steps);
    CAPTURE(round);
    REQUIRE(by_formula(tau, start, steps) == approx(expected).epsilon(1e-12));
    REQUIRE(ring_time(tau, start, steps) == approx(expected).epsilon(1e-12));
  }
}

TEST_CASE("4,096 ranks: equal to the recursion, and quick") {
  Rng rng(11);
  std::vector<double> tau(4096), start(4096);
  for (double& t : tau) t = 1e-4 * (1 + rng.uniform());
  for (double& s : start) s = 0.1 * rng.uniform();
  const auto begin = std::chrono::steady_clock::now();
  const double got = ring_time(tau, start, 8190);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  CHECK(got == approx(by_recursion(tau, start, 8190)).epsilon(1e-12));
  MESSAGE("ring_time over 4,096 ranks: " << took.count() * 1e3 << " ms");
#ifdef NDEBUG
  CHECK(took.count() < 0.05);  // ten times the figure it has to reach: machines are shared
#endif
}

}  // namespace
}  // namespace weft::workload
