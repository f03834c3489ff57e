// Plans as JSON lines, one flow a line.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/line_reader.hpp"
#include "observe/probe/plan.hpp"

namespace weft::observe::probe {

// {"src", "dst", "sport", "dport", "probes", "window_s", "forward": [...], "back": [...],
// "t": when a sweep learned the paths}.
std::string to_json_lines(const model::Fabric& fabric, const Plan& plan,
                          const PlanOptions& options);

// One line of a plan, or of what a sweep has learned.
struct PlanLine {
  model::NodeId src, dst;
  std::uint16_t source_port = 0, target_port = 0;
  std::uint64_t probes = 1;
  double window_s = 0;                       // 0: not said
  std::vector<model::LinkId> forward, back;  // empty: not said
  std::vector<model::LinkId> seen;           // of a path that was not seen to its end
  std::optional<Timestamp> learned;          // as PlannedFlow::learned
};
// Needed are src, dst and sport. Fails with up to 100 errors by line. At most a million lines.
Result<std::vector<PlanLine>> read_plan(const model::Fabric& fabric, LineReader& lines);

}  // namespace weft::observe::probe
