// From evidence to cases: the smallest explanation of what is said, in event time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "operate/triage/board.hpp"
#include "operate/triage/describe.hpp"
#include "operate/triage/pauses.hpp"
#include "operate/triage/planned.hpp"

namespace weft::operate::triage {

// What an onlooker knows of the open cases: a fingerprint of each, by its number.
using Cursor = std::map<std::uint64_t, std::uint64_t>;

// Takes evidence second by second, in order, and hands out each case when it has been quiet for
// long enough that nothing can join it any more.
class Correlator {
 public:
  using Counts = CaseCounts;
  using Sink = std::function<void(Case)>;
  // Of records of one part, kind, source and end a case keeps the first and the last `rows`, and
  // counts those between. At least as many as any count of the rules, so that a case which is
  // split is weighed as if all were kept. By default all are kept.
  struct Bounds {
    std::size_t rows = SIZE_MAX / 2;
  };

  // `context` and `interpreter` must outlive this.
  Correlator(const Context& context, const Interpreter& interpreter, Sink sink, Bounds bounds);

  // Evidence of one second, sorted by order(); seconds ascend.
  // Cost: O(1) for most; a decision costs the footprints of the causes it weighs.
  void add(const std::vector<Evidence>& second);
  // No evidence before `now` comes any more.
  void advance(std::int64_t now) {
    planned_.forget(now);
    run_timers(now);
  }
  // Decides everything that waits and hands out all cases.
  void finish();
  // The cases that are open, in the order of opening, as things stand.
  std::vector<Case> open_cases(CaseState state) const;
  // An open case under a number that it keeps until it closes or is taken over by another one.
  struct Numbered {
    std::uint64_t number = 0;
    Case body;
  };
  struct News {
    std::vector<Numbered> changed;    // or new, in the order of opening
    std::vector<std::uint64_t> gone;  // ascending
  };
  // What became of the open cases since the onlooker's last call.
  // Cost: O(parts of the open cases), and that of describing those that changed.
  News changes_since(Cursor& known, CaseState state) const;
  // No record with a smaller serial is needed any more. Cost: O(evidence held).
  std::uint64_t oldest_serial() const;
  // Appends the serials of all evidence held. Cost: O(evidence held).
  void append_serials(std::vector<std::uint64_t>& out) const;
  // Nor waits one for a decision.
  std::uint64_t oldest_waiting() const;
  // When advance() may have something to do though no evidence comes; none: never.
  std::optional<std::int64_t> next_timer() const;
  const Counts& counts() const { return board_.counts; }

 private:
  void add_one(const Evidence& evidence, bool is_repeat);
  void add_change(const Evidence& evidence, bool is_repeat);
  void run_timers(std::int64_t now);
  void retire(CaseSlot slot);
  Case describe(const OpenCase& c, CaseState state) const;

  // Effects of orders (orders.cpp).
  void add_order(const Evidence& order);
  bool is_planned(const Evidence& evidence) const;
  void forget_planned(PartId part);
  void clear_by_order(PartId part, const Evidence& order);

  const Interpreter& interpreter_;
  const Maintenance& maintenance_;
  Sink sink_;
  PlannedChanges planned_;
  Pauses pauses_;
  Board board_;
};

}  // namespace weft::operate::triage
