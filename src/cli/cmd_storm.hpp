// `weft storm`: makes storms of events with known faults in them, and scores cases against these.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace weft::cli {

struct Common;

struct StormArgs {
  std::string fabric, out, format = "records", start;
  std::vector<std::string> types, dialects;
  std::uint32_t faults = 400, ports_per_card = 36, wrong_clocks = 2;
  std::uint64_t lines = 200'000;
  double hours = 6, adjacent = 0, lost = 0.03, doubled = 0.02, starved = 0.01;
  // Of `weft storm score`.
  bool score = false;
  std::string cases, storm;
};

// Declares the options on the command; `args` must outlive it. Returns the sub-command `score`.
CLI::App* add_storm(CLI::App& command, StormArgs& args);
int storm_command(const Common& common, const StormArgs& args);

}  // namespace weft::cli
