#include "observe/probe/in_flight_table.hpp"

#include <bit>

#include "base/check.hpp"

namespace weft::observe::probe {

InFlightTable::InFlightTable(std::size_t capacity)
    : entries_(std::bit_ceil(capacity)), mask_(entries_.size() - 1) {}

void InFlightTable::push(const LedgerEntry& entry) {
  WEFT_CHECK(!full());
  WEFT_CHECK(open_ <= next_ - tail_ && in_flight_ <= open_);
  at(next_++) = entry;
  ++open_;
  ++in_flight_;
}

LedgerEntry* InFlightTable::find(std::uint64_t probe) {
  return probe < tail_ || probe >= next_ ? nullptr : &at(probe);
}

void InFlightTable::answer(std::uint64_t probe) {
  LedgerEntry* entry = find(probe);
  WEFT_CHECK(entry != nullptr && entry->state == LedgerEntry::State::open);
  entry->state = LedgerEntry::State::answered;
  WEFT_CHECK(open_ > 0);
  --open_;
  if (probe >= aged_) --in_flight_;
}

}  // namespace weft::observe::probe
