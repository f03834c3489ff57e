#include "operate/triage/pauses.hpp"

namespace weft::operate::triage {

Evidence Pauses::resolve(const Evidence& evidence) {
  Evidence out = evidence;
  if (!evidence.is_indirect) {
    if (evidence.via.valid()) last_[evidence.via] = {evidence.at, evidence.part};
    return out;
  }
  // Where the record named a peer, its place is that cable.
  if (!parts_.is_congestion(evidence.part)) return out;
  const Pause& pause = last_[parts_.congested(evidence.part)];
  if (pause.by.valid() && evidence.at - pause.at <= rules_.event(evidence.kind).wait_ns) {
    out.part = pause.by;
    out.is_indirect = false;
  }
  return out;
}

}  // namespace weft::operate::triage
