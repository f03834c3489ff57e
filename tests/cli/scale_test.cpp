// weft scale: what it prints and writes, and options that make no sense.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "base/test_approx.hpp"
#include "run_weft.hpp"

namespace weft::cli_test {
namespace {

// Ten days by the minute, 100 a minute, twice that in the second half of each day.
std::string half_days() {
  std::string out = "time,value\n";
  for (int t = 0; t < 10 * 1440; ++t)
    out += fmt::format("2026-01-{:02}T{:02}:{:02}:00Z,{}\n", 1 + t / 1440, t % 1440 / 60, t % 60,
                       t % 1440 < 720 ? 100 : 200);
  return out;
}

}  // namespace

TEST_CASE("scale: replicas, JSON, CSV and drawing of one policy agree") {
  const Scratch scratch;
  scratch.write("d.csv", half_days());
  const Outcome ran = scratch.run({"scale", "d.csv", "--capacity", "10", "--from",
                                   "2026-01-08T00:00:00Z", "--policies", "reactive:0.5,oracle",
                                   "--csv", "r.csv", "--svg", "r.svg", "--json"});
  REQUIRE_MESSAGE(ran.status == 0, ran.err);
  const auto json = nlohmann::json::parse(ran.out);
  CHECK(json["steps"] == 3 * 1440);
  // 100 / 10 / 0.5 = 20 by day, 40 by night, five minutes longer; 15 of 720 minutes without.
  const auto& reactive = json["policies"][0];
  CHECK(reactive["peak_replicas"] == 40);
  CHECK(reactive["violated"].get<double>() == approx(15 * 200.0 / (720 * 300)));
  const std::string csv = scratch.read("r.csv");
  CHECK(csv.starts_with("time,demand,reactive 0.5,oracle\n2026-01-08T00:00:00Z,100,"));
  CHECK(std::ranges::count(csv, '\n') == 3 * 1440 + 1);
  CHECK(scratch.read("r.svg").starts_with("<svg "));
  const Outcome curves = scratch.run({"scale", "d.csv", "--capacity", "10", "--at", "1"});
  CHECK(curves.out.contains("of reactive"));
}

TEST_CASE("scale: what makes no sense is named") {
  const Scratch scratch;
  scratch.write("d.csv",
                "time,value\n2026-01-01T00:00:00Z,1\n2026-01-01T00:01:00Z,-2\n"
                "2026-01-01T00:02:00Z,3\n");
  const auto error = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"scale", "d.csv", "--capacity", "10"});
    const Outcome outcome = scratch.run(more);
    CHECK(outcome.status == 2);
    return outcome.err;
  };
  CHECK(error({}).contains("demand -2 is below 0"));
  scratch.write("d.csv", half_days());
  CHECK(error({"--from", "2027-01-01T00:00:00Z"}).contains("the series ends before that"));
  CHECK(error({"--policies", "reactiv:0.6"}).contains("reactive"));
  CHECK(error({"--policies", "oracle:0.6"}).contains("--policies"));
  CHECK(error({"--min", "5", "--max", "4"}).contains("--min is above --max"));
}

}  // namespace weft::cli_test
