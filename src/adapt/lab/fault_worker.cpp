#include "adapt/lab/fault_worker.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "adapt/lab/netns.hpp"
#include "os/error.hpp"
#include "os/process.hpp"

namespace weft::adapt::lab {
namespace {

constexpr int report_fd = 3;
constexpr std::chrono::milliseconds patience{5'000};
constexpr char ready = 'r';
constexpr char failed = 'f';

// What the worker tells its starter: who it is, and then `ready`, or `failed`, a code and a text.
struct Introduction {
  pid_t pid = 0;
  std::uint64_t start_ticks = 0;
};

void report(const void* data, std::size_t size) {
  static_cast<void>(!::write(report_fd, data, size));
}
void report(std::string_view text) { report(text.data(), text.size()); }

std::string own_program() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).string();
}

// Standard streams to /dev/null, the report pipe as 3, nothing else open.
bool shed_descriptors(int report) {
  const int nothing = open("/dev/null", O_RDWR);
  if (nothing < 0 || dup2(report, report_fd) < 0) return false;
  for (int fd = 0; fd < report_fd; ++fd)
    if (dup2(nothing, fd) < 0) return false;
  return close_range(report_fd + 1, ~0u, 0) == 0;
}

LabProcess own_record(const WorkerSpec& spec) {
  const pid_t pid = getpid();
  return {.id = {.pid = pid, .start_ticks = start_ticks_of(pid).value_or(0), .exe = own_program()},
          .role = spec.role,
          .node = spec.node};
}

void await_or_work(const WorkerSpec& spec, const std::function<Result<WorkerBody>()>& prepare) {
  const LabProcess self = own_record(spec);
  const Introduction introduction{self.id.pid, self.id.start_ticks};
  report(&introduction, sizeof introduction);
  auto body = [&]() -> Result<WorkerBody> {
    WEFT_TRY_STATUS(note_process(self, spec.journal));
    return prepare();
  }();
  if (!body) {
    const Error& error = body.error();
    report(fmt::format("{}{}{}", failed, static_cast<char>(error.code), error.text()));
    return;
  }
  report(std::string_view(&ready, 1));
  close(report_fd);
  if (chdir("/") != 0) return;  // it holds no mount
  (*body)();
}

[[noreturn]] void be_worker(const WorkerSpec& spec, int report,
                            const std::function<Result<WorkerBody>()>& prepare) {
  setsid();
  prctl(PR_SET_NAME, spec.role.c_str());
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGTERM);
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  for (const int signal : {SIGPIPE, SIGHUP, SIGINT}) std::signal(signal, SIG_IGN);
  std::signal(SIGTERM, SIG_DFL);
  if (shed_descriptors(report)) await_or_work(spec, prepare);
  _exit(0);
}

// All that the worker reports until it closes the pipe, or what came within `patience`.
std::string hear(int fd) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  std::string heard;
  std::array<char, 4'096> chunk{};
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return heard;
    pollfd event{fd, POLLIN, 0};
    if (poll(&event, 1, static_cast<int>(left.count())) <= 0) continue;
    const ssize_t size = read(fd, chunk.data(), chunk.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0 || heard.size() > chunk.size()) return heard;
    heard.append(chunk.data(), static_cast<std::size_t>(size));
  }
}

std::unexpected<Error> failure_of(std::string_view heard, const WorkerSpec& spec) {
  if (heard.size() >= 2 && heard.front() == failed)
    return fail(static_cast<Errc>(heard[1]), {}, std::string(heard.substr(2)));
  return fail(Errc::io, {}, fmt::format("{} did not become ready", spec.role),
              "the machine may be overloaded; try again");
}

}  // namespace

Result<LabProcess> start_worker(const WorkerSpec& spec,
                                const std::function<Result<WorkerBody>()>& prepare) {
  WEFT_TRY(Pipe reports, make_pipe());
  const pid_t child = fork();
  if (child < 0) return system_failure("fork", errno);
  if (child == 0) {
    // The worker is nobody's child, so that it can outlive us and never becomes a zombie of ours.
    if (fork() == 0) be_worker(spec, reports.write.get(), prepare);
    _exit(0);
  }
  reports.write.reset();
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  const std::string heard = hear(reports.read.get());
  Introduction introduction;
  if (heard.size() < sizeof introduction) return failure_of("", spec);
  std::memcpy(&introduction, heard.data(), sizeof introduction);
  const LabProcess worker{.id = {.pid = introduction.pid,
                                 .start_ticks = introduction.start_ticks,
                                 .exe = own_program()},
                          .role = spec.role,
                          .node = spec.node};
  const std::string_view rest = std::string_view(heard).substr(sizeof introduction);
  if (!rest.empty() && rest.front() == ready) return worker;
  static_cast<void>(end_processes(std::span(&worker, 1), std::chrono::milliseconds(100)));
  return failure_of(rest, spec);
}

}  // namespace weft::adapt::lab
