// Records in, cases out: the whole of triage behind one door.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "model/events/case.hpp"
#include "model/events/episode.hpp"
#include "model/events/record.hpp"
#include "model/fabric/fabric.hpp"
#include "operate/triage/context.hpp"
#include "operate/triage/correlator.hpp"
#include "operate/triage/event_queue.hpp"
#include "operate/triage/evidence.hpp"

namespace weft::operate::triage {

// Cases depend on the records alone: any order of arrival within the lateness gives the same ones,
// byte for byte. Memory: the records of the lateness, and those of cases that are still open; these
// are bounded by the parts of the fabric where `bounds` says how many of the same are kept.
class Triage {
 public:
  struct Counts {
    Interpreter::Counts records;
    EventQueue::Counts queue;
    Correlator::Counts cases;
  };

  // `sink` gets each case once nothing can join it any more; `context` must outlive this.
  Triage(const Context& context, Correlator::Sink sink, Correlator::Bounds bounds = {})
      : interpreter_(context.parts, context.rules),
        queue_(context.rules.timing.lateness_ns),
        correlator_(context, interpreter_, std::move(sink), bounds) {}
  Triage(const Triage&) = delete;
  Triage& operator=(const Triage&) = delete;

  // One record; `serial` is what members call it, unique and ascending. False for one that no case
  // can ever hold: its serial may be given again.
  bool add(const model::RecordSet& set, const model::Record& record, std::uint64_t serial) {
    const auto evidence = interpreter_.interpret(set, record, serial);
    if (!evidence) return false;
    queue_.push(*evidence);
    if (++since_release_ >= release_every) release();
    return true;
  }
  // By a clock that can be believed it is `now`.
  void advance(Timestamp now) {
    queue_.advance(now.ns);
    release();
  }
  // No record comes after those so far.
  void finish() {
    queue_.close();
    release();
    correlator_.finish();
  }

  std::vector<Case> open_cases(CaseState state) const { return correlator_.open_cases(state); }
  // See Correlator::changes_since().
  Correlator::News changes_since(Cursor& known, CaseState state) const {
    return correlator_.changes_since(known, state);
  }
  Counts counts() const { return {interpreter_.counts(), queue_.counts(), correlator_.counts()}; }
  // The time to which advance() has to be called before anything changes without another record;
  // none: never.
  std::optional<Timestamp> next_due() const {
    std::optional<std::int64_t> out = queue_.next_due_ns();
    if (const auto timer = correlator_.next_timer()) {
      // The watermark goes by whole seconds.
      const std::int64_t due = (*timer + ns_per_s - 1) / ns_per_s * ns_per_s + queue_.lateness_ns();
      if (!out || due < *out) out = due;
    }
    return out ? std::optional(Timestamp{*out}) : std::nullopt;
  }
  // Members of cases to come have this serial, a larger one or one of a record to come.
  // Cost: O(evidence held).
  std::uint64_t oldest_serial() const {
    return std::min(queue_.oldest_serial(), correlator_.oldest_serial());
  }
  // Appends the serials of all evidence held, in no order, perhaps twice: any other will never be
  // a member of a case again. Cost: O(evidence held).
  void append_serials(std::vector<std::uint64_t>& out) const {
    queue_.append_serials(out);
    correlator_.append_serials(out);
  }
  // It is decided what becomes of records with a smaller serial: they have a case or never will.
  std::uint64_t oldest_waiting() const {
    return std::min(queue_.oldest_serial(), correlator_.oldest_waiting());
  }

 private:
  static constexpr std::uint32_t release_every = 64;

  void release() {
    since_release_ = 0;
    while (const std::vector<Evidence>* second = queue_.next()) correlator_.add(*second);
    correlator_.advance(queue_.watermark_ns());
  }

  Interpreter interpreter_;
  EventQueue queue_;
  Correlator correlator_;
  std::uint32_t since_release_ = 0;
};

}  // namespace weft::operate::triage
