// Labs without root: a user namespace in which this user is root, kept by a process of the lab.
#pragma once

#include <sys/types.h>

#include <string>

#include "adapt/lab/process.hpp"
#include "base/result.hpp"

namespace weft::adapt::lab {

// Whether this process may make namespaces, mounts and interfaces itself: CAP_SYS_ADMIN,
// CAP_NET_ADMIN and CAP_NET_RAW are effective.
bool is_privileged();
// Whether only one user exists here, as in the namespaces of enter_new_user_namespace().
bool is_single_user();
// The user id by which the machine knows this process.
uid_t outer_user();

// Moves this process into a new user, mount and network namespace, as root there: /run and /var/tmp
// are fresh, and /etc/group lists root as a member of the groups that FRRouting asks for. The
// process must have no other thread. Fails: Errc::io naming the call that was refused.
Status enter_new_user_namespace();

// Moves this process into the namespaces of a lab's keeper. The process must have no other thread.
// Fails: Errc::io.
Status enter_user_namespace_of(const ProcessId& keeper);

}  // namespace weft::adapt::lab
