#include "app/site/supervisor.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "os/process.hpp"

namespace weft::app {
namespace {

constexpr std::size_t line_bytes_max = std::size_t{1} << 20;
constexpr std::size_t text_bytes_max = std::size_t{1} << 28;
constexpr std::size_t error_bytes_max = 300;

// A child ends with its supervisor, however that ends; and not with the keys of a terminal, for
// the supervisor knows who ends first.
int become_child() {
  if (setpgid(0, 0) != 0) return errno;
  return prctl(PR_SET_PDEATHSIG, SIGTERM) == 0 ? 0 : errno;
}

void make_reading_not_wait(int fd) {
  const int flags = fcntl(fd, F_GETFL);
  if (flags >= 0) fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

std::string ending(int status) {
  if (WIFEXITED(status)) return fmt::format("ended with exit status {}", WEXITSTATUS(status));
  return fmt::format("ended by signal {}", WTERMSIG(status));
}

}  // namespace

std::string_view to_text(ProcessState::Phase phase) {
  constexpr std::array<std::string_view, 3> names{"running", "waiting", "stopping"};
  return names[static_cast<std::size_t>(phase)];
}

Supervisor::Supervisor(const Options& options, port::Clock& clock, Events events)
    : options_(options), clock_(clock), events_(std::move(events)) {}

Supervisor::~Supervisor() {
  for (auto& [name, process] : processes_)
    if (process.pid > 0) {
      ::kill(process.pid, SIGKILL);
      while (::waitpid(process.pid, nullptr, 0) < 0 && errno == EINTR) {
      }
    }
}

void Supervisor::start(ProcessSpec spec) {
  const auto [at, is_new] = processes_.try_emplace(spec.name);
  Process& process = at->second;
  process.spec = std::move(spec);
  process.is_wanted = true;
  process.retry_ns = 0;
  process.due = clock_.now();
  if (process.pid > 0)
    end(process);
  else
    launch(process);
}

void Supervisor::stop(const std::string& name) {
  const auto at = processes_.find(name);
  if (at == processes_.end()) return;
  at->second.is_wanted = false;
  if (at->second.pid > 0)
    end(at->second);
  else
    processes_.erase(at);
}

void Supervisor::end(Process& process) {
  if (process.phase == ProcessState::Phase::stopping) return;
  ::kill(process.pid, SIGTERM);
  process.kill_at = clock_.now() + options_.stop_ns;
  set(process, ProcessState::Phase::stopping);
}

void Supervisor::set(Process& process, ProcessState::Phase phase) {
  process.phase = phase;
  process.since = clock_.wall();
}

void Supervisor::launch(Process& process) {
  process.started = clock_.now();
  process.text.clear();
  const auto fails = [&](const std::string& why) {
    process.last_error = why;
    events_.log(process.spec.name, why);
    ++process.restarts;
    process.retry_ns =
        std::clamp(2 * process.retry_ns, options_.retry_first_ns, options_.retry_max_ns);
    process.due = clock_.now() + process.retry_ns;
    set(process, ProcessState::Phase::waiting);
  };
  auto out = make_pipe(), err = make_pipe();
  if (!out || !err) return fails("no pipe for it: too many files are open");
  make_reading_not_wait(out->read.get());
  make_reading_not_wait(err->read.get());
  auto child = Child::start({.argv = process.spec.argv,
                             .environment = {},
                             .output = out->write.get(),
                             .errors = err->write.get(),
                             .prepare = become_child});
  if (!child) return fails(child.error().text());
  if (const int error = child->execute(); error != 0)
    return fails(
        fmt::format("{} cannot be started: {}", process.spec.argv.front(), std::strerror(error)));
  process.pid = child->pid();
  process.out = {std::move(out->read), {}};
  process.err = {std::move(err->read), {}};
  set(process, ProcessState::Phase::running);
}

void Supervisor::step() {
  const port::Instant now = clock_.now();
  // Events may start processes, but forget none: those that end are collected first.
  std::vector<std::string> names;
  for (const auto& [name, process] : processes_) names.push_back(name);
  for (const std::string& name : names) {
    const auto at = processes_.find(name);
    if (at == processes_.end()) continue;
    Process& process = at->second;
    if (process.pid > 0) {
      read(process);
      const bool is_over =
          process.spec.patience_ns > 0 && now - process.started > process.spec.patience_ns;
      if (is_over || (process.phase == ProcessState::Phase::stopping && now > process.kill_at))
        ::kill(process.pid, SIGKILL);
      if (reap(process)) {
        std::string text = std::move(process.text);
        const int status = process.exit_status;
        const bool is_told = process.is_wanted;
        processes_.erase(name);
        if (is_told) events_.ended(name, status, std::move(text));
      }
    } else if (process.spec.life == ProcessSpec::Life::once) {  // could not be started
      processes_.erase(at);
      events_.ended(name, -1, {});
    } else if (now >= process.due) {
      launch(process);
    }
  }
}

bool Supervisor::reap(Process& process) {
  int status = 0;
  if (::waitpid(process.pid, &status, WNOHANG) != process.pid) return false;
  read(process);  // what it wrote last
  for (Stream* stream : {&process.out, &process.err}) {
    if (!stream->rest.empty())
      take_lines(process, {std::exchange(stream->rest, "")}, stream == &process.err);
    stream->fd = {};
  }
  process.pid = 0;
  const bool was_asked = process.phase == ProcessState::Phase::stopping;
  if (!process.is_wanted) return true;
  if (process.spec.life == ProcessSpec::Life::once && !was_asked) {
    process.exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return true;
  }
  const port::Instant now = clock_.now();
  set(process, ProcessState::Phase::waiting);
  if (was_asked) {  // to be replaced
    process.due = now;
    return false;
  }
  ++process.restarts;
  if (now - process.started >= options_.steady_ns) process.retry_ns = 0;
  process.retry_ns =
      std::clamp(2 * process.retry_ns, options_.retry_first_ns, options_.retry_max_ns);
  process.due = now + process.retry_ns;
  const std::string how = ending(status);
  process.last_error = process.last_error.empty() ? how : process.last_error + "; " + how;
  events_.log(process.spec.name, fmt::format("{}; started again in {:.1f} s", how,
                                             static_cast<double>(process.retry_ns) / ns_per_s));
  return false;
}

void Supervisor::read(Process& process) {
  read(process, process.out, false);
  read(process, process.err, true);
}

void Supervisor::read(Process& process, Stream& stream, bool is_error) {
  std::array<char, 1 << 16> block{};
  // Bounded a turn, so that one that never stops writing does not keep the others waiting.
  for (int i = 0; i < 64 && stream.fd.valid(); ++i) {
    const ssize_t got = ::read(stream.fd.get(), block.data(), block.size());
    if (got == 0) stream.fd = {};
    if (got <= 0) return;
    const std::string_view bytes(block.data(), static_cast<std::size_t>(got));
    if (!is_error && process.spec.output == ProcessSpec::Output::text) {
      if (process.text.size() + bytes.size() <= text_bytes_max) process.text += bytes;
      continue;
    }
    stream.rest += bytes;
    std::vector<std::string> lines;
    std::size_t from = 0;
    for (std::size_t end = stream.rest.find('\n'); end != std::string::npos;
         end = stream.rest.find('\n', from)) {
      if (end > from) lines.push_back(stream.rest.substr(from, end - from));
      from = end + 1;
    }
    stream.rest.erase(0, from);
    if (stream.rest.size() > line_bytes_max) lines.push_back(std::exchange(stream.rest, ""));
    if (!lines.empty()) take_lines(process, std::move(lines), is_error);
  }
}

void Supervisor::take_lines(Process& process, std::vector<std::string> lines, bool is_error) {
  if (!is_error && process.spec.output == ProcessSpec::Output::lines) {
    process.lines += lines.size();
    events_.lines(process.spec.feed, std::move(lines));
    return;
  }
  for (const std::string& line : lines) {
    if (is_error)
      process.last_error =
          line.substr(line.size() > error_bytes_max ? line.size() - error_bytes_max : 0);
    events_.log(process.spec.name, line);
  }
}

void Supervisor::wait(std::int64_t most_ns, int fd) const {
  std::vector<pollfd> fds;
  if (fd >= 0) fds.push_back({fd, POLLIN, 0});
  for (const auto& [name, process] : processes_)
    for (const Stream* stream : {&process.out, &process.err})
      if (stream->fd.valid()) fds.push_back({stream->fd.get(), POLLIN, 0});
  ::poll(fds.data(), fds.size(), static_cast<int>(most_ns / 1'000'000));
}

std::vector<ProcessState> Supervisor::states() const {
  std::vector<ProcessState> out;
  for (const auto& [name, process] : processes_)
    if (process.spec.life == ProcessSpec::Life::kept)
      out.push_back({name, process.phase, process.pid, process.since, process.restarts,
                     process.lines, process.last_error});
  return out;
}

}  // namespace weft::app
