#include "adapt/live/system_clock.hpp"

#include <limits>

namespace weft::adapt::live {
namespace {

// A step smaller than this is not told from two clocks read one after the other.
constexpr std::int64_t slack_ns = 2'000;

std::int64_t read(clockid_t id) {
  timespec t{};
  ::clock_gettime(id, &t);
  return to_ns(t);
}

}  // namespace

port::Instant SystemClock::now() { return {read(CLOCK_MONOTONIC)}; }
Timestamp SystemClock::wall() { return {read(CLOCK_REALTIME)}; }

void StampReader::check() {
  const port::Instant before = clock_.now();
  const std::int64_t wall = clock_.wall().ns + offset_;
  const port::Instant after = clock_.now();
  if (wall >= before.ns - slack_ns && wall <= after.ns + slack_ns) return;
  ++steps_;
  in_doubt_ = true;
  resample();
}

// The sample of several that was interrupted least.
void StampReader::resample() {
  constexpr int tries = 50;
  constexpr std::int64_t good_ns = 500;
  std::int64_t best = std::numeric_limits<std::int64_t>::max();
  for (int i = 0; i < tries && best > good_ns; ++i) {
    const port::Instant before = clock_.now();
    const Timestamp wall = clock_.wall();
    const std::int64_t took = clock_.now() - before;
    if (took >= best) continue;
    best = took;
    offset_ = before.ns + took / 2 - wall.ns;
  }
}

std::optional<port::Instant> StampReader::instant(Timestamp stamp) const {
  if (in_doubt_ || stamp.ns == 0) return std::nullopt;
  return port::Instant{stamp.ns + offset_};
}

}  // namespace weft::adapt::live
