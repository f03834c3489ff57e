// Programs of an operator's, and what can be wrong with them.
#include "os/run_program.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <csignal>
#include <string>
#include <thread>

#include "base/file.hpp"

namespace weft {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

ProgramOutcome run(std::vector<std::string> argv, std::chrono::milliseconds patience = 5s) {
  const auto out =
      run_program({.argv = std::move(argv), .patience = patience, .output_bytes_max = 1'000});
  REQUIRE_MESSAGE(out.has_value(), (out ? "" : out.error().text()));
  return *out;
}
ProgramOutcome shell(const std::string& script, std::chrono::milliseconds patience = 5s) {
  return run({"/bin/sh", "-c", script}, patience);
}

TEST_CASE("a program's words, code and signal come back") {
  const ProgramOutcome echo = run({"/bin/echo", "a b", "$HOME;`x`"});
  CHECK(echo.exit_code == 0);
  CHECK(echo.output == "a b $HOME;`x`\n");
  CHECK(shell("echo oops >&2; exit 7").exit_code == 7);
  CHECK(shell("echo oops >&2").errors == "oops\n");
  CHECK(shell("kill -9 $$").signal == SIGKILL);
  CHECK(shell("cat; env").output.find("HOME") == std::string::npos);  // no input, no environment
  CHECK(shell("ls /proc/self/fd | wc -l").output == "4\n");           // and nothing open
  CHECK(!run_program({.argv = {"/no/such/program"}}).has_value());
  CHECK(!run_program({.argv = {"echo"}}).has_value());
  CHECK(!run_program({}).has_value());
}

TEST_CASE("a program that hangs, floods or leaves children is over in time") {
  auto start = Clock::now();
  const ProgramOutcome hung = shell("sleep 60 & sleep 60", 200ms);
  CHECK(hung.timed_out);
  CHECK(Clock::now() - start < 1s);
  start = Clock::now();
  const ProgramOutcome flood = shell("yes", 300ms);
  CHECK(flood.timed_out);
  CHECK(flood.is_cut);
  CHECK(flood.output.size() == 1'000);
  CHECK(Clock::now() - start < 1s);
  start = Clock::now();
  const ProgramOutcome parent = shell("sleep 60 & echo $!; exit 0");
  CHECK(parent.exit_code == 0);
  CHECK(Clock::now() - start < 1s);
  std::this_thread::sleep_for(50ms);
  const pid_t child = static_cast<pid_t>(std::stol(parent.output));
  const auto stat = read_file("/proc/" + std::to_string(child) + "/stat", 4'096);
  CHECK((!stat || stat->find(") Z") != std::string::npos));
  CHECK(shell("trap '' TERM INT; sleep 60", 100ms).timed_out);
}

}  // namespace
}  // namespace weft
