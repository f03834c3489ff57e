// What links carry in equal intervals of a run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "engine/packet/packet_run.hpp"

namespace weft::engine::packet {

// Up to `most` intervals (even) from time 0 on. When they are full, neighbours become one and an
// interval is twice as long: a run is cut into at least most / 2, the last of which it may not
// fill.
class LoadRecorder {
 public:
  LoadRecorder() = default;  // records nothing
  explicit LoadRecorder(std::size_t most);

  // When sample() is due; `never` where nothing is recorded (any more).
  Ps next() const { return next_; }
  // `bytes_of(id)` of each link: what it has carried so far. `links` may only grow at its end.
  template <class BytesOf>
  void sample(std::span<const std::uint32_t> links, const BytesOf& bytes_of) {
    now_.clear();
    for (const std::uint32_t id : links) now_.push_back(bytes_of(id));
    close_interval();
  }
  void stop() { next_ = never; }
  // With what was carried since the last sample as a last interval.
  template <class BytesOf>
  LinkLoads take(std::span<const std::uint32_t> links, const BytesOf& bytes_of) {
    if (most_ == 0) return {};
    sample(links, bytes_of);
    return finish(links);
  }

 private:
  void close_interval();
  LinkLoads finish(std::span<const std::uint32_t> links);

  std::size_t most_ = 0;
  Ps next_ = never;
  LinkLoads loads_;
  std::vector<std::uint64_t> before_, now_;  // carried up to the last sample; scratch
};

// The loads of a run from those of its parts, in intervals as LoadRecorder has them.
class LoadSum {
 public:
  LoadSum(std::size_t most, std::size_t link_count);
  // Of a part that began at `start`. What one of its intervals carried is spread evenly over it.
  // Cost: O(intervals x links) of the part; O(links) where it is within an interval of the run.
  void add(Ps start, const LinkLoads& part);
  LinkLoads take() { return std::move(loads_); }

 private:
  std::size_t most_;
  LinkLoads loads_;
};

}  // namespace weft::engine::packet
