// Running a program of somebody else's, and being done with it in time.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "os/keep.hpp"

namespace weft {
inline namespace os {

struct ProgramSpec {
  std::vector<std::string> argv;         // argv[0] is a path with a "/"
  std::vector<std::string> environment;  // "NAME=value"; nothing else is passed on
  std::chrono::milliseconds patience{20'000};
  std::size_t output_bytes_max = 65'536;  // kept of each stream; the rest is read and dropped
  Keep keep = Keep::begin;                // of its output: the end may be twice as long
};

struct ProgramOutcome {
  int exit_code = -1;  // -1: it was ended by a signal
  int signal = 0;
  bool timed_out = false;
  bool is_cut = false;  // more was printed than is kept
  std::string output, errors;
  std::chrono::milliseconds took{0};
};

// Executes it without a shell, with no input, in a process group of its own, and waits. When it has
// ended, or its time is over, the whole group is killed, so that no children of it stay behind; one
// that has left the group on purpose is not waited for. Fails: Errc::io where it cannot be started.
Result<ProgramOutcome> run_program(const ProgramSpec& spec);

}  // namespace os
}  // namespace weft
