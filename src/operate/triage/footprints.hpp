// How much can speak for each suspect: most have too little to be worth weighing.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <utility>

#include "base/id.hpp"
#include "operate/triage/parts.hpp"
#include "operate/triage/rules.hpp"

namespace weft::operate::triage {

// Counts by suspect. Invariant: each is the number of alarms that wait, and of cases that began not
// long ago, whose part lies in the suspect's footprint.
class Footprints {
 public:
  Footprints(const Suspects& suspects, const Rules& rules);

  // Cost: O(suspects of the part).
  void add_alarm(PartId part);
  void remove_alarm(PartId part);
  void add_case(PartId root, std::int64_t onset);
  // Cases that began so long before `now` that nothing is weighed against them any more.
  void forget_cases(std::int64_t now);

  std::uint32_t alarms(SuspectId suspect) const { return alarms_[suspect]; }
  std::uint32_t cases(SuspectId suspect) const { return cases_[suspect]; }
  // No weighing of the suspect gives more. Cost: O(1).
  double score_max(SuspectId suspect) const {
    const CauseKind kind = suspects_[suspect].kind;
    return alarms_[suspect] * worth_max_[static_cast<std::size_t>(kind)] +
           cases_[suspect] * price_max_ - rules_.cause(kind).price;
  }

 private:
  const Suspects& suspects_;
  const Rules& rules_;
  Column<SuspectId, std::uint32_t> alarms_, cases_;
  std::deque<std::pair<std::int64_t, PartId>> roots_;  // of these cases, with their onsets
  std::array<double, cause_kind_count> worth_max_{};   // of one alarm, at most
  double price_max_ = 0;
};

}  // namespace weft::operate::triage
