// Storms of faults as networks have them, for triage to be judged by. Written apart from
// operate/triage and from `weft storm`: no window, threshold or table of theirs is used here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/events/record.hpp"
#include "model/fabric/fabric.hpp"

namespace weft::foreign {

// Every parameter (pauses, durations, counts, shares) is drawn from a wide range, evenly in its
// logarithm. A half draws from two of the range's quarters: what was looked at while triage was
// worked on, or what was held out.
enum class Half : std::uint8_t { seen, held_out };

struct Fault {
  std::string kind;                 // the table's row: "power of some racks"
  std::vector<std::string> causes;  // kinds of cause that name it right
  std::vector<std::string> roots;   // and names of the root
  std::uint32_t records = 0;        // that speak of it
};

struct Storm {
  std::vector<Fault> faults;
  model::RecordSet set;                // by time of receipt
  std::vector<std::int32_t> fault_of;  // by row: index in `faults`; -1: background
};

struct Options {
  std::uint64_t seed = 1;
  Half half = Half::seen;
  std::uint32_t faults = 150;
  double hours = 6;
  // Racks of each power feed; a feed that dies takes all of them. None: no such faults.
  std::vector<std::pair<std::string, std::vector<std::string>>> feeds;
};

// Needs racks with hosts below one rack switch each, and spines without hosts.
Storm make_storm(const model::Fabric& fabric, const Options& options);

}  // namespace weft::foreign
