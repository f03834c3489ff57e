#include "adapt/lab/process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "adapt/lab/netns.hpp"
#include "base/file.hpp"
#include "base/text.hpp"
#include "os/error.hpp"
#include "os/process.hpp"

namespace weft::adapt::lab {
namespace {

using nlohmann::json;

// Best effort. A session is a group of its own to the scheduler where autogroups are on, and then
// the niceness of the group is what counts.
void be_nice(int niceness, const std::string& text) {
  setpriority(PRIO_PROCESS, 0, niceness);
  const int group = open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC);
  if (group < 0) return;
  static_cast<void>(!write(group, text.data(), text.size()));
  close(group);
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

constexpr auto start_patience = std::chrono::seconds(1);  // from fork to exec, on a busy machine

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

bool is_running(const ProcessId& process) {
  if (process.pid <= 1) return false;
  const auto stat = stat_of(process.pid);
  return stat && stat->start_ticks == process.start_ticks && stat->state != 'Z' &&
         stat->state != 'X';
}

}  // namespace

std::optional<std::uint64_t> start_ticks_of(pid_t pid) {
  const auto stat = stat_of(pid);
  return stat ? std::optional(stat->start_ticks) : std::nullopt;
}

Result<LabProcess> start_process(const ProcessSpec& spec, const std::string& journal) {
  Fd netns;
  if (!spec.netns.empty()) {
    WEFT_TRY(netns, open_netns(spec.netns));
  }
  const std::string output = spec.output.empty() ? "/dev/null" : spec.output;
  const Fd out(open(output.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!out.valid()) return system_failure("opening " + output, errno);
  const auto prepare = [&netns, niceness = spec.niceness, text = fmt::format("{}", spec.niceness)] {
    setsid();
    if (netns.valid() && setns(netns.get(), CLONE_NEWNET) != 0) return errno;
    if (niceness != 0) be_nice(niceness, text);
    return 0;
  };
  WEFT_TRY(Child child, Child::start({.argv = spec.argv,
                                      .environment = {},
                                      .output = out.get(),
                                      .errors = out.get(),
                                      .prepare = prepare}));
  std::error_code ignored;
  const auto exe = std::filesystem::canonical(spec.argv.front(), ignored);
  LabProcess process{.id = {.pid = child.pid(),
                            .start_ticks = start_ticks_of(child.pid()).value_or(0),
                            .exe = ignored ? spec.argv.front() : exe.string()},
                     .role = spec.role,
                     .node = spec.node};
  WEFT_TRY_STATUS(note_process(process, journal));
  if (const int error = child.execute(); error != 0)
    return system_failure(
        "starting " + process.id.exe, error,
        error == ENOENT ? "install it; `weft lab doctor` shows what is missing" : "");
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
  if (!is_running(process)) return false;
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
                fmt::format("process {} ({}) is no longer running", process.pid, process.exe));
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
  const auto all_started = Clock::now() + start_patience;
  for (const LabProcess& process : processes) {
    // What a killed `up` was just starting is not its program yet, but soon will be.
    while (is_running(process.id) && !is_alive(process.id) && Clock::now() < all_started)
      std::this_thread::sleep_for(1ms);
    if (Fd fd = open_exactly(process.id); fd.valid()) left.push_back({&process.id, std::move(fd)});
  }
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
      fmt::format("process {} ({}) does not stop", left.front().id->pid, left.front().id->exe),
      "inspect it with ps, then run weft lab down again");
}

}  // namespace weft::adapt::lab
