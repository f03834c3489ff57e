// Changes of configuration, as long as sessions may end because of them.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "operate/triage/observation.hpp"
#include "operate/triage/planned.hpp"

namespace weft::operate::triage {

struct Commit {
  std::int64_t at;
  PartId device;
  std::uint64_t change;  // 0: it has no id
  Observation said;
  bool is_taken = false;
};

// In the order of event time. Invariant: each becomes a member of one case at most, and no member
// is taken for the effect of an order later.
class Commits {
 public:
  void add(const Evidence& evidence, bool is_repeat);
  void forget_before(std::int64_t at);
  // Those that an order explains, unless a case has them; how many.
  std::uint64_t drop_planned(const PlannedChanges& planned);
  // Appends those of the change that no case has yet.
  void take(std::uint64_t change, std::vector<Observation>& members);

  bool has(PartId device, std::uint64_t change) const;
  const std::deque<Commit>& rows() const { return rows_; }

 private:
  std::deque<Commit> rows_;
};

}  // namespace weft::operate::triage
