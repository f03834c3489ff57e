#include "os/process.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "os/error.hpp"

namespace weft {
inline namespace os {
namespace {

constexpr int exit_without_program = 127;

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

// What the child needs, made before fork().
struct Plan {
  char* const* argv;
  char* const* environment;
  const ChildSpec& spec;
  int hold, hold_of_parent, trouble;
};

// 0, or the errno of what failed.
int set_up(const Plan& plan) {
  close(plan.hold_of_parent);  // else it would wait for itself
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  if (plan.spec.prepare)
    if (const int error = plan.spec.prepare(); error != 0) return error;
  const int null = open("/dev/null", O_RDONLY);
  if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(plan.spec.output, STDOUT_FILENO) < 0 ||
      dup2(plan.spec.errors, STDERR_FILENO) < 0)
    return errno;
  return 0;
}

// All other descriptors, also those that a library has opened without close-on-exec; before the
// wait, as they may hold locks of a parent that is killed meanwhile.
void close_others(const Plan& plan) {
  const auto [low, high] = std::minmax(plan.hold, plan.trouble);
  const auto close_all = [](int first, int last) {
    if (first <= last) close_range(static_cast<unsigned>(first), static_cast<unsigned>(last), 0);
  };
  close_all(STDERR_FILENO + 1, low - 1);
  close_all(low + 1, high - 1);
  close_range(static_cast<unsigned>(high) + 1, ~0u, 0);
}

[[noreturn]] void become(const Plan& plan) {
  int error = set_up(plan);
  if (error == 0) {
    close_others(plan);
    char go = 0;
    ssize_t size = 0;
    do {
      size = read(plan.hold, &go, 1);
    } while (size < 0 && errno == EINTR);
    if (size != 1) _exit(exit_without_program);
    close(plan.hold);
    execve(plan.argv[0], plan.argv, plan.environment);
    error = errno;
  }
  static_cast<void>(!write(plan.trouble, &error, sizeof error));
  _exit(exit_without_program);
}

}  // namespace

Result<Pipe> make_pipe() {
  std::array<int, 2> fds{};
  if (pipe2(fds.data(), O_CLOEXEC) != 0) return system_failure("creating a pipe", errno);
  return Pipe{Fd(fds[0]), Fd(fds[1])};
}

Result<Child> Child::start(const ChildSpec& spec) {
  std::vector<std::string> argv = spec.argv;
  std::vector<std::string> environment = spec.environment.value_or(std::vector<std::string>());
  const std::vector<char*> arguments = pointers(argv), variables = pointers(environment);
  WEFT_TRY(Pipe hold, make_pipe());
  WEFT_TRY(Pipe trouble, make_pipe());
  const Plan plan{arguments.data(),
                  spec.environment ? variables.data() : environ,
                  spec,
                  hold.read.get(),
                  hold.write.get(),
                  trouble.write.get()};
  const pid_t pid = fork();
  if (pid < 0) return system_failure("starting " + argv.front(), errno);
  if (pid == 0) become(plan);
  return Child(pid, std::move(hold), std::move(trouble.read));
}

Child::~Child() {
  if (pid_ != 0 && hold_.write.valid()) discard();
}

void Child::discard() {
  hold_ = {};
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

int Child::execute() {
  const char go = 1;
  int error = write(hold_.write.get(), &go, 1) == 1 ? 0 : errno;
  if (error == 0) {
    int reported = 0;
    ssize_t size = 0;
    do {
      size = read(trouble_.get(), &reported, sizeof reported);
    } while (size < 0 && errno == EINTR);
    if (size == static_cast<ssize_t>(sizeof reported)) error = reported;
  }
  if (error != 0)
    discard();
  else
    hold_ = {};
  return error;
}

}  // namespace os
}  // namespace weft
