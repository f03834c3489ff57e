// Starting programs: fork and exec, with nothing inherited by accident.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.hpp"
#include "base/result.hpp"

namespace weft {
inline namespace os {

// Both ends are close-on-exec.
struct Pipe {
  Fd read, write;
};
Result<Pipe> make_pipe();

struct ChildSpec {
  std::vector<std::string> argv;                        // argv[0] is the path of the program
  std::optional<std::vector<std::string>> environment;  // "NAME=value"; none: the caller's
  int output = -1, errors = -1;                         // become its standard output and error
  // Runs in the child before its program. Between fork() and exec() of a process with threads only
  // plain system calls are allowed. Returns 0, or an errno to give up with.
  std::function<int()> prepare;
};

// A child process that waits to execute its program, so that its pid can be written down first. It
// has no input, an empty signal mask and no other descriptor than its output and error. When the
// parent dies or drops it before execute(), it ends without having run anything.
class Child {
 public:
  // Fails: Errc::io.
  static Result<Child> start(const ChildSpec& spec);
  ~Child();
  Child(Child&& other) noexcept
      : pid_(std::exchange(other.pid_, 0)),
        hold_(std::move(other.hold_)),
        trouble_(std::move(other.trouble_)) {}
  Child& operator=(Child&&) = delete;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  // Returns 0 when it executes its program; the caller then waits for its end. Else the errno of
  // what failed: it has ended and been waited for.
  int execute();

 private:
  Child(pid_t pid, Pipe hold, Fd trouble)
      : pid_(pid), hold_(std::move(hold)), trouble_(std::move(trouble)) {}
  void discard();

  pid_t pid_;  // 0: moved from
  // Open until execute(), also to read: to write to a child that has given up is no SIGPIPE then.
  Pipe hold_;
  Fd trouble_;
};

}  // namespace os
}  // namespace weft
