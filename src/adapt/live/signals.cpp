#include "adapt/live/signals.hpp"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>

#include <cerrno>
#include <csignal>

#include "os/error.hpp"

namespace weft::adapt::live {

Result<Signals> Signals::open(Hangup hangup) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1}) sigaddset(&set, signal);
  if (hangup == Hangup::is_kept) sigaddset(&set, SIGHUP);
  Fd fd;
  if (::sigprocmask(SIG_BLOCK, &set, nullptr) == 0)
    fd = Fd(::signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!fd.valid()) return system_failure("cannot wait for signals", errno);
  return Signals(std::move(fd));
}

Signals::Seen Signals::take() {
  signalfd_siginfo info{};
  if (::read(fd_.get(), &info, sizeof info) != sizeof info) return Seen::none;
  if (info.ssi_signo == SIGHUP) return Seen::hangup;
  return info.ssi_signo == SIGUSR1 ? Seen::show : Seen::stop;
}

void prefer_early_turns() {
  constexpr int niceness = -10;
  ::setpriority(PRIO_PROCESS, 0, niceness);
}

void prefer_exact_timers() { ::prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL); }

}  // namespace weft::adapt::live
