// Recorded link events as a time line of states.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/config.hpp"
#include "base/timestamp.hpp"
#include "model/events/record.hpp"
#include "model/fabric/fabric.hpp"

namespace weft::plan::replay {

// What was wrong at a time, as `faults:` of a scenario names it, sorted: {"link_down", "a--b"}.
struct Trouble {
  std::string kind, key, name;  // "link_down", "link", "rtsw:0--ctsw:1"
  auto operator<=>(const Trouble&) const = default;
};
using State = std::vector<Trouble>;
Config faults_of(const State& state);

struct Interval {
  Timestamp from, until;
  std::uint32_t state;  // in Timeline::states
};
struct Timeline {
  std::vector<State> states;  // distinct, in order of appearance
  std::vector<Interval> intervals;
  std::uint64_t used = 0, ignored = 0;  // records
  std::uint64_t unknown = 0;            // of a part that the fabric does not have
};

struct Window {
  std::optional<Timestamp> from, until;  // none: the first, the last record
};

// link_down, interface_down and link_up of a cable, port or link (a cable is up when every end that
// said otherwise says so); nic_down and nic_up of a NIC's ports; drain and undrain of cables,
// switches and NICs, also by the end that a drain names. Everything else is ignored and counted, as
// is what was down before the first record; so are, apart, records of parts that the fabric does
// not have. Records may be in any order. Fails: Errc::value where nothing lies in the window. Cost:
// O(records log records).
Result<Timeline> timeline_of(const model::Fabric& fabric, const model::RecordSet& records,
                             const Window& window);

}  // namespace weft::plan::replay
