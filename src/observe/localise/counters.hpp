// What switches count per link and class: it tells congestion from corruption.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/line_reader.hpp"
#include "base/result.hpp"
#include "base/timestamp.hpp"
#include "model/fabric/fabric.hpp"

namespace weft::observe::localise {

// Of one link (its sending port's queue, but for `errors`) and class during one window.
struct LinkCounters {
  Timestamp t;  // start of the window
  model::LinkId link;
  std::string traffic_class = "0";
  std::uint64_t packets = 0;  // sent, or dropped by the queue
  std::uint64_t marks = 0;    // of them, marked for congestion (ECN)
  std::uint64_t drops = 0;    // of them, dropped because the queue was full
  std::uint64_t errors = 0;   // frames that the receiving port found damaged
};

// Reads JSON lines {"t", "link", "class", "packets", "marks", "drops", "errors"}; blank lines are
// skipped, other keys allowed. Needed are t, link and packets. Fails with up to 100 errors by line:
// unknown links, more marks or drops than packets.
Result<std::vector<LinkCounters>> read_counters(const model::Fabric& fabric, LineReader& lines);

// One such line, without the line end.
std::string to_json(const model::Fabric& fabric, const LinkCounters& row);

}  // namespace weft::observe::localise
