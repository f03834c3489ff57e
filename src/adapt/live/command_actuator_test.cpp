// Programs of an operator's, and what can be wrong with them.
#include "adapt/live/command_actuator.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <string>
#include <thread>

#include "base/file.hpp"
#include "model/test_fabric.hpp"

namespace weft::adapt::live {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using port::Service;

ProgramOutcome run(std::vector<std::string> argv, std::chrono::milliseconds patience = 5s) {
  const auto out =
      run_program({.argv = std::move(argv), .patience = patience, .output_bytes_max = 1'000});
  REQUIRE_MESSAGE(out.has_value(), out.error().text());
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

struct Bench {
  CommandActuator actuator(const std::string& yaml) {
    const auto config = parse_yaml(yaml, "actuator.yaml");
    REQUIRE(config.has_value());
    auto settings = read_command_settings(*config);
    REQUIRE_MESSAGE(settings.has_value(), settings.error().text());
    return {fabric, *std::move(settings), [this](const CommandRecord& one) { log.push_back(one); }};
  }
  model::Fabric fabric = model::testing::make_fabric(
      "{generator: ai_zone, racks: 2, hosts_per_rack: 1, gpus_per_host: 1, spines: 2}");
  std::vector<CommandRecord> log;
};

port::Action drain(std::string entity) {
  return {.id = "a1", .entity = std::move(entity), .case_id = "c'1"};
}

constexpr const char* plain = R"(
drain: [/bin/echo, "{action}", "{entity}", "dev={device}",
        "{interface}|{peer}|{peer_interface}", "{case}"]
undrain: [/bin/sh, -c, "exit 3"]
state: [/bin/echo, '{"data": [{"state": "Maintenance"}]}']
check: [/bin/echo, "sent 200 lost 3"]
timeout: 2 s
exit: {harm: [3], unknown: [4]}
read:
  state: {json: /data/0/state}
  sent: {pattern: 'sent (\d+)'}
  lost: {pattern: 'lost (\d+)'}
states: {in_service: [up, active], drained: [down, maintenance]}
)";

TEST_CASE("commands act, and tell the state") {
  Bench bench;
  CommandActuator actuator = bench.actuator(plain);
  REQUIRE(actuator.act(drain("rtsw:1--ctsw:0")).has_value());
  CHECK(bench.log.back().outcome.output.starts_with("drain rtsw:1--ctsw:0 dev="));
  CHECK(bench.log.back().argv.size() == 6);
  CHECK(bench.log.back().argv[3] == "dev=rtsw:1");
  CHECK(bench.log.back().argv[4].find("|ctsw:0|") != std::string::npos);
  CHECK(bench.log.back().argv[5] == "c'1");
  REQUIRE(actuator.act(drain("ctsw:1")).has_value());
  CHECK(bench.log.back().argv[4] == "||");
  CHECK(actuator.act(drain("ctsw:8")).error().code == Errc::unknown);
  port::Action back = drain("ctsw:1");
  back.kind = port::ActionKind::undrain;
  CHECK(actuator.act(back).error().code == Errc::infeasible);
  CHECK(actuator.state("ctsw:1") == Service::drained);
  const auto check = actuator.check("ctsw:1");
  REQUIRE(check.has_value());
  CHECK(check->sent == 200);
  CHECK(check->lost == 3);
}

std::string with_state(const std::string& script) {
  return "{drain: [/bin/true], undrain: [/bin/true], timeout: 200 ms, "
         "read: {state: {pattern: 'is (\\w+)'}, sent: {json: /sent}, lost: {json: /lost}}, "
         "check: [/bin/echo, '{\"sent\": 5, \"lost\": 9}'], state: [/bin/sh, -c, \"" +
         script + "\"]}";
}

TEST_CASE("programs that lie or fail are not believed") {
  Bench bench;
  CHECK(bench.actuator(with_state("echo it is drained")).state("ctsw:0") == Service::drained);
  CHECK(bench.actuator(with_state("echo it is DRAINING")).state("ctsw:0") == Service::draining);
  CHECK(bench.actuator(with_state("echo it is nice")).state("ctsw:0") == Service::unknown);
  CHECK(bench.actuator(with_state("true")).state("ctsw:0") == Service::unknown);
  CHECK(bench.actuator(with_state("echo is drained; exit 1")).state("ctsw:0").error().code ==
        Errc::io);
  const auto hung = bench.actuator(with_state("echo is drained; sleep 9")).state("ctsw:0");
  REQUIRE(!hung.has_value());
  CHECK(hung.error().text().find("was killed") != std::string::npos);
  const auto check = bench.actuator(with_state("true")).check("ctsw:0");
  REQUIRE(!check.has_value());  // more lost than sent
  CHECK(check.error().code == Errc::io);
}

TEST_CASE("settings are checked, with every error and its place") {
  const auto config = parse_yaml(
      "drain: [netctl, \"{entty}\"]\nundrain: [/bin/true, \"{\"]\nread: {state: {pattern: \"(\"}}\n"
      "timeout: 1 us\ncolour: red\nexit: {done: [300]}\n",
      "a.yaml");
  const auto settings = read_command_settings(*config);
  REQUIRE(!settings.has_value());
  const std::string text = settings.error().text();
  for (const std::string_view part : {"a.yaml:1:", "{entty}", "needs the path", "missing )",
                                      "timeout", "colour", "0 to 255", "state"}) {
    CAPTURE(part);
    CHECK(text.find(part) != std::string::npos);
  }
}

}  // namespace
}  // namespace weft::adapt::live
