// Child processes that are started, read, started again when they end, and stopped.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/fd.hpp"
#include "base/result.hpp"
#include "base/timestamp.hpp"
#include "port/clock.hpp"

namespace weft::app {

struct ProcessSpec {
  // What becomes of standard output: lines of a log, lines for the service, or the whole text when
  // it ends.
  enum class Output : std::uint8_t { log, lines, text };
  enum class Life : std::uint8_t { kept, once };
  std::string name;               // unique
  std::vector<std::string> argv;  // argv[0] is the path of a program
  Output output = Output::log;
  std::string feed;  // of lines: "records" or "evidence"
  Life life = Life::kept;
  std::int64_t patience_ns = 0;  // a process that lives once: killed after that; 0: never
};

struct ProcessState {
  enum class Phase : std::uint8_t { running, waiting, stopping };
  std::string name;
  Phase phase = Phase::waiting;
  pid_t pid = 0;
  Timestamp since;  // of the phase
  std::uint64_t restarts = 0, lines = 0;
  std::string last_error;  // the end of its last line on standard error, and how it ended
};
std::string_view to_text(ProcessState::Phase phase);

class Supervisor {
 public:
  struct Options {
    std::int64_t retry_first_ns = 500'000'000, retry_max_ns = 30 * ns_per_s;
    std::int64_t steady_ns = 10 * ns_per_s;  // after so long it starts again without delay growing
    std::int64_t stop_ns = 6 * ns_per_s;     // from SIGTERM to SIGKILL
  };
  struct Events {
    std::function<void(const std::string& name, std::string_view line)> log;
    std::function<void(const std::string& feed, std::vector<std::string> lines)> lines;
    // Of processes that live once: exit status, -1 for a signal; its standard output.
    std::function<void(const std::string& name, int status, std::string text)> ended;
  };

  // `clock` must outlive it. Not to be used from several threads: children die with the thread
  // that started them.
  Supervisor(const Options& options, port::Clock& clock, Events events);
  // Kills what still runs.
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  // Starts it; a process of that name is ended first, and replaced when it has ended.
  void start(ProcessSpec spec);
  // SIGTERM, SIGKILL after stop_ns; it is forgotten when it has ended.
  void stop(const std::string& name);
  // Reads, reaps, starts what is due. Never waits.
  void step();
  // Until something happens, at most so long; also when `fd` is readable.
  void wait(std::int64_t most_ns, int fd) const;

  std::vector<ProcessState> states() const;  // of those that are kept, by name

 private:
  struct Stream {
    Fd fd;
    std::string rest;
  };
  struct Process {
    ProcessSpec spec;
    pid_t pid = 0;
    Stream out, err;
    std::string text;
    ProcessState::Phase phase = ProcessState::Phase::waiting;
    bool is_wanted = true;
    int exit_status = -1;
    Timestamp since;
    port::Instant started, due, kill_at;
    std::int64_t retry_ns = 0;
    std::uint64_t restarts = 0, lines = 0;
    std::string last_error;
  };
  void launch(Process& process);
  void end(Process& process);
  void read(Process& process);
  void read(Process& process, Stream& stream, bool is_error);
  void take_lines(Process& process, std::vector<std::string> lines, bool is_error);
  // Whether it has ended for good.
  bool reap(Process& process);
  void set(Process& process, ProcessState::Phase phase);

  Options options_;
  port::Clock& clock_;
  Events events_;
  std::map<std::string, Process> processes_;
};

}  // namespace weft::app
