// For tests with a bar on seconds of CPU.
#pragma once

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <vector>

#include "base/rng.hpp"

#if defined(NDEBUG) && !defined(__OPTIMIZE__)
#error "the pace would be that of unoptimised code: give the room TESTS_OPTIMISED"
#endif

namespace weft {
inline namespace base {

// How many times longer this machine takes, at the moment, than the machine of docs/benchmarks.md,
// which the bars were set on: both sort a million random numbers, which took that one 0.05 s of
// CPU. At least 1, so that a faster machine does not tighten a bar. Costs some 0.3 s. Meaningless
// in a build that is not optimised.
inline double machine_pace() {
  constexpr int rounds = 3;
  std::clock_t spent = 0;
  for (int round = 0; round < rounds; ++round) {
    Rng rng(1);
    std::vector<std::uint64_t> numbers(1 << 20);
    for (std::uint64_t& number : numbers) number = rng.next();
    const std::clock_t begin = std::clock();
    std::ranges::sort(numbers);
    spent += std::clock() - begin;
  }
  return std::max(1.0, static_cast<double>(spent) / CLOCKS_PER_SEC / rounds / 0.05);
}

}  // namespace base
}  // namespace weft
