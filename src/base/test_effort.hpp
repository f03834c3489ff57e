// For tests that draw random cases, or take ever larger ones: how many, how large.
#pragma once

#include <algorithm>
#include <cstdint>

namespace weft {
inline namespace base {

// All of them, which the tests of the release build go through; a sixteenth under sanitizers, which
// look at what the code touches and take ten times as long.
#ifdef WEFT_SANITIZED
inline constexpr bool test_is_quick = true;
#else
inline constexpr bool test_is_quick = false;
#endif
constexpr std::uint64_t test_effort(std::uint64_t count) {
  return test_is_quick ? std::max<std::uint64_t>(count / 16, 1) : count;
}

}  // namespace base
}  // namespace weft
