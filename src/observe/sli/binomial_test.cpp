#include "observe/sli/binomial.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <initializer_list>

#include "base/test_approx.hpp"

namespace weft::observe::sli {
namespace {

// Term by term; for small numbers.
double tail_by_sum(int hits, int trials, double p) {
  double sum = 0;
  for (int k = hits; k <= trials; ++k)
    sum +=
        std::exp(std::lgamma(trials + 1.0) - std::lgamma(k + 1.0) - std::lgamma(trials - k + 1.0) +
                 k * std::log(p) + (trials - k) * std::log1p(-p));
  return sum;
}

TEST_CASE("the tail is the sum of its terms") {
  for (const int trials : {1, 2, 7, 30, 200})
    for (const double p : {1e-4, 0.01, 0.3, 0.5, 0.97})
      for (int hits = 1; hits <= trials; ++hits) {
        CAPTURE(trials);
        CAPTURE(p);
        CAPTURE(hits);
        CHECK(upper_tail(static_cast<std::uint64_t>(hits), static_cast<std::uint64_t>(trials), p) ==
              approx(tail_by_sum(hits, trials, p)).epsilon(1e-8));
      }
}

TEST_CASE("edges of the tail") {
  CHECK(upper_tail(0, 10, 0.1) == 1);
  CHECK(upper_tail(0, 0, 0.5) == 1);
  CHECK(upper_tail(3, 10, 0) == 0);
  CHECK(upper_tail(10, 10, 1) == 1);
  CHECK(upper_tail(10, 10, 0.5) == approx(1.0 / 1024));
}

TEST_CASE("rare events in many trials are Poisson") {
  // P(X >= 20), mean 10: 1 - sum_{k<20} e^-10 10^k / k!
  double below = 0, term = std::exp(-10.0);
  for (int k = 0; k < 20; ++k) {
    below += term;
    term *= 10.0 / (k + 1);
  }
  CHECK(upper_tail(20, 10'000'000'000, 1e-9) == approx(1 - below).epsilon(1e-4));
}

TEST_CASE("large counts go over into the normal tail without a step") {
  const double p = 0.0999;
  const double exact = upper_tail(100'000, 1'000'000, p);
  const double normal = upper_tail(100'100, 1'001'000, p);
  CHECK(exact == approx(normal).epsilon(0.02));
  CHECK(upper_tail(1'000'000'000, 2'000'000'000, 0.5) == approx(0.5).epsilon(1e-3));
}

// Clopper and Pearson's limits have a closed form at the ends: 1 - (alpha / 2)^(1 / n).
TEST_CASE("interval of none and of all") {
  const Interval none = exact_interval(0, 1000, 0.95);
  CHECK(none.low == 0);
  CHECK(none.high == approx(1 - std::pow(0.025, 1e-3)));
  const Interval all = exact_interval(50, 50, 0.95);
  CHECK(all.low == approx(std::pow(0.025, 1.0 / 50)));
  CHECK(all.high == 1);
  const Interval nothing = exact_interval(0, 0, 0.95);
  CHECK(nothing.low == 0);
  CHECK(nothing.high == 1);
}

TEST_CASE("the limits are where the tails have their level") {
  for (const std::uint64_t hits : {1u, 3u, 10u, 99u}) {
    const Interval i = exact_interval(hits, 100, 0.9);
    CHECK(upper_tail(hits, 100, i.low) == approx(0.05));
    CHECK(1 - upper_tail(hits + 1, 100, i.high) == approx(0.05));
    CHECK(i.low < static_cast<double>(hits) / 100);
    CHECK(i.high > static_cast<double>(hits) / 100);
  }
}

}  // namespace
}  // namespace weft::observe::sli
