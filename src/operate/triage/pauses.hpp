// Pauses travel up: which switch is full, when several say that they are paused.
#pragma once

#include <cstdint>
#include <limits>

#include "base/id.hpp"
#include "operate/triage/evidence.hpp"

namespace weft::operate::triage {

// Invariant: of each switch it knows the last pause by something below it that is full itself.
class Pauses {
 public:
  Pauses(const Parts& parts, const Rules& rules)
      : parts_(parts), rules_(rules), last_(parts.fabric().node_count()) {}

  // The evidence on the switch that is full: who paused a switch is not full itself where something
  // below it has just paused it too.
  Evidence resolve(const Evidence& evidence);

 private:
  struct Pause {
    std::int64_t at = std::numeric_limits<std::int64_t>::min();
    PartId by;
  };
  const Parts& parts_;
  const Rules& rules_;
  Column<model::NodeId, Pause> last_;
};

}  // namespace weft::operate::triage
