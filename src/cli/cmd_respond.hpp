// `weft respond`: answers probes.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace weft::cli {

struct Common;

struct RespondArgs {
  std::vector<std::string> listen{"0.0.0.0"};
  std::string key, metrics;
  std::string age = "60 s";
  double source_rate = 1e6;  // answers a second
};

// Declares the options on the command; `args` must outlive it.
void add_respond(CLI::App& command, RespondArgs& args);
int respond_command(const Common& common, const RespondArgs& args);

}  // namespace weft::cli
