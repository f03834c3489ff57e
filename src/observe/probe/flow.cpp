#include "observe/probe/flow.hpp"

#include <array>

namespace weft::observe::probe {

std::string_view to_text(Unknown why) {
  constexpr std::array<std::string_view, 6> names{
      "none", "not_sent", "prober_busy", "responder_silent", "unanswered", "forgotten"};
  return names[static_cast<std::size_t>(why)];
}

void FlowCounts::merge(const FlowCounts& other) {
  // Known in sum only where both are.
  if (lost_forward && other.lost_forward)
    *lost_forward += *other.lost_forward;
  else
    lost_forward.reset();
  sent += other.sent;
  answered += other.answered;
  late += other.late;
  lost += other.lost;
  damaged_forward += other.damaged_forward;
  damaged_back += other.damaged_back;
  duplicates += other.duplicates;
  refused += other.refused;
  remarked += other.remarked;
  unknown += other.unknown;
  if (why == Unknown::none) why = other.why;
  heard = heard || other.heard;
  overflows += other.overflows;
  rtt.merge(other.rtt);
}

}  // namespace weft::observe::probe
