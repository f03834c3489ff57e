// For tests that draw random cases, or take ever larger ones: how many, how large.
#pragma once

#include <algorithm>
#include <cstdint>

namespace weft {
inline namespace base {

// All of them, which the tests of the release build go through; a sixteenth under sanitizers, which
// look at what the code touches and take ten times as long.
constexpr std::uint64_t test_effort(std::uint64_t count) {
#ifdef WEFT_SANITIZED
  return std::max<std::uint64_t>(count / 16, 1);
#else
  return count;
#endif
}

}  // namespace base
}  // namespace weft
