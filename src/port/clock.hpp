// Time as a service sees it, so that tests and simulations bring their own.
#pragma once

#include <cstdint>

#include "base/timestamp.hpp"

namespace weft::port {

// A point of monotonic time in nanoseconds; where it starts is the clock's own affair. It never
// steps: every duration is a difference of two of these.
struct Instant {
  std::int64_t ns = 0;
  friend constexpr auto operator<=>(Instant, Instant) = default;
};

// Monotonic nanoseconds between two instants, or that much later.
constexpr std::int64_t operator-(Instant a, Instant b) { return a.ns - b.ns; }
constexpr Instant operator+(Instant a, std::int64_t ns) { return {a.ns + ns}; }

class Clock {
 public:
  virtual ~Clock() = default;
  virtual Instant now() = 0;
  // The time of day. May step in either direction.
  virtual Timestamp wall() = 0;
};

}  // namespace weft::port
