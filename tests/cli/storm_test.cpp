// `weft storm` as a user runs it: files, scores, and wrong input; and what `weft rehearse` prints.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "run_weft.hpp"

using weft::cli_test::Outcome;
using weft::cli_test::Scratch;

namespace {

constexpr const char* storm_fabric =
    "fabric: {generator: ai_zone, racks: 24, hosts_per_rack: 2, spines: 6, link: 400 Gbps}\n";

// Faults as cases, each with all of its records: what a perfect engine would say.
std::string perfect_cases(const Scratch& scratch, const std::string& directory) {
  using nlohmann::json;
  std::map<std::string, json> cases;
  std::istringstream truth(scratch.read(directory + "/truth.jsonl"));
  for (std::string line; std::getline(truth, line);) {
    const json fault = json::parse(line);
    cases[fault["id"]] = {{"id", fault["id"]},
                          {"cause", {{"kind", fault["kind"]}, {"entity", fault["entities"][0]}}},
                          {"members", json::array()}};
  }
  std::istringstream labels(scratch.read(directory + "/labels.jsonl"));
  for (std::string line; std::getline(labels, line);) {
    const json label = json::parse(line);
    if (!label["fault"].is_null())
      cases[label["fault"]]["members"].push_back({{"record", label["record"]}});
  }
  std::string out;
  for (const auto& [id, one] : cases) out += one.dump() + "\n";
  return out;
}

std::ptrdiff_t lines(const std::string& text) { return std::ranges::count(text, '\n'); }

}  // namespace

TEST_CASE("storm: files that belong together, and a perfect score for the truth") {
  Scratch scratch;
  scratch.write("f.yaml", storm_fabric);
  for (const std::string format : {"records", "syslog"}) {
    CAPTURE(format);
    const Outcome made = scratch.run({"storm", "--fabric", "f.yaml", "--faults", "30", "--lines",
                                      "20000", "--format", format, "--out", format, "--json"});
    REQUIRE_MESSAGE(made.status == 0, made.err);
    const auto json = nlohmann::json::parse(made.out);
    CHECK(json["faults"] == 30);
    const auto all = json["lines"].get<std::ptrdiff_t>();
    CHECK(lines(scratch.read(format + "/labels.jsonl")) == all);
    CHECK(lines(scratch.read(format + "/records.jsonl")) +
              lines(scratch.read(format + "/syslog.log")) ==
          all);
    CHECK(scratch.has(format + "/inventory.csv") == (format == "syslog"));
    scratch.write("cases.jsonl", perfect_cases(scratch, format));
    const Outcome scored =
        scratch.run({"storm", "score", "cases.jsonl", "--storm", format, "--json"});
    REQUIRE_MESSAGE(scored.status == 0, scored.err);
    const auto score = nlohmann::json::parse(scored.out);
    CHECK(score["macro_f1"] == 1.0);
    CHECK(score["top1"] == 1.0);
    CHECK(score["cases"] == 30);
  }
}

TEST_CASE("storm: wrong input") {
  Scratch scratch;
  scratch.write("f.yaml", storm_fabric);
  scratch.write("bad.jsonl", "{\"id\": 1}\n");
  const auto refused = [&](const std::vector<std::string>& arguments, const std::string& says) {
    const Outcome outcome = scratch.run(arguments);
    INFO("got: ", outcome.err.substr(0, 500));
    CHECK(outcome.status == 2);
    CHECK(outcome.out.empty());
    CHECK(outcome.err.find(says) != std::string::npos);
  };
  const auto storm = [](std::vector<std::string> more) {
    std::vector<std::string> out{"storm", "--fabric", "f.yaml", "--out", "s"};
    out.insert(out.end(), more.begin(), more.end());
    return out;
  };
  refused({"storm"}, "--fabric and --out are required");
  refused(storm({"--faults", "9000"}), "no room for fault");
  refused(storm({"--lines", "50"}), "the faults alone produce");
  refused(storm({"--hours", "-1"}), "hours must be in");
  refused(storm({"--types", "cabel"}), "did you mean \"cable\"?");
  refused(storm({"--dialects", "rtsw=ios"}), "unknown name");
  refused(storm({"--dialects", "tor=eos"}), "no role");
  refused(storm({"--format", "xml"}), "records, syslog");
  refused({"storm", "score", "bad.jsonl", "--storm", "s"}, "s/truth.jsonl");
  CHECK(!scratch.has("s/records.jsonl"));
}

TEST_CASE("a rehearsal's report is one line of JSON, of one seed and of several") {
  Scratch scratch;
  scratch.write("zone.yaml", "fabric: {generator: ai_zone, racks: 4}\n");
  for (const char* seeds : {"1", "2"}) {
    const auto outcome = scratch.run(
        {"--json", "--quiet", "rehearse", "zone.yaml", "--days", "1", "--seeds", seeds});
    CHECK(outcome.status == 0);
    CHECK(outcome.out.find('\n') + 1 == outcome.out.size());
    CHECK(nlohmann::json::accept(outcome.out));
  }
}
