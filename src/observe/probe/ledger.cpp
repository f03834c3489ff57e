#include "observe/probe/ledger.hpp"

#include <bit>

#include "base/check.hpp"

namespace weft::observe::probe {

Ledger::Ledger(std::size_t capacity)
    : entries_(std::bit_ceil(capacity)), mask_(entries_.size() - 1) {}

void Ledger::push(const LedgerEntry& entry) {
  WEFT_CHECK(!full());
  at(next_++) = entry;
  ++open_;
  ++in_flight_;
}

LedgerEntry* Ledger::find(std::uint64_t probe) {
  return probe < tail_ || probe >= next_ ? nullptr : &at(probe);
}

void Ledger::answer(std::uint64_t probe) {
  LedgerEntry* entry = find(probe);
  WEFT_CHECK(entry != nullptr && entry->state == LedgerEntry::State::open);
  entry->state = LedgerEntry::State::answered;
  --open_;
  if (probe >= aged_) --in_flight_;
}

}  // namespace weft::observe::probe
