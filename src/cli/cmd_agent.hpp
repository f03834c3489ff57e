// `weft agent`: watches the machine that it runs on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace weft::cli {

struct Common;

struct AgentArgs {
  std::string fabric, device;
  std::vector<std::string> logs;
  std::string rules, inventory, catalogue;
  std::string to, token, ca, certificate, key;
  std::string spool = "agent-spool", spool_size = "256 MiB";
  std::string interval = "1 s";
  std::uint32_t ports_per_card = 36;
  bool show_rules = false;
};

// Declares the options on the command; `args` must outlive it.
void add_agent(CLI::App& command, AgentArgs& args);
int agent_command(const Common& common, const AgentArgs& args);

}  // namespace weft::cli
