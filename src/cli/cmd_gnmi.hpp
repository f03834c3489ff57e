// `weft gnmi`: subscribes to devices and prints what they measure, or what that means.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace weft::cli {

struct Common;

struct GnmiArgs {
  std::string targets;                        // CSV
  std::string fabric, rules;                  // none: samples instead of records
  std::string addresses;                      // CSV of what is named otherwise than in the fabric
  std::vector<std::string> paths, on_change;  // none: the usual ones
  std::string mode = "stream", encoding = "auto";
  std::string every = "10 s", silence = "30 s", duration;
};

// Declares the options on the command; `args` must outlive it.
void add_gnmi(CLI::App& command, GnmiArgs& args);
int gnmi_command(const Common& common, const GnmiArgs& args);

}  // namespace weft::cli
