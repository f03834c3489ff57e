// For tests: numbers that are nearly equal.
#pragma once

#include <doctest/doctest.h>

namespace weft {
inline namespace base {

// Equal within a share of the larger number: 1.2e-5, or .epsilon(share). doctest's own Approx
// allows epsilon x (1 + the larger): any two latencies are equal to it. Where 0 is expected, or a
// difference of large numbers, .scale(size) allows epsilon x (size + the larger).
inline doctest::Approx approx(double expected) {
  return doctest::Approx(expected).scale(1e-300);  // not 0: what it compares must be less
}

}  // namespace base
}  // namespace weft
