// Ctrl-C as a wish to end soon, for long work that can stop between two pieces.
#pragma once

#include <csignal>
#include <string>

namespace weft {
inline namespace os {

// While it lives, the first SIGINT or SIGTERM prints `notice` on standard error and is remembered;
// the next one ends the process as ever. One at a time in a process.
class Interrupt {
 public:
  explicit Interrupt(std::string notice);
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  // The signal that came; 0: none. Safe from any thread.
  static int signal();

 private:
  struct sigaction int_, term_;
};

}  // namespace os
}  // namespace weft
