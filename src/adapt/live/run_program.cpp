#include "adapt/live/run_program.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <string_view>
#include <system_error>

#include "base/fd.hpp"

namespace weft::adapt::live {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

constexpr int wait_step_ms = 5;
// For what a program has printed just before its end, and children that hold its output.
constexpr Milliseconds drain_patience{100};

std::unexpected<Error> failure(const std::string& what, int error) {
  return fail(Errc::io, {}, fmt::format("{}: {}", what, std::generic_category().message(error)));
}

struct Pipe {
  Fd read, write;
};

Result<Pipe> make_pipe() {
  std::array<int, 2> fds{};
  if (pipe2(fds.data(), O_CLOEXEC) != 0) return failure("making a pipe", errno);
  return Pipe{Fd(fds[0]), Fd(fds[1])};
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

// What the child needs, made before fork(): after it, in a program with threads, only plain system
// calls are allowed.
struct Child {
  char* const* argv;
  char* const* environment;
  int output, errors, trouble;
};

[[noreturn]] void become(const Child& child) {
  const auto give_up = [&] {
    const int error = errno;
    static_cast<void>(!write(child.trouble, &error, sizeof error));
    _exit(127);
  };
  setpgid(0, 0);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  signal(SIGPIPE, SIG_DFL);
  const int null = open("/dev/null", O_RDONLY);
  if (null < 0 || dup2(null, 0) < 0 || dup2(child.output, 1) < 0 || dup2(child.errors, 2) < 0)
    give_up();
  // All else of ours, also what some library has opened without care, but the way to tell trouble.
  const auto trouble = static_cast<unsigned>(child.trouble);
  if (trouble > 3) close_range(3, trouble - 1, 0);
  close_range(trouble + 1, ~0u, 0);
  execve(child.argv[0], child.argv, child.environment);
  give_up();
  _exit(127);
}

// One stream of the program; closed at its end.
class Stream {
 public:
  Stream(Fd fd, std::size_t bytes_max, port::Keep keep)
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
    if (keep_ == port::Keep::begin) {
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
  port::Keep keep_;
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
    return fail(Errc::value, {}, "a program is named by its path", "write e.g. /usr/bin/netctl");
  std::vector<std::string> argv = spec.argv, environment = spec.environment;
  const std::vector<char*> arguments = pointers(argv), variables = pointers(environment);
  WEFT_TRY(Pipe output, make_pipe());
  WEFT_TRY(Pipe errors, make_pipe());
  WEFT_TRY(Pipe trouble, make_pipe());
  const pid_t pid = fork();
  if (pid < 0) return failure("starting " + spec.argv.front(), errno);
  if (pid == 0)
    become({arguments.data(), variables.data(), output.write.get(), errors.write.get(),
            trouble.write.get()});
  setpgid(pid, pid);  // whoever comes first
  output.write.reset();
  errors.write.reset();
  trouble.write.reset();
  int error = 0;
  if (read(trouble.read.get(), &error, sizeof error) == static_cast<ssize_t>(sizeof error)) {
    waitpid(pid, nullptr, 0);
    return failure("executing " + spec.argv.front(), error);
  }
  Stream out(std::move(output.read), spec.output_bytes_max, spec.keep);
  Stream err(std::move(errors.read), spec.output_bytes_max, port::Keep::begin);
  ProgramOutcome outcome;
  watch(pid, spec, out, err, outcome);
  outcome.output = std::move(out.text);
  outcome.errors = std::move(err.text);
  return outcome;
}

}  // namespace weft::adapt::live
