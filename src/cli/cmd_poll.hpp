// `weft poll`: asks devices over SNMP or scrapes exporters, and prints what that means.
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
  std::string every = "30 s", timeout = "2 s";
  std::string ca, certificate, key;  // prometheus: PEM files
  std::string traps, senders;        // snmp: where traps come to, and whose
  std::uint64_t count = 0;           // rounds; 0: until stopped
};

// Declare the options on the command; `args` must outlive it.
void add_poll(CLI::App& command, PollArgs& args);
int poll_command(const Common& common, const PollArgs& args);

}  // namespace weft::cli
