// Who comes back: parts that lose a little on many days, and those with many episodes.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "model/events/evidence.hpp"
#include "model/fabric/fabric.hpp"
#include "observe/sli/causes.hpp"

namespace weft::observe::sli {

// A link, cable or switch that lost more than the background on more days than chance has.
struct SlowBurn {
  std::string entity, kind;  // kind: link, cable, switch
  std::int64_t days_suspicious = 0, days_seen = 0;
  std::int64_t first_day = 0, last_day = 0;  // suspicious ones, since 1970
  std::uint64_t sent = 0, lost = 0;          // on the suspicious days
  double background = 0;                     // share of probes lost on those days by the others
  double p_value = 0;                        // of so many suspicious days by chance
};

struct RepeatOffender {
  std::string entity;
  std::size_t no_fault_found = 0;     // of the episodes
  std::vector<std::string> episodes;  // ids by start; planned ones do not count
};

struct Offenders {
  std::vector<SlowBurn> slow;           // worst first
  std::vector<RepeatOffender> repeats;  // two episodes or more; most first
  std::size_t tested = 0;               // links, cables and switches
};

// Crossings and losses per day of every link, cable and switch, and the paths with losses.
// Memory: 16 bytes a day and link, cable or switch, and the paths with losses of each day.
class OffenderBook {
 public:
  explicit OffenderBook(const model::Fabric& fabric);

  // Rows without a path say nothing here. Any order gives the same book.
  // What lies outside the two minutes is left out.
  // Fails: Errc::infeasible when days times parts, or paths with losses, are more than 2^26.
  Status add(const model::EvidenceSet& set, std::int64_t first_minute, std::int64_t last_minute);

  // A day is suspicious when so many losses or more had a probability of at most 1 % at the day's
  // background; a part is named when so many suspicious days have at most 5 % / parts tested
  // (Bonferroni) at 1 % each, and they are at least three. The part with the largest log-likelihood
  // ratio (that of its median suspicious day, times the days) is named first; losses on paths
  // through it are then its own, and the rest is tested anew.
  // At most 50. Cost: O(50 x parts x days).
  std::vector<SlowBurn> slow_burn(std::size_t& tested) const;

 private:
  using Part = std::uint32_t;  // links, then cables, then switches
  struct Count {
    std::uint64_t sent = 0, lost = 0;
  };
  struct Day {
    std::vector<Count> parts;
    std::uint64_t sent = 0, lost = 0;
    std::map<std::uint32_t, std::uint64_t> lossy;  // by path
  };
  class Search;

  Result<Day*> day_of(std::int64_t day);
  void add_row(Day& day, const model::Evidence& row, std::span<const model::LinkId> path);
  void parts_of(std::span<const model::LinkId> path, std::vector<Part>& out) const;
  std::size_t part_count() const;
  std::string name(Part part) const;
  std::string_view kind(Part part) const;

  const model::Fabric& fabric_;
  Column<model::NodeId, Part> part_of_;  // of switches
  std::vector<model::NodeId> switches_;
  std::map<std::int64_t, Day> days_;
  std::map<std::vector<Part>, std::uint32_t> path_ids_;
  std::vector<const std::vector<Part>*> paths_;
  std::size_t lossy_count_ = 0;
  std::vector<Part> scratch_;
};

// Entities by their number of episodes that were not planned; an attribute "resolution" of
// "no_fault_found" counts apart.
std::vector<RepeatOffender> repeat_offenders(const Causes& causes);

}  // namespace weft::observe::sli
