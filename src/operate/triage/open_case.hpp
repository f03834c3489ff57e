// Cases that something may still join, with the evidence that they hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/id.hpp"
#include "model/events/case.hpp"
#include "operate/triage/observation.hpp"
#include "operate/triage/parts.hpp"
#include "operate/triage/timers.hpp"

namespace weft::operate::triage {

// A member by a learned relation. What is said again in its place belongs to it until then.
struct LearnedMember {
  Observation said;
  std::int64_t until = 0;
  double confidence = 0;
};

// Rows that a case counts and does not keep, by what they have in common.
struct Omitted {
  Observation sample;
  std::uint64_t records = 0;
  std::int64_t first = 0, last = 0;
};
using OmittedRows = std::map<Stream, Omitted>;
void merge(OmittedRows& to, const OmittedRows& from);

struct OpenCase {
  bool is_open = false;
  CauseKind kind = CauseKind::unknown;
  SuspectId suspect;
  PartId root;
  model::Entity entity;
  std::uint64_t change = 0;
  std::uint64_t number = 0;  // order of opening
  std::int64_t onset = 0, last = 0, cleared_at = 0;
  bool is_clear = false;
  double confidence = 0;
  Tally tally;
  std::vector<Observation> members, unexplained;
  std::vector<LearnedMember> led;
  OmittedRows members_omitted, unexplained_omitted, led_omitted;
  std::uint64_t omitted = 0;  // records in these
  std::size_t thin_at = 0;    // rows kept by which thin() looks at them again
  std::vector<PartId> owned;
  bool is_apart = false;         // proven to be no part of what else fails around it
  std::string name, split_from;  // once it was split; else the name follows from its records

  std::size_t rows() const { return members.size() + unexplained.size() + led.size(); }
  void clear_at(std::int64_t at) {
    if (!is_clear) cleared_at = at;
    is_clear = true;
  }
};

// Of each stream of a case leaves the first and the last `rows`, in their order, and counts those
// between. Cost: amortised O(log streams) a record, for the case must have doubled since the last
// time.
void thin(OpenCase& c, std::size_t rows);
// Takes over the evidence of a lesser case that counts as part of it.
void append_rows(OpenCase& to, const OpenCase& from);

using CaseSlot = Id<struct CaseTag>;

// Invariants: a slot is in use if and only if its case is open and stands under its number; a
// suspect's case is open and of that suspect; every open case has a timer; the slot freed last is
// used first.
class OpenCases {
 public:
  // A case closes after so long without records: one that has recovered, and one that has not.
  OpenCases(std::size_t suspects, std::int64_t silent_ns, std::int64_t unrepaired_ns)
      : silent_ns_(silent_ns), unrepaired_ns_(unrepaired_ns), of_suspect_(suspects) {}

  CaseSlot open(CauseKind kind, PartId root, model::Entity entity, std::int64_t onset);
  void close(CaseSlot slot);

  OpenCase& operator[](CaseSlot slot) { return rows_[slot]; }
  const OpenCase& operator[](CaseSlot slot) const { return rows_[slot]; }
  // In the order of opening.
  const std::map<std::uint64_t, CaseSlot>& by_number() const { return by_number_; }
  // An invalid slot: no case of that number is open.
  CaseSlot numbered(std::uint64_t number) const;
  std::uint64_t next_number() const { return next_number_; }

  // The case of a suspect that failed as a whole, or an invalid slot.
  CaseSlot of(SuspectId suspect) const { return of_suspect_[suspect]; }
  void name_suspect(CaseSlot slot, SuspectId suspect);

  // The next case that has been silent for so long by `now` that it closes.
  std::optional<CaseSlot> pop_silent(std::int64_t now);
  std::optional<std::int64_t> next_timer() const { return timers_.next(); }

 private:
  std::int64_t silent_ns_, unrepaired_ns_;
  Column<CaseSlot, OpenCase> rows_;
  std::vector<CaseSlot> free_;
  std::map<std::uint64_t, CaseSlot> by_number_;
  std::uint64_t next_number_ = 0;
  Column<SuspectId, CaseSlot> of_suspect_;
  Timers<CaseSlot> timers_;
};

}  // namespace weft::operate::triage
