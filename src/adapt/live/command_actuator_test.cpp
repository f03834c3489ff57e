// Programs of an operator's, and what can be wrong with them.
#include "adapt/live/command_actuator.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <string>

#include "base/file.hpp"
#include "model/formats/test_fabric.hpp"

namespace weft::adapt::live {
namespace {

using namespace std::chrono_literals;
using port::Service;

struct ActuatorBench {
  CommandActuator actuator(const std::string& yaml) {
    const auto config = parse_yaml(yaml, "actuator.yaml");
    REQUIRE(config.has_value());
    auto settings = read_command_settings(*config);
    REQUIRE_MESSAGE(settings.has_value(), (settings ? "" : settings.error().text()));
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
  ActuatorBench bench;
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
  ActuatorBench bench;
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

TEST_CASE("a check may measure the rate too") {
  ActuatorBench bench;
  const auto check = [&](const std::string& rate) {
    return bench
        .actuator(
            "{drain: [/bin/true], undrain: [/bin/true], state: [/bin/true], read: {state: "
            "{pattern: "
            "'is (\\w+)'}, sent: {json: /sent}, lost: {json: /lost}, rate: {json: /rate}}, check: "
            "[/bin/echo, '{\"sent\": 5, \"lost\": 0" +
            rate + "}']}")
        .check("ctsw:0");
  };
  CHECK(check(", \"rate\": 0.25").value() == port::Check{5, 0, 0.25});
  CHECK(check(", \"rate\": 1.02").value() == port::Check{5, 0, 1});
  for (const char* bad : {"", ", \"rate\": \"fast\"", ", \"rate\": -1"})
    CHECK(check(bad).error().text().find("no share of the rate") != std::string::npos);
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
