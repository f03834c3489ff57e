// Processes that the lab starts: started so that none is lost, killed so that no other is hit.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace weft::adapt::lab {

// What tells a process from a later one with the same pid.
struct ProcessId {
  pid_t pid = 0;
  std::uint64_t start_ticks = 0;  // since boot, as /proc/PID/stat has it
  std::string exe;                // path of the program
};

// A process of the lab: `role` is "zebra", "bgpd", "bfdd", "snmpd", "keeper" or what a fault adds;
// `node` is the name of the switch or host it works for, "" for the lab as a whole.
struct LabProcess {
  ProcessId id;
  std::string role, node;
};

struct ProcessSpec {
  std::string role, node;
  std::string netns;              // "": the caller's
  std::vector<std::string> argv;  // argv[0] is the path of the program
  std::string output;             // file for standard output and error; "": /dev/null
  int niceness = 0;               // below 0 where the system allows it
};

// Starts a process in the background, in a session of its own, and writes it to `journal` (a file
// of JSON lines, appended) before it executes its program: whoever dies in between leaves either a
// journalled process or none. Fails: Errc::io (also: the program is not there), naming argv[0].
Result<LabProcess> start_process(const ProcessSpec& spec, const std::string& journal);

// Writes down a process that was started otherwise, as start_process does. Fails: Errc::io.
Status note_process(const LabProcess& process, const std::string& journal);

// All processes ever written to a journal; none where there is no file. Lines that are cut short
// by a crash are skipped.
std::vector<LabProcess> read_journal(const std::string& journal);

// Whether exactly that process (pid, start time and program) still runs; zombies do not.
bool is_alive(const ProcessId& process);
// Fails: Errc::unknown when it does not run any more.
Status send_signal(const ProcessId& process, int signal);
// SIGTERM (and SIGCONT), `patience` later SIGKILL, to all at once; waits for their end. Those that
// are gone already are no failure; one that has not executed its program yet has a second to do so.
Status end_processes(std::span<const LabProcess> processes, std::chrono::milliseconds patience);

std::optional<std::uint64_t> start_ticks_of(pid_t pid);

}  // namespace weft::adapt::lab
