// SNMP traps: what `weft traps` and `weft poll` share.
#pragma once

#include <cstdint>
#include <string>

#include "adapt/snmp/trap_receiver.hpp"
#include "base/result.hpp"

namespace weft::cli {

// "ADDRESS:PORT" as `option` has it, and a CSV of who is heard: columns community, or those of a v3
// user and the sender's engine id.
Result<adapt::snmp::TrapReceiverOptions> read_trap_options(const std::string& listen,
                                                           const char* option,
                                                           const std::string& senders);
// For people: what was heard and what it meant.
std::string to_text(const adapt::snmp::TrapReceiverCounts& heard,
                    const adapt::snmp::TrapCounts& read);

}  // namespace weft::cli
