// Signals as something to read, so that none interrupts anything.
#pragma once

#include "base/fd.hpp"
#include "base/result.hpp"

namespace weft::adapt::live {

// From its making on, SIGINT, SIGTERM, SIGUSR1 and, where it is kept, SIGHUP are blocked in this
// thread and kept here.
class Signals {
 public:
  enum class Seen : std::uint8_t { none, stop, show, hangup };
  // What SIGHUP does: end the program, as ever, or be seen here.
  enum class Hangup : std::uint8_t { ends, is_kept };
  static Result<Signals> open(Hangup hangup = Hangup::ends);
  // The next one that came; does not wait.
  Seen take();
  int fd() const { return fd_.get(); }

 private:
  explicit Signals(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

// Ahead of ordinary programs where that is allowed: a late probe or answer measures our own host.
// Its share of the processor stays small. Failure only costs precision.
void prefer_early_turns();

// Timers of this thread end when they should rather than when it suits the system. Failure only
// costs precision.
void prefer_exact_timers();

}  // namespace weft::adapt::live
