// What a wire does to frames, in plain memory: no socket, no clock of its own.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/rng.hpp"
#include "base/units.hpp"

namespace weft::adapt::lab {

// A wire that does nothing by default. Shares are of frames, 0 to 1.
struct WireModel {
  Duration delay{};
  Duration jitter{};  // uniform in [0, jitter]; order is kept, as a queue keeps it
  double corrupt = 0;
  double duplicate = 0;
  double reorder = 0;
  Duration hold{};  // how much later a reordered frame leaves
  Rate rate{};      // 0: unlimited
  Bytes queue{};    // bound of the queue in front of `rate`
  Bytes ecn{-1};    // backlog above which ECT packets become CE; -1: never
  std::uint64_t seed = 1;
};

// Frames, but for the last. Read by others while the wire runs: each is exact, together they may
// be a frame apart.
struct WireCount {
  std::uint64_t received = 0, sent = 0;
  std::uint64_t corrupted = 0, duplicated = 0, reordered = 0, marked = 0;
  std::uint64_t overflowed = 0;   // dropped by the bounded queue
  std::uint64_t unread = 0;       // dropped because the wire did not keep up with reading
  std::uint64_t unsent = 0;       // refused by the interface (it is down)
  std::uint64_t late_ns_max = 0;  // how far behind its own plan the wire has been
};

// The frames on their way. Deterministic: the same frames at the same times and the same seed give
// the same fates. Bounds: wire_frames_max frames and wire_bytes_max bytes; what comes above is
// dropped and counted in `overflowed`. Cost: O(log frames) each.
inline constexpr std::size_t wire_frames_max = 65'536;
inline constexpr std::size_t wire_bytes_max = std::size_t{128} << 20;

class WireQueue {
 public:
  using Frame = std::span<const std::uint8_t>;

  explicit WireQueue(const WireModel& model) : model_(model), rng_(model.seed) {}

  // Takes a frame that arrived at `now_ns` (any clock that does not step back).
  void admit(std::int64_t now_ns, Frame frame);
  // When the next frame is to leave; the largest value when there is none.
  std::int64_t due_ns() const { return empty() ? never : heap_.front().due_ns; }
  bool empty() const { return heap_.empty(); }
  std::size_t waiting() const { return heap_.size(); }
  // The frame that leaves next. Only when not empty.
  Frame front() const { return slots_[heap_.front().slot]; }
  void pop();

  WireCount count;

 private:
  static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();
  struct Waiting {
    std::int64_t due_ns;
    std::uint64_t sequence;
    std::uint32_t slot;
    friend auto operator<=>(const Waiting&, const Waiting&) = default;
  };

  bool chance(double share) { return share > 0 && rng_.uniform() < share; }
  void push(std::int64_t due_ns, Frame frame);
  // Time on the slowed link, or -1 when its queue is full. Marks the frame where it has to.
  std::int64_t serve(std::int64_t now_ns, std::vector<std::uint8_t>& frame);

  WireModel model_;
  Rng rng_;
  std::int64_t busy_until_ns_ = 0, last_due_ns_ = 0;
  std::uint64_t sequence_ = 0;
  std::size_t bytes_ = 0;
  std::vector<Waiting> heap_;  // the earliest in front
  std::vector<std::vector<std::uint8_t>> slots_;
  std::vector<std::uint32_t> free_;
  std::vector<std::uint8_t> scratch_;
};

// Sets CE in an Ethernet frame with an ECT IPv4 or IPv6 packet, checksum and all. False, and no
// change, for everything else. From: RFC 3168 section 5, RFC 1624 eqn. 3.
bool mark_ce(std::span<std::uint8_t> frame);

}  // namespace weft::adapt::lab
