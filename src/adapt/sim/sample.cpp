#include "adapt/sim/sample.hpp"

#include <algorithm>
#include <cmath>

namespace weft::adapt::sim {
namespace {

constexpr double mean_max = 20;  // of one inversion: e^-20 is far from underflow

// Inversion: walks up the probabilities until they pass a uniform number.
std::uint32_t invert_binomial(Rng& rng, std::uint32_t trials, double p) {
  const double u = rng.uniform();
  if (u < 1 - p * trials) return 0;  // (1 - p)^n >= 1 - n p
  double term = std::exp(trials * std::log1p(-p)), sum = term;
  const double odds = p / (1 - p);
  std::uint32_t k = 0;
  while (u >= sum && k < trials) {
    term *= odds * static_cast<double>(trials - k) / static_cast<double>(k + 1);
    sum += term;
    ++k;
    if (term < 1e-300) break;  // what rounding left of the tail
  }
  return k;
}

std::uint32_t invert_poisson(Rng& rng, double mean) {
  const double u = rng.uniform();
  double term = std::exp(-mean), sum = term;
  std::uint32_t k = 0;
  while (u >= sum && term > 1e-300) {
    ++k;
    term *= mean / k;
    sum += term;
  }
  return k;
}

}  // namespace

// Trials fall into pieces of a mean that inversion bears; the sum is exact.
std::uint32_t draw_binomial(Rng& rng, std::uint32_t trials, double p) {
  if (trials == 0 || p <= 0) return 0;
  if (p >= 1) return trials;
  if (p > 0.5) return trials - draw_binomial(rng, trials, 1 - p);
  const auto piece = static_cast<std::uint32_t>(
      std::min(static_cast<double>(UINT32_MAX), std::max(1.0, mean_max / p)));
  std::uint32_t sum = 0;
  for (std::uint32_t left = trials; left > 0;) {
    const std::uint32_t now = std::min(left, piece);
    sum += invert_binomial(rng, now, p);
    left -= now;
  }
  return sum;
}

std::uint32_t draw_poisson(Rng& rng, double mean) {
  std::uint32_t sum = 0;
  for (; mean > mean_max; mean -= mean_max) sum += invert_poisson(rng, mean_max);
  return sum + invert_poisson(rng, mean);
}

}  // namespace weft::adapt::sim
