// `weft poll`: asks devices over SNMP or scrapes exporters, and prints what that means.
// `weft traps`: the same of SNMP traps and informs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace weft::cli {

struct Common;

struct PollArgs {
  std::string feed;                  // "snmp" or "prometheus"
  std::vector<std::string> targets;  // snmp: CSV files; prometheus: [DEVICE=]URL
  std::string fabric, addresses;     // names and addresses that the fabric does not have: CSV
  std::string rules, mapping;        // YAML; empty: as built in
  std::string every = "30 s", timeout = "2 s", ca;
  std::uint64_t count = 0;  // rounds; 0: until stopped
};

struct TrapsArgs {
  std::string listen = "127.0.0.1:1162";
  std::string fabric, addresses;
  std::string senders;      // CSV
  std::uint64_t count = 0;  // traps; 0: until stopped
};

// Declare the options on the command; `args` must outlive it.
void add_poll(CLI::App& command, PollArgs& args);
int poll_command(const Common& common, const PollArgs& args);
void add_traps(CLI::App& command, TrapsArgs& args);
int traps_command(const Common& common, const TrapsArgs& args);

}  // namespace weft::cli
