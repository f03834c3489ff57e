// net-snmp's headers, and what both ends of the room do with it. For .cpp files of this room only.
#pragma once

// clang-format off: the library wants its configuration first
#include <net-snmp/net-snmp-config.h>
#include <net-snmp/net-snmp-includes.h>
#include <net-snmp/library/large_fd_set.h>
#include <net-snmp/library/snmpusm.h>
// clang-format on

#include "adapt/snmp/credentials.hpp"
#include "adapt/snmp/value.hpp"

namespace weft::adapt::snmp {

Oid oid_of(const oid* first, std::size_t count);
Value value_of(const netsnmp_variable_list& variable);

// Level, protocols and keys of a v3 user into a session. Fails: Errc::value.
Status set_user(const Credentials& who, netsnmp_session& session);
// The user without a name by which agents are asked for their ids.
void add_nobody();
// Takes what came at a socket; does not wait.
void read_if_ready(void* session, int fd);

}  // namespace weft::adapt::snmp
