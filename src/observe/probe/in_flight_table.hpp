// The probes whose fate is open, in the order of sending.
#pragma once

#include <cstdint>
#include <vector>

#include "port/probe_io.hpp"

namespace weft::observe::probe {

struct LedgerEntry {
  enum class State : std::uint8_t { open, answered };
  std::uint64_t sequence = 0;
  port::Instant sent;     // as our own program read the clock
  port::Instant stamped;  // as the system noted it; 0: it did not
  std::uint32_t flow = 0;
  State state = State::open;
  port::Stamp stamp = port::Stamp::none;  // whether one was wanted
};

// A ring: probe number n stands at n mod capacity. Numbers count from 0 without a bound. A probe is
// first `aged` (its answer would be late) and later dropped.
class InFlightTable {
 public:
  // Room for `capacity` probes, rounded up to a power of 2.
  explicit InFlightTable(std::size_t capacity);

  bool full() const { return next_ - tail_ == entries_.size(); }
  std::size_t room() const { return entries_.size() - static_cast<std::size_t>(next_ - tail_); }
  std::uint64_t next() const { return next_; }  // number of the next probe
  std::uint64_t open() const { return open_; }
  // Open and not aged.
  std::uint64_t in_flight() const { return in_flight_; }
  bool empty() const { return tail_ == next_; }

  void push(const LedgerEntry& entry);  // not when full
  // nullptr for numbers that were dropped or not given yet.
  LedgerEntry* find(std::uint64_t probe);
  bool is_future(std::uint64_t probe) const { return probe >= next_; }
  // Marks an open entry as answered.
  void answer(std::uint64_t probe);

  // Ages everything sent before `aged`, and drops all sent before `dropped`, calling
  // give_up(entry) for those that are still open.
  template <class GiveUp>
  void expire(port::Instant aged, port::Instant dropped, GiveUp give_up) {
    for (; aged_ < next_ && at(aged_).sent < aged; ++aged_)
      if (at(aged_).state == LedgerEntry::State::open) --in_flight_;
    for (; tail_ < aged_ && at(tail_).sent < dropped; ++tail_)
      if (at(tail_).state == LedgerEntry::State::open) {
        --open_;
        give_up(at(tail_));
      }
  }
  // Of the oldest entry; there must be one.
  const LedgerEntry& oldest() const { return entries_[tail_ & mask_]; }

 private:
  LedgerEntry& at(std::uint64_t probe) { return entries_[probe & mask_]; }

  std::vector<LedgerEntry> entries_;
  std::uint64_t mask_;
  std::uint64_t tail_ = 0, aged_ = 0, next_ = 0;
  std::uint64_t open_ = 0, in_flight_ = 0;
};

}  // namespace weft::observe::probe
