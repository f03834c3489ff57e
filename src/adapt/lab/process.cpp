#include "adapt/lab/process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "adapt/lab/netns.hpp"
#include "base/file.hpp"
#include "base/text.hpp"

namespace weft::adapt::lab {
namespace {

using nlohmann::json;

struct Pipe {
  Fd read, write;
};

Result<Pipe> make_pipe() {
  std::array<int, 2> fds{};
  if (pipe2(fds.data(), O_CLOEXEC) != 0) return system_failure("making a pipe", errno);
  return Pipe{Fd(fds[0]), Fd(fds[1])};
}

// What the child needs, made before fork(): between fork() and exec() of a program with threads
// only plain system calls are allowed.
struct Child {
  std::vector<char*> argv;
  int netns, output, release, error, niceness;
  const char* niceness_text;
};

// Best effort. A session is a group of its own to the scheduler where autogroups are on, and then
// the niceness of the group is what counts.
void be_nice(const Child& child) {
  setpriority(PRIO_PROCESS, 0, child.niceness);
  const int group = open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC);
  if (group < 0) return;
  static_cast<void>(!write(group, child.niceness_text, strlen(child.niceness_text)));
  close(group);
}

[[noreturn]] void become(const Child& child) {
  const auto give_up = [&](int error) {
    static_cast<void>(!write(child.error, &error, sizeof error));
    _exit(127);
  };
  setsid();
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  if (child.netns >= 0 && setns(child.netns, CLONE_NEWNET) != 0) give_up(errno);
  const int nothing = open("/dev/null", O_RDONLY);
  if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0) give_up(errno);
  if (dup2(child.output, STDOUT_FILENO) < 0 || dup2(child.output, STDERR_FILENO) < 0)
    give_up(errno);
  if (child.niceness != 0) be_nice(child);
  char go = 0;
  if (read(child.release, &go, 1) != 1) _exit(127);  // the parent died before it took note of us
  execv(child.argv.front(), child.argv.data());
  give_up(errno);
  _exit(127);
}

json to_json(const LabProcess& process) {
  return {{"pid", process.id.pid},
          {"start", process.id.start_ticks},
          {"exe", process.id.exe},
          {"role", process.role},
          {"node", process.node}};
}

Status append_line(const std::string& path, const std::string& line) {
  const Fd file(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!file.valid()) return system_failure("opening " + path, errno);
  if (write(file.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    return system_failure("writing " + path, errno);
  return {};
}

// The error number that the child sent before it gave up, or 0 when it executes its program.
int await_exec(const Fd& from) {
  int error = 0;
  ssize_t size = 0;
  do {
    size = read(from.get(), &error, sizeof error);
  } while (size < 0 && errno == EINTR);
  return size == static_cast<ssize_t>(sizeof error) ? error : 0;
}

Status let_go(const Pipe& release, const Pipe& error, const LabProcess& process,
              const std::string& journal) {
  WEFT_TRY_STATUS(note_process(process, journal));
  const char go = 1;
  if (write(release.write.get(), &go, 1) != 1) return system_failure("releasing a child", errno);
  if (const int failed = await_exec(error.read); failed != 0)
    return system_failure(
        "starting " + process.id.exe, failed,
        failed == ENOENT ? "install it; `weft lab doctor` says what is missing" : "");
  return {};
}

// A handle of the process, if it is that one; the handle cannot come to mean another.
Fd open_exactly(const ProcessId& process) {
  Fd fd(static_cast<int>(syscall(SYS_pidfd_open, process.pid, 0)));
  return fd.valid() && is_alive(process) ? std::move(fd) : Fd();
}

void signal_through(const Fd& process, int signal) {
  static_cast<void>(syscall(SYS_pidfd_send_signal, process.get(), signal, nullptr, 0));
}

// State and start time out of /proc/PID/stat: "pid (name) S ppid ...", where the name may hold
// anything, so that fields are counted from the last parenthesis.
struct Stat {
  char state = 0;
  std::uint64_t start_ticks = 0;
};
std::optional<Stat> stat_of(pid_t pid) {
  const auto text = read_file(fmt::format("/proc/{}/stat", pid), 65'536);
  if (!text) return std::nullopt;
  const std::size_t close = text->rfind(')');
  if (close == std::string::npos) return std::nullopt;
  const auto fields = split(std::string_view(*text).substr(close + 1), ' ');
  constexpr std::size_t start_field = 20;  // starttime is field 22, counted from pid = 1
  if (fields.size() <= start_field || fields[1].empty()) return std::nullopt;
  Stat out{.state = fields[1].front()};
  const std::string_view start = fields[start_field];
  const auto parsed = std::from_chars(start.data(), start.data() + start.size(), out.start_ticks);
  return parsed.ec == std::errc{} ? std::optional(out) : std::nullopt;
}

}  // namespace

std::optional<std::uint64_t> start_ticks_of(pid_t pid) {
  const auto stat = stat_of(pid);
  return stat ? std::optional(stat->start_ticks) : std::nullopt;
}

Result<LabProcess> start_process(const ProcessSpec& spec, const std::string& journal) {
  std::vector<std::string> words = spec.argv;
  const std::string niceness = fmt::format("{}", spec.niceness);
  Child child{.argv = {},
              .netns = -1,
              .output = -1,
              .release = -1,
              .error = -1,
              .niceness = spec.niceness,
              .niceness_text = niceness.c_str()};
  for (std::string& word : words) child.argv.push_back(word.data());
  child.argv.push_back(nullptr);
  Fd netns;
  if (!spec.netns.empty()) {
    WEFT_TRY(netns, open_netns(spec.netns));
  }
  const std::string output = spec.output.empty() ? "/dev/null" : spec.output;
  const Fd out(open(output.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!out.valid()) return system_failure("opening " + output, errno);
  WEFT_TRY(Pipe release, make_pipe());
  WEFT_TRY(Pipe error, make_pipe());
  child.netns = netns.get();
  child.output = out.get();
  child.release = release.read.get();
  child.error = error.write.get();
  const pid_t pid = fork();
  if (pid < 0) return system_failure("starting " + words.front(), errno);
  if (pid == 0) {
    release.write.reset();  // else it would wait for itself
    become(child);
  }
  error.write.reset();
  std::error_code ignored;
  const auto exe = std::filesystem::canonical(words.front(), ignored);
  LabProcess process{.id = {.pid = pid,
                            .start_ticks = start_ticks_of(pid).value_or(0),
                            .exe = ignored ? words.front() : exe.string()},
                     .role = spec.role,
                     .node = spec.node};
  if (Status status = let_go(release, error, process, journal); !status) {
    release.write.reset();
    waitpid(pid, nullptr, 0);
    return std::unexpected(std::move(status).error());
  }
  return process;
}

Status note_process(const LabProcess& process, const std::string& journal) {
  return append_line(journal, to_json(process).dump() + "\n");
}

std::vector<LabProcess> read_journal(const std::string& journal) {
  std::vector<LabProcess> out;
  const auto text = read_file(journal, 64 << 20);
  if (!text) return out;
  for (const std::string_view line : split(*text, '\n')) {
    const json row = json::parse(line, nullptr, false);
    if (!row.is_object() || !row.contains("pid") || !row["pid"].is_number_integer()) continue;
    try {
      out.push_back({.id = {.pid = row.at("pid").get<pid_t>(),
                            .start_ticks = row.at("start").get<std::uint64_t>(),
                            .exe = row.at("exe").get<std::string>()},
                     .role = row.at("role").get<std::string>(),
                     .node = row.at("node").get<std::string>()});
    } catch (const json::exception&) {
      continue;  // cut short, or not ours
    }
  }
  return out;
}

bool is_alive(const ProcessId& process) {
  if (process.pid <= 1) return false;
  const auto stat = stat_of(process.pid);
  if (!stat || stat->start_ticks != process.start_ticks) return false;
  if (stat->state == 'Z' || stat->state == 'X') return false;
  std::error_code error;
  const std::string exe =
      std::filesystem::read_symlink(fmt::format("/proc/{}/exe", process.pid), error).string();
  // Pid and start time are enough where the program's name is not for us to see. A package that
  // was replaced meanwhile shows as "(deleted)".
  if (error) return error.value() == EACCES;
  return exe == process.exe || exe == process.exe + " (deleted)";
}

Status send_signal(const ProcessId& process, int signal) {
  const Fd fd = open_exactly(process);
  if (!fd.valid())
    return fail(Errc::unknown, {},
                fmt::format("process {} ({}) does not run any more", process.pid, process.exe));
  if (syscall(SYS_pidfd_send_signal, fd.get(), signal, nullptr, 0) != 0)
    return system_failure(fmt::format("signal {} to process {}", signal, process.pid), errno);
  return {};
}

Status end_processes(std::span<const LabProcess> processes, std::chrono::milliseconds patience) {
  using namespace std::chrono_literals;
  using Clock = std::chrono::steady_clock;
  struct Victim {
    const ProcessId* id;
    Fd fd;
  };
  std::vector<Victim> left;
  for (const LabProcess& process : processes)
    if (Fd fd = open_exactly(process.id); fd.valid()) left.push_back({&process.id, std::move(fd)});
  const auto signal_all = [&](int signal) {
    for (const Victim& victim : left) signal_through(victim.fd, signal);
  };
  // Returns when all are gone, or at the deadline.
  const auto await = [&](Clock::time_point deadline) {
    for (;;) {
      std::erase_if(left, [](const Victim& victim) {
        if (is_alive(*victim.id)) return false;
        waitpid(victim.id->pid, nullptr, WNOHANG);  // where it was our own child
        return true;
      });
      if (left.empty() || Clock::now() >= deadline) return;
      std::this_thread::sleep_for(2ms);
    }
  };
  if (patience > 0ms) {
    signal_all(SIGTERM);
    signal_all(SIGCONT);
    await(Clock::now() + patience);
  }
  signal_all(SIGKILL);
  await(Clock::now() + 5s);
  if (left.empty()) return {};
  return fail(
      Errc::io, {},
      fmt::format("process {} ({}) does not end", left.front().id->pid, left.front().id->exe),
      "look at it with ps; then run weft lab down again");
}

}  // namespace weft::adapt::lab
