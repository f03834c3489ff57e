// Cables that come back are not trusted at once: the oftener they went, the later.
#pragma once

#include <map>
#include <optional>

#include "base/units.hpp"
#include "model/fabric/state.hpp"

namespace weft::operate::te {

struct Damping {
  Duration hold = 2_s;       // after the first failure
  Duration hold_max = 60_s;  // each further one doubles it, up to here
  Duration forget = 600_s;   // without a failure: all is forgotten
};

// Down counts at once. A cable is down while either direction is.
class LinkHistory {
 public:
  explicit LinkHistory(const Damping& damping) : damping_(damping) {}

  // Times never go back. What is no change is ignored.
  void note(model::CableId cable, bool is_up, Time at);
  // The state of the fabric with what is down, or on hold, set down. `base`: known otherwise, such
  // as drains.
  model::State state_at(Time now, const model::State& base = {}) const;
  // When the next cable on hold may be used again.
  std::optional<Time> next_release(Time now) const;

 private:
  struct Past {
    bool is_up = true;
    std::uint32_t failures = 0;
    Time failed, usable;  // usable: no earlier, once it is up
  };
  Damping damping_;
  std::map<model::CableId, Past> past_;  // of cables that failed
};

}  // namespace weft::operate::te
