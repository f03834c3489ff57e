// The Clos instance that weft and SimGrid are compared on, through the command line.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "base/text.hpp"
#include "clos/instance.hpp"
#include "run_weft.hpp"

using namespace weft;
using cli_test::Scratch;
using nlohmann::json;

namespace {

json run_flows(const Scratch& scratch, const std::string& csv) {
  const auto outcome = scratch.run({"flows", "--fabric", "fabric.yaml", "--flows", csv, "--json"});
  REQUIRE_MESSAGE(outcome.status == 0, outcome.err);
  return json::parse(outcome.out);
}

// The columns in the opposite order.
std::string mirrored(const std::string& csv) {
  std::string out;
  std::istringstream in(csv);
  for (std::string line; std::getline(in, line); out += '\n') {
    const auto cells = split(line, ',');
    for (std::size_t i = cells.size(); i-- > 0;) out += std::string(cells[i]) + (i > 0 ? "," : "");
  }
  return out;
}

}  // namespace

TEST_CASE("the Clos instance: makespans and mean completion times") {
  struct Expected {
    int flows;
    const char* makespan_s;
    const char* mean_s;  // "" where none is published
  };
  const Scratch scratch;
  scratch.write("fabric.yaml", bench::fabric_yaml({}));
  for (const Expected& expected :
       {Expected{1000, "0.095360", ""}, Expected{2000, "0.112640", ""},
        Expected{4000, "0.118400", "0.033994822"}, Expected{8000, "0.181760", "0.043443605"}}) {
    CAPTURE(expected.flows);
    scratch.write("flows.csv", bench::flows_csv({.flows = expected.flows}));
    const json result = run_flows(scratch, "flows.csv");
    CHECK(fmt::format("{:.6f}", result["makespan_s"].get<double>()) == expected.makespan_s);
    if (*expected.mean_s != '\0')
      CHECK(fmt::format("{:.9f}", result["fct_s"]["mean"].get<double>()) == expected.mean_s);
    CHECK(result["flows"].size() == static_cast<std::size_t>(expected.flows));
    CHECK(result["unfinished"] == 0);
    // Carried bytes cannot exceed capacity x makespan, on any link.
    for (const auto& [name, tier] : result["tiers"].items())
      CHECK(tier["max_load"].get<double>() <= 1 + 1e-9);
  }
}

TEST_CASE("the digest depends on the flows alone: not on the run, nor on the order of columns") {
  const Scratch scratch;
  scratch.write("fabric.yaml", bench::fabric_yaml({}));
  const std::string csv = bench::flows_csv({.flows = 1000});
  scratch.write("flows.csv", csv);
  scratch.write("mirrored.csv", mirrored(csv));
  scratch.write("other.csv", bench::flows_csv({.flows = 1000, .seed = 2}));
  const json first = run_flows(scratch, "flows.csv");
  CHECK(run_flows(scratch, "flows.csv") == first);
  CHECK(run_flows(scratch, "mirrored.csv") == first);
  CHECK(run_flows(scratch, "other.csv")["digest"] != first["digest"]);
}
