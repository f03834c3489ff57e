// `weft triage`: recorded events replayed into cases.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace weft::cli {

struct Common;

struct TriageArgs {
  std::vector<std::string> inputs;   // files; "-" is standard input
  std::vector<std::string> records;  // more of them, always records
  std::string format = "records";    // of the inputs
  std::string inventory, catalogue;  // for raw syslog; empty: none
  std::string reference;             // the year of its stamps; empty: now
  std::string fabric, rules, diff, maintenance, lateness, truth;
  std::string relations, diff_relations;  // learned ones; empty: none
  std::string learn;                      // file to write relations to, instead of cases
  std::uint32_t ports_per_card = 0;       // 0: as the rules say
  bool show_rules = false;
};

// Declares the options on the command; `args` must outlive it.
void add_triage(CLI::App& command, TriageArgs& args);
int triage_command(const Common& common, const TriageArgs& args);

}  // namespace weft::cli
