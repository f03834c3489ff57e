// `weft localise`: from recorded evidence to what is broken.
#pragma once

#include <cstdint>
#include <string>

namespace CLI {
class App;
}

namespace weft::cli {

struct Common;

struct LocaliseArgs {
  std::string evidence;  // file; "-" is standard input
  std::string fabric, counters, truth;
  std::string window;  // empty: all evidence is one window
  std::uint32_t card_ports = 0;
  double loss = 1e-3;
};

// Declares the options on the command; `args` must outlive it.
void add_localise(CLI::App& command, LocaliseArgs& args);
int localise_command(const Common& common, const LocaliseArgs& args);

}  // namespace weft::cli
