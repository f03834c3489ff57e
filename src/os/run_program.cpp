#include "os/run_program.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <string_view>

#include "base/fd.hpp"
#include "os/error.hpp"
#include "os/process.hpp"

namespace weft {
inline namespace os {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

constexpr int wait_step_ms = 5;
// For what a program has printed just before its end, and children that hold its output.
constexpr Milliseconds drain_patience{100};

// One stream of the program; closed at its end.
class Stream {
 public:
  Stream(Fd fd, std::size_t bytes_max, Keep keep)
      : fd_(std::move(fd)), bytes_max_(bytes_max), keep_(keep) {
    fcntl(fd_.get(), F_SETFL, O_NONBLOCK);
  }
  void read_some(bool& is_cut) {
    std::array<char, 16'384> buffer{};
    // Not for ever: a program may print faster than this reads.
    for (int i = 0; i < 64 && fd_.valid(); ++i) {
      const ssize_t size = read(fd_.get(), buffer.data(), buffer.size());
      if (size < 0) return;
      if (size == 0) fd_.reset();
      is_cut = take({buffer.data(), static_cast<std::size_t>(size)}) || is_cut;
    }
  }
  bool is_open() const { return fd_.valid(); }
  int get() const { return fd_.get(); }
  std::string text;

 private:
  // Whether something was dropped.
  bool take(std::string_view bytes) {
    if (keep_ == Keep::begin) {
      const auto fits = std::min(bytes.size(), bytes_max_ - std::min(bytes_max_, text.size()));
      text += bytes.substr(0, fits);
      return fits < bytes.size();
    }
    text += bytes;
    if (text.size() <= 2 * bytes_max_) return false;
    text.erase(0, text.size() - bytes_max_);
    return true;
  }

  Fd fd_;
  std::size_t bytes_max_;
  Keep keep_;
};

void wait_for_output(const Stream& output, const Stream& errors) {
  std::array<pollfd, 2> fds{{{output.get(), POLLIN, 0}, {errors.get(), POLLIN, 0}}};
  poll(fds.data(), fds.size(), wait_step_ms);
  // Both closed: nothing to be woken by.
  if (!output.is_open() && !errors.is_open()) usleep(wait_step_ms * 1'000);
}

void watch(pid_t pid, const ProgramSpec& spec, Stream& output, Stream& errors,
           ProgramOutcome& out) {
  const auto start = Clock::now();
  // Looked at, not taken: as long as it is there nobody else can get its number.
  const auto has_ended = [&] {
    siginfo_t found{};
    return waitid(P_PID, static_cast<id_t>(pid), &found, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           found.si_pid == pid;
  };
  bool ended = false;
  while (!ended && !out.timed_out) {
    wait_for_output(output, errors);
    output.read_some(out.is_cut);
    errors.read_some(out.is_cut);
    ended = has_ended();
    out.timed_out = !ended && Clock::now() - start >= spec.patience;
  }
  kill(-pid, SIGKILL);  // itself, or what it has left behind
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  const auto deadline = Clock::now() + drain_patience;
  while ((output.is_open() || errors.is_open()) && Clock::now() < deadline) {
    wait_for_output(output, errors);
    output.read_some(out.is_cut);
    errors.read_some(out.is_cut);
  }
  if (WIFEXITED(status)) out.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) out.signal = WTERMSIG(status);
  out.took = std::chrono::duration_cast<Milliseconds>(Clock::now() - start);
}

}  // namespace

Result<ProgramOutcome> run_program(const ProgramSpec& spec) {
  if (spec.argv.empty() || spec.argv.front().find('/') == std::string::npos)
    return fail(Errc::value, {}, "a program must be given by its path",
                "write e.g. /usr/bin/netctl");
  WEFT_TRY(Pipe output, make_pipe());
  WEFT_TRY(Pipe errors, make_pipe());
  WEFT_TRY(Child child, Child::start({.argv = spec.argv,
                                      .environment = spec.environment,
                                      .output = output.write.get(),
                                      .errors = errors.write.get(),
                                      .prepare = [] {
                                        setpgid(0, 0);
                                        signal(SIGPIPE, SIG_DFL);
                                        return 0;
                                      }}));
  setpgid(child.pid(), child.pid());  // whoever comes first
  output.write.reset();
  errors.write.reset();
  if (const int error = child.execute(); error != 0)
    return system_failure("executing " + spec.argv.front(), error);
  Stream out(std::move(output.read), spec.output_bytes_max, spec.keep);
  Stream err(std::move(errors.read), spec.output_bytes_max, Keep::begin);
  ProgramOutcome outcome;
  watch(child.pid(), spec, out, err, outcome);
  outcome.output = std::move(out.text);
  outcome.errors = std::move(err.text);
  return outcome;
}

}  // namespace os
}  // namespace weft
