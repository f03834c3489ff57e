// Devices that are asked by an operator's programs.
#include "adapt/live/command_device_state.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "model/formats/test_fabric.hpp"

namespace weft::adapt::live {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using port::StatePiece;

Result<DeviceCommands> read(const std::string& yaml) {
  const auto config = parse_yaml(yaml, "serve.yaml");
  REQUIRE(config.has_value());
  return read_device_commands(*config);
}

struct Bench {
  explicit Bench(const std::string& yaml)
      : fabric(model::testing::make_fabric(
            "{generator: ai_zone, racks: 2, hosts_per_rack: 1, gpus_per_host: 1, spines: 2, "
            "link: 400 Gbps}")),
        state(fabric, commands(yaml)) {}
  static DeviceCommands commands(const std::string& yaml) {
    auto out = read(yaml);
    REQUIRE_MESSAGE(out.has_value(), (out ? "" : out.error().text()));
    return *std::move(out);
  }
  std::vector<StatePiece> ask(std::string_view device, std::size_t bytes_max = 1000,
                              std::chrono::milliseconds patience = 5s) {
    auto out = state.collect(device, patience, bytes_max);
    REQUIRE_MESSAGE(out.has_value(), (out ? "" : out.error().text()));
    return *std::move(out);
  }
  model::Fabric fabric;
  CommandDeviceState state;
};

TEST_CASE("devices are asked what their group says, under the name they are reached by") {
  Bench bench(R"(
patience: 3 s
devices:
  - match: 'ctsw:.*'
    environment: [WORD=spine]
    pieces:
      routes: [/bin/sh, -c, 'echo $WORD $0 $1', "{device}", "{host}"]
      log: {run: [/bin/sh, -c, "seq 1 100"], keep: end}
      config: {run: [/bin/sh, -c, "seq 1 100"]}
  - match: 'rtsw:0'
    pieces: {routes: [/bin/echo, leaf]}
)");
  const auto spine = bench.ask("ctsw:1", 20);
  REQUIRE(spine.size() == 3);
  CHECK(spine[0].name == "routes");
  CHECK(spine[0].text == "spine ctsw:1 ctsw-1\n");
  CHECK(!spine[0].is_cut);
  CHECK(spine[1].text == "95\n96\n97\n98\n99\n100\n");
  CHECK(spine[1].is_cut);
  CHECK(spine[2].text == "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
  CHECK(spine[2].is_cut);
  CHECK(bench.ask("rtsw:0")[0].text == "leaf\n");
  CHECK(bench.ask("rtsw:1").empty());
  for (const char* unknown : {"ctsw:9", "rtsw:0--ctsw:1", "rtsw:0/1", ""})
    CHECK(bench.state.collect(unknown, 1s, 10).error().code == Errc::unknown);
}

TEST_CASE("one that hangs, fails or is missing costs the others nothing") {
  Bench bench(R"(
devices:
  - pieces:
      hangs: [/bin/sh, -c, "echo begun; sleep 60"]
      fails: [/bin/sh, -c, "echo half; echo no such host >&2; exit 255"]
      missing: [/no/such/program]
      good: [/bin/echo, fine]
)");
  const auto start = Clock::now();
  const auto pieces = bench.ask("host:1", 1000, 300ms);
  CHECK(Clock::now() - start < 2s);
  REQUIRE(pieces.size() == 4);
  CHECK(pieces[0].text == "begun\n");
  CHECK(pieces[0].error.find("did not finish within ") != std::string::npos);
  CHECK(pieces[1].text == "half\n");
  CHECK(pieces[1].error.find("exit code 255: no such host") != std::string::npos);
  CHECK(pieces[2].error.find("/no/such/program") != std::string::npos);
  CHECK(pieces[3].text == "fine\n");
  CHECK(pieces[3].error.empty());
}

TEST_CASE("what is wrong with the configuration is said all at once") {
  const auto wrong = read(R"(
patience: 1 h
devices:
  - match: '('
    pieces:
      ../etc: [/bin/echo]
      log: [show, "{divice}"]
      routes: {run: [/bin/ip], keep: middle}
  - {}
)");
  REQUIRE(!wrong.has_value());
  const std::string text = wrong.error().text();
  for (const std::string_view part :
       {"serve.yaml:2:", "1 min", "missing )", "cannot be used as a file name", "{divice}",
        "needs the path", "middle", "pieces must be a map"})
    CHECK_MESSAGE(text.find(part) != std::string::npos, part, " in ", text);
  CHECK(!read("{}").has_value());
  CHECK(!read("devices: []").has_value());
}

}  // namespace
}  // namespace weft::adapt::live
