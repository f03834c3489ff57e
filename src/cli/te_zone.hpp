// weft te on a scenario: central traffic engineering inside a zone.
#pragma once

#include <string>

#include "cli/cli.hpp"

namespace weft::cli {

struct ZoneTeArgs {
  std::string scenario, variant;
  std::string flows;      // CSV; else those of the scenario's jobs
  std::string fail;       // cables and switches
  bool only_hit = false;  // others keep their paths
  bool split = false;     // flows over two QPs, where that helps
  std::string marks;      // CSV to write
  std::string check;      // CSV of marks to judge
};

// Where the assigned marks of --check are worse than hashing, or lead over dead links: work_failed.
int run_zone_te(const Common& common, const ZoneTeArgs& args);

}  // namespace weft::cli
