// `weft sli`: good and bad minutes of recorded evidence.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace weft::cli {

struct Common;

struct SliArgs {
  std::vector<std::string> evidence;  // files; "-" is standard input
  std::string fabric, episodes, objectives, openslo, metrics, from, to, lateness;
};

// Declares the options on the command; `args` must outlive it.
void add_sli(CLI::App& command, SliArgs& args);
int sli_command(const Common& common, const SliArgs& args);

}  // namespace weft::cli
