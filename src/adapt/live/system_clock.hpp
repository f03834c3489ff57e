// The machine's clocks, and the kernel's time stamps as instants.
#pragma once

#include <cstdint>
#include <ctime>
#include <optional>

#include "port/clock.hpp"

namespace weft::adapt::live {

constexpr std::int64_t to_ns(const timespec& t) {
  return std::int64_t{t.tv_sec} * ns_per_s + t.tv_nsec;
}

class SystemClock : public port::Clock {
 public:
  port::Instant now() override;
  Timestamp wall() override;
};

// The kernel stamps datagrams with the time of day. Its distance from monotonic time only changes
// when somebody steps the clock (slewing moves both), so one good sample serves until a step is
// seen; stamps that were in a queue then may be of either time and are not believed.
class StampReader {
 public:
  explicit StampReader(port::Clock& clock) : clock_(clock) { resample(); }

  // Looks for a step; to be called before a queue is read. Cost: three readings of the clock.
  void check();
  // The queue was read to its end: what comes is of the new time.
  void drained() { in_doubt_ = false; }
  std::optional<port::Instant> instant(Timestamp stamp) const;
  std::uint64_t steps() const { return steps_; }

 private:
  void resample();

  port::Clock& clock_;
  std::int64_t offset_ = 0;  // monotonic less time of day
  bool in_doubt_ = false;
  std::uint64_t steps_ = 0;
};

}  // namespace weft::adapt::live
