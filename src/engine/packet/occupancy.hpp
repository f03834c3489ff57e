// The most bytes that waited in a node at one time. Internal to the room.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/packet/options.hpp"

namespace weft::engine::packet {

// Departures become known late, in no order, each with its time; what is counted as waiting is an
// upper bound. While that stays at or below the known maximum, there is nothing to do. When it
// exceeds it, a batch of entries is recorded, and each departure is taken off from the first entry
// that it precedes. When the batch is full and all departures up to now are known, running sums
// are the exact occupancy at each entry. Occupancy is greatest at an entry, so none is missed.
class OccupancyBatch {
 public:
  explicit OccupancyBatch(std::size_t capacity) : capacity_(capacity) {
    times_.reserve(capacity);
    changes_.reserve(capacity);
  }

  // An entry of `size` bytes; `waiting`, an upper bound, includes them. Times do not decrease.
  void enter(Ps t, std::uint64_t waiting, std::uint32_t size) {
    if (times_.empty()) base_ = static_cast<std::int64_t>(waiting);
    changes_.push_back(times_.empty() ? 0 : size + later_);
    times_.push_back(t);
    later_ = 0;
  }
  // A departure at `start` precedes all entries of that time and after.
  void leave(Ps start, std::uint32_t size) {
    change_from(std::ranges::lower_bound(times_, start)) -= size;
  }
  // Of the departures at `t`, `bytes` followed the entries of that time: a link was resumed.
  void postpone(Ps t, std::uint64_t bytes) {
    change_from(std::ranges::lower_bound(times_, t)) += static_cast<std::int64_t>(bytes);
    change_from(std::ranges::upper_bound(times_, t)) -= static_cast<std::int64_t>(bytes);
  }
  bool full() const { return times_.size() >= capacity_; }
  // The greatest occupancy; all departures up to the last entry must be known. Empties the batch.
  std::uint64_t close() {
    std::int64_t waiting = base_, most = 0;
    for (const std::int64_t change : changes_) most = std::max(most, waiting += change);
    times_.clear();
    changes_.clear();
    later_ = 0;
    return static_cast<std::uint64_t>(most);
  }

 private:
  std::int64_t& change_from(std::vector<Ps>::const_iterator at) {
    if (at == times_.end()) return later_;
    return changes_[static_cast<std::size_t>(at - times_.begin())];
  }

  std::size_t capacity_;
  std::vector<Ps> times_;
  std::vector<std::int64_t> changes_;  // from the occupancy at the entry before
  std::int64_t base_ = 0;              // at the first entry
  std::int64_t later_ = 0;             // change since the last entry
};

}  // namespace weft::engine::packet
