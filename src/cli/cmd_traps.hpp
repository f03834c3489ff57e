// `weft traps`: SNMP traps and informs, as records.
#pragma once

#include <cstdint>
#include <string>

#include "adapt/snmp/trap_receiver.hpp"
#include "base/result.hpp"

namespace CLI {
class App;
}

namespace weft::cli {

struct Common;

struct TrapsArgs {
  std::string listen = "127.0.0.1:1162";
  std::string fabric, addresses;
  std::string senders;      // CSV
  std::uint64_t count = 0;  // traps; 0: until stopped
};

// Declare the options on the command; `args` must outlive it.
void add_traps(CLI::App& command, TrapsArgs& args);
int traps_command(const Common& common, const TrapsArgs& args);

// "ADDRESS:PORT" as `option` has it, and a CSV of who is heard: columns community, or those of a v3
// user and the sender's engine id.
Result<adapt::snmp::TrapReceiverOptions> read_trap_options(const std::string& listen,
                                                           const char* option,
                                                           const std::string& senders);
// For people: what was heard and what it meant.
std::string to_text(const adapt::snmp::TrapReceiverCounts& heard,
                    const adapt::snmp::TrapCounts& read);

}  // namespace weft::cli
