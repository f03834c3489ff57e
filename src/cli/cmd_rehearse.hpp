// `weft rehearse`: weeks of operations on a simulated network, in seconds.
#pragma once

#include <cstdint>
#include <string>

namespace CLI {
class App;
}

namespace weft::cli {

struct Common;

struct RehearseArgs {
  std::string fabric, policy, model;
  std::string baseline_policy, baseline_model;  // of what it is compared with; "": as the above
  std::uint32_t days = 30, seeds = 1;
};

// Declares the options on the command; `args` must outlive it.
void add_rehearse(CLI::App& command, RehearseArgs& args);
int rehearse_command(const Common& common, const RehearseArgs& args);

}  // namespace weft::cli
