// Evidence on parts that no case explains yet, and when to decide on it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/id.hpp"
#include "operate/triage/observation.hpp"
#include "operate/triage/timers.hpp"

namespace weft::operate::triage {

using PendingSlot = Id<struct PendingTag>;

// What waits on one part.
struct Pending {
  PartId part;
  std::int64_t first = 0, last = 0, due = 0;
  std::int64_t first_down = 0, slack = 0;
  bool has_down = false, is_clear = false, is_alarm = false;
  bool is_up = false;     // the carrier came back
  bool was_held = false;  // for a case that a learned relation may lead to
  Tally tally;
  std::vector<Observation> said;

  std::int64_t onset() const { return has_down ? first_down : first; }
  // Counts one more. Returns the new time to decide, where it changes.
  std::optional<std::int64_t> count(const Evidence& evidence, const Rules& rules);

 private:
  void count_down(const Evidence& evidence, const Rules& rules);
  std::int64_t due_after(const Evidence& evidence, const Rules& rules) const;
};

// All that waits. Invariants: a slot is in use if and only if it names a part; the time to decide
// of every slot in use has a timer; the slot freed last is used first.
class Pendings {
 public:
  PendingSlot open(PartId part, std::int64_t first);
  void close(PendingSlot slot);

  Pending& operator[](PendingSlot slot) { return rows_[slot]; }
  const Pending& operator[](PendingSlot slot) const { return rows_[slot]; }
  // Free slots among them: those without a part.
  std::span<const Pending> rows() const { return rows_.raw(); }

  void schedule(Pending& pending, std::int64_t due) {
    pending.due = due;
    timers_.push(due, pending.part);
  }
  // The next part to decide on by `now`; its time may have changed meanwhile.
  std::optional<Timers<PartId>::Timer> pop_due(std::int64_t now) { return timers_.pop(now); }
  std::optional<std::int64_t> next_timer() const { return timers_.next(); }

 private:
  Column<PendingSlot, Pending> rows_;
  std::vector<PendingSlot> free_;
  Timers<PartId> timers_;
};

}  // namespace weft::operate::triage
