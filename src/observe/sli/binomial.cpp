#include "observe/sli/binomial.hpp"

#include <cmath>
#include <numbers>

#include "base/check.hpp"

namespace weft::observe::sli {
namespace {

constexpr std::uint64_t exact_hits_max = 100'000;
constexpr int fraction_terms_max = 20'000;
constexpr int bisections = 80;

// The continued fraction of the incomplete beta function by Lentz's method; x below the mean.
double beta_fraction(double a, double b, double x) {
  constexpr double tiny = 1e-300;
  const auto away_from_zero = [](double v) { return std::abs(v) < tiny ? tiny : v; };
  double c = 1;
  double d = 1 / away_from_zero(1 - (a + b) * x / (a + 1));
  double out = d;
  for (int i = 1; i <= fraction_terms_max; ++i) {
    const double m = i;
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / away_from_zero(1 + even * d);
    c = away_from_zero(1 + even / c);
    out *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / away_from_zero(1 + odd * d);
    c = away_from_zero(1 + odd / c);
    out *= d * c;
    if (std::abs(d * c - 1) < 1e-14) break;
  }
  return out;
}

// The regularised incomplete beta function I_x(a, b).
double beta_share(double a, double b, double x) {
  const double log_front =
      std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log1p(-x);
  if (x < (a + 1) / (a + b + 2)) return std::exp(log_front) * beta_fraction(a, b, x) / a;
  return 1 - std::exp(log_front) * beta_fraction(b, a, 1 - x) / b;
}

double normal_tail(double hits, double trials, double p) {
  const double z = (hits - 0.5 - trials * p) / std::sqrt(trials * p * (1 - p));
  return std::erfc(z / std::numbers::sqrt2) / 2;
}

// The p at which `rises(p)` turns true; it must be monotone.
template <class Rises>
double turning_point(Rises rises) {
  double low = 0, high = 1;
  for (int i = 0; i < bisections; ++i) {
    const double middle = (low + high) / 2;
    (rises(middle) ? high : low) = middle;
  }
  return (low + high) / 2;
}

}  // namespace

double upper_tail(std::uint64_t hits, std::uint64_t trials, double p) {
  WEFT_CHECK(hits <= trials && p >= 0 && p <= 1);
  if (hits == 0 || p == 1) return 1;
  if (p == 0) return 0;
  const auto k = static_cast<double>(hits), n = static_cast<double>(trials);
  if (hits > exact_hits_max && trials - hits > exact_hits_max) return normal_tail(k, n, p);
  return beta_share(k, n - k + 1, p);
}

Interval exact_interval(std::uint64_t hits, std::uint64_t trials, double confidence) {
  if (trials == 0) return {};
  const double beyond = (1 - confidence) / 2;
  Interval out;
  if (hits > 0)
    out.low = turning_point([&](double p) { return upper_tail(hits, trials, p) >= beyond; });
  if (hits < trials)
    out.high =
        turning_point([&](double p) { return 1 - upper_tail(hits + 1, trials, p) <= beyond; });
  return out;
}

}  // namespace weft::observe::sli
