// Evidence in order of event time, whatever the order in which it came.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "operate/triage/evidence.hpp"

namespace weft::operate::triage {

// Seconds of evidence (tenths, where the lateness is less than one), each let go as a whole when
// the watermark has passed it. The watermark follows the upper quartile of the last times seen,
// `lateness` behind: a few clocks that run hours ahead do not move it, and where it stands never
// changes what comes out, only when.
class EventQueue {
 public:
  struct Counts {
    std::uint64_t late = 0;   // its slice of time had been let go
    std::uint64_t ahead = 0;  // so far in the future that there was no room left
  };

  explicit EventQueue(std::int64_t lateness_ns);

  // Cost: O(1), O(log) where times are far apart.
  void push(const Evidence& evidence);
  // Time has come to `now`, as a clock says that can be believed.
  void advance(std::int64_t now_ns);
  // Everything left may be let go.
  void close();
  // The next slice that is due, in order; nullptr when there is none. Valid until the next call.
  // Cost: O(n log n) in its evidence.
  const std::vector<Evidence>* next();

  // All evidence before this time was let go, once next() gives nothing; the least number before
  // anything is known.
  std::int64_t watermark_ns() const;
  // The time to which advance() has to be called before next() gives something; none: no evidence
  // waits.
  std::optional<std::int64_t> next_due_ns() const;

  std::int64_t lateness_ns() const { return lateness_ns_; }
  const Counts& counts() const { return counts_; }
  // The smallest serial that waits, or the largest number. Cost: O(size).
  std::uint64_t oldest_serial() const;
  // Of all that waits. Cost: O(size).
  void append_serials(std::vector<std::uint64_t>& out) const;
  std::size_t size() const { return ring_size_ + far_size_; }

 private:
  static constexpr std::size_t window = 64;
  static constexpr std::size_t far_max = 1'000'000;

  void observe(std::int64_t at_ns);
  std::int64_t slice_of(std::int64_t ns) const;
  bool is_near(std::int64_t slice) const;
  std::vector<Evidence>& slot(std::int64_t slice) {
    return ring_[static_cast<std::size_t>(slice) & (ring_.size() - 1)];
  }
  std::optional<std::int64_t> next_slice() const;

  std::int64_t lateness_ns_, granule_ns_;
  std::vector<std::vector<Evidence>> ring_;
  std::map<std::int64_t, std::vector<Evidence>> far_;  // slices that the ring has no room for
  std::size_t ring_size_ = 0, far_size_ = 0;
  std::vector<Evidence> released_;
  std::array<std::int64_t, window> seen_{};
  std::size_t seen_count_ = 0;
  bool is_started_ = false;
  std::int64_t first_ = 0;  // the earliest slice that is still to be let go
  std::int64_t due_ = 0;    // the first one that is not yet due
  Counts counts_;
};

}  // namespace weft::operate::triage
