#include "app/site/supervisor.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>

#include <map>
#include <string>
#include <vector>

#include "adapt/live/system_clock.hpp"

namespace weft::app {
namespace {

constexpr std::int64_t ms = 1'000'000;

class SupervisorBed {
 public:
  Supervisor::Options options{.retry_first_ns = 20 * ms,
                              .retry_max_ns = 80 * ms,
                              .steady_ns = 10 * ns_per_s,
                              .stop_ns = 300 * ms};
  std::vector<std::string> log, lines;
  std::map<std::string, std::pair<int, std::string>> ended;
  adapt::live::SystemClock clock;
  Supervisor supervisor{
      options,
      clock,
      {.log = [this](const std::string& name,
                     std::string_view line) { log.push_back(fmt::format("{}: {}", name, line)); },
       .lines =
           [this](const std::string& feed, std::vector<std::string> more) {
             for (const std::string& line : more) lines.push_back(feed + ": " + line);
           },
       .ended = [this](const std::string& name, int status,
                       std::string text) { ended[name] = {status, std::move(text)}; }}};

  static ProcessSpec shell(const std::string& name, const std::string& command) {
    return {.name = name, .argv = {"/bin/sh", "-c", command}};
  }
  template <class So>
  bool turn_until(So so, std::int64_t most_ns = 20 * ns_per_s) {
    const port::Instant end = clock.now() + most_ns;
    while (!so() && clock.now() < end) {
      supervisor.step();
      supervisor.wait(5 * ms, -1);
    }
    return so();
  }
  ProcessState state(const std::string& name) {
    for (const ProcessState& one : supervisor.states())
      if (one.name == name) return one;
    return {};
  }
};

TEST_CASE("lines of a feed and of a log go where they belong, also the last without an end") {
  SupervisorBed bed;
  ProcessSpec feed = SupervisorBed::shell("snmp", "echo one; echo oops >&2; printf two; sleep 60");
  feed.output = ProcessSpec::Output::lines;
  feed.feed = "records";
  bed.supervisor.start(feed);
  bed.supervisor.start(SupervisorBed::shell("respond", "echo said; printf end; exec sleep 60"));
  CHECK(bed.turn_until([&] { return bed.lines.size() == 1 && bed.log.size() == 2; }));
  bed.supervisor.stop("snmp");
  bed.supervisor.stop("respond");
  CHECK(bed.turn_until([&] { return bed.supervisor.states().empty(); }));
  CHECK(bed.lines == std::vector<std::string>{"records: one", "records: two"});
  CHECK(bed.log.size() == 3);
}

TEST_CASE("what ends is started again, later each time; what was asked to end is not") {
  SupervisorBed bed;
  bed.supervisor.start(SupervisorBed::shell("bad", "echo no such key >&2; exit 2"));
  const port::Instant start = bed.clock.now();
  CHECK(bed.turn_until([&] { return bed.state("bad").restarts >= 4; }));
  // 20 + 40 + 80 ms between four ends.
  CHECK(bed.clock.now() - start >= 140 * ms);
  CHECK(bed.state("bad").last_error == "no such key; ended with exit status 2");
  bed.supervisor.stop("bad");
  CHECK(bed.turn_until([&] { return bed.supervisor.states().empty(); }));
  const std::size_t said = bed.log.size();
  bed.turn_until([] { return false; }, 200 * ms);
  CHECK(bed.log.size() == said);
}

TEST_CASE("a process killed by a signal is started again under a new pid") {
  SupervisorBed bed;
  bed.supervisor.start(SupervisorBed::shell("service", "exec sleep 60"));
  const pid_t first = bed.state("service").pid;
  REQUIRE(first > 0);
  ::kill(first, SIGKILL);
  CHECK(bed.turn_until([&] { return bed.state("service").restarts == 1; }));
  CHECK(bed.turn_until([&] { return bed.state("service").pid > 0; }));
  CHECK(bed.state("service").pid != first);
  CHECK(bed.state("service").last_error == "ended by signal 9");
}

TEST_CASE("a process that ignores SIGTERM is killed, and one that is replaced has ended first") {
  SupervisorBed bed;
  bed.supervisor.start(
      SupervisorBed::shell("probe", "trap '' TERM; echo old; while :; do sleep 0.05; done"));
  CHECK(bed.turn_until([&] { return bed.log.size() == 1; }));
  const port::Instant start = bed.clock.now();
  bed.supervisor.start(SupervisorBed::shell("probe", "echo new; exec sleep 60"));
  CHECK(bed.turn_until([&] { return bed.log.size() == 2; }));
  CHECK(bed.clock.now() - start >= bed.options.stop_ns);
  CHECK(bed.log == std::vector<std::string>{"probe: old", "probe: new"});
  CHECK(bed.state("probe").restarts == 0);
}

TEST_CASE("a process that lives once reports its status and all of its output") {
  SupervisorBed bed;
  const auto once = [&](const std::string& name, const std::string& command) {
    ProcessSpec spec = SupervisorBed::shell(name, command);
    spec.output = ProcessSpec::Output::text;
    spec.life = ProcessSpec::Life::once;
    spec.patience_ns = 200 * ms;
    bed.supervisor.start(std::move(spec));
  };
  once("sweep", "echo a; echo b; exit 1");
  once("hangs", "echo c; exec sleep 60");
  ProcessSpec absent{.name = "absent", .argv = {"/nowhere/weft"}};
  absent.life = ProcessSpec::Life::once;
  bed.supervisor.start(absent);
  CHECK(bed.turn_until([&] { return bed.ended.size() == 3; }));
  CHECK(bed.ended["sweep"] == std::pair(1, std::string("a\nb\n")));
  CHECK(bed.ended["hangs"].first == -1);
  CHECK(bed.ended["absent"].first == -1);
  CHECK(bed.supervisor.states().empty());
}

}  // namespace
}  // namespace weft::app
