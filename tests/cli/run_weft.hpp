// Runs the built `weft` and keeps what it said.
#pragma once

#include <string>
#include <vector>

#include "base/test_folder.hpp"

namespace weft::cli_test {

struct Outcome {
  int status = -1;  // the exit status; -1 when a signal ended it
  std::string out, err;
  long memory_kib = 0;  // the most that was resident at a time; 0 where that is not measured
};

// Sanitizers need memory of their own, so that bounds on it mean nothing.
#ifdef WEFT_SANITIZED
inline constexpr bool memory_counts = false;
#else
inline constexpr bool memory_counts = true;
#endif

// A directory of its own for one test, removed at the end. `weft` runs with it as current
// directory.
class Scratch {
 public:
  void write(const std::string& name, const std::string& text) const;
  bool has(const std::string& name) const;
  // The text of a file, "" when there is none.
  std::string read(const std::string& name) const;
  // The names of all files below, sorted.
  std::vector<std::string> files() const;
  // run({"flows", "--fabric", "f.yaml"}). No shell sees the arguments; standard input is empty.
  Outcome run(const std::vector<std::string>& arguments) const;
  // Starts it, with its output going to that file and its complaints to the same with ".err"
  // behind; returns its process.
  int start(const std::vector<std::string>& arguments, const std::string& out) const;

  const std::string& path() const { return folder_.path(); }

 private:
  TestFolder folder_;
};

// The exit status of a started process; -1 when a signal ended it.
int wait_for(int process);

// The top of the source tree, for scenarios/ and the like.
std::string tree();

}  // namespace weft::cli_test
