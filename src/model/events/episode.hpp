// Something that was so for a while: an injected fault (the truth of a test), a drain, maintenance.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/line_reader.hpp"
#include "base/result.hpp"
#include "base/timestamp.hpp"

namespace weft::model {

inline constexpr Timestamp still_open{INT64_MAX};

struct Episode {
  std::string id, kind;
  std::vector<std::string> entities;  // names of the fabric's grammar
  Timestamp start, end = still_open;  // [start, end)
  std::vector<std::pair<std::string, std::string>> attrs;
};

// Reads JSON lines {"id", "kind", "entities": [], "start", "end" (or null), "attrs": {}}; blank
// lines are skipped, other keys allowed. Fails with up to 100 errors by line: also ids that repeat
// and ends before starts. Names are not looked up.
Result<std::vector<Episode>> read_episodes(LineReader& lines);

// One such line, without the line end.
std::string to_json(const Episode& episode);

}  // namespace weft::model
