// weft explain: what a fabric is once its faults are taken into account.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.hpp"
#include "base/test_approx.hpp"
#include "run_weft.hpp"

using namespace weft;
using cli_test::Outcome;
using cli_test::Scratch;
using nlohmann::json;

namespace {

constexpr const char* plain_zone = "fabric: {generator: ai_zone, racks: 4}\n";

Outcome explain(const std::string& yaml, std::vector<std::string> more = {}) {
  const Scratch scratch;
  scratch.write("f.yaml", yaml);
  more.insert(more.begin(), {"explain", "f.yaml"});
  Outcome outcome = scratch.run(more);
  REQUIRE_MESSAGE(outcome.status == 0, outcome.err);
  return outcome;
}

}  // namespace

TEST_CASE("dead spines count in oversubscription and bisection, in text and JSON") {
  const char* shown[] = {"0.8889", "0.9412", "1", "1.067"};
  for (int dead = 0; dead <= 3; ++dead) {
    CAPTURE(dead);
    const std::string yaml =
        plain_zone +
        (dead == 0 ? std::string()
                   : fmt::format("faults: [{{kind: switch_down, role: ctsw, count: {}}}]\n", dead));
    const std::string text = explain(yaml).out;
    const std::size_t at = text.find("\nrtsw ", text.find("down : up"));
    REQUIRE(at != std::string::npos);
    const std::string row = text.substr(at + 1, text.find('\n', at + 1) - at - 1);
    CHECK_MESSAGE(row.find(fmt::format("  {}  yes", shown[dead])) != std::string::npos, row);

    const json fabric = json::parse(explain(yaml, {"--json"}).out)["fabric"];
    const double up = 18.0 - dead;
    CHECK(fabric["oversubscription"]["rtsw"]["value"].get<double>() == approx(16 / up));
    CHECK(fabric["switches"][1]["role"] == "rtsw");
    CHECK(fabric["switches"][1]["up_bps"].get<double>() == up * 400e9);
    CHECK(fabric["bisection"]["capacity_bps"].get<double>() ==
          approx(2 * 400e9 * std::min(16.0, up)));
  }
}

TEST_CASE("faults that come later have figures of their own") {
  const std::string yaml =
      std::string(plain_zone) +
      "faults: [{kind: switch_down, role: ctsw, count: 6, at: 10 s, until: 20 s}]\n";
  const json top = json::parse(explain(yaml, {"--json"}).out);
  CHECK(top["fabric"]["oversubscription"]["rtsw"]["over"] == 8);
  REQUIRE(top["fault_states"].size() == 2);
  CHECK(top["fault_states"][0]["at_s"] == 10.0);
  CHECK(top["fault_states"][0]["oversubscription"]["rtsw"]["value"].get<double>() ==
        approx(16.0 / 12));
  CHECK(top["fault_states"][0]["bisection"]["capacity_bps"].get<double>() == 2 * 12 * 400e9);
  CHECK(top["fault_states"][1]["oversubscription"]["rtsw"]["over"] == 8);
  CHECK(top["fault_states_left_out"] == 0);
  const std::string text = explain(yaml).out;
  const std::size_t later = text.find("from 10 s on:");
  REQUIRE(later != std::string::npos);
  CHECK(text.find("1.333  yes", later) != std::string::npos);
  CHECK(text.find("6 of 18 out of service", later) != std::string::npos);
}

TEST_CASE("the example price table covers the fabric of every scenario beside it") {
  const std::string folder = cli_test::tree() + "/scenarios/";
  const Scratch scratch;
  std::size_t priced = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".yaml") continue;
    if (!read_file(entry.path())->contains("\nfabric:")) continue;
    CAPTURE(entry.path());
    const Outcome outcome = scratch.run(
        {"explain", entry.path(), "--prices", folder + "prices-example.yaml", "--json"});
    REQUIRE_MESSAGE(outcome.status == 0, outcome.err);
    const json bill = json::parse(outcome.out);
    CHECK(bill["price"] > 0);
    // The main job's front end has trunks that no single cable carries.
    const auto is_bundle = [](const json& link) { return link["bundle"] > 1; };
    CHECK(std::ranges::any_of(bill["links"], is_bundle) ==
          (entry.path().filename() == "llama3-405b.yaml"));
    ++priced;
  }
  CHECK(priced >= 12);
}
