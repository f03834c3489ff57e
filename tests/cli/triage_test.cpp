// `weft triage` as a user runs it: storms replayed from records and from raw syslog.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "run_weft.hpp"

using weft::cli_test::Outcome;
using weft::cli_test::Scratch;

namespace {

constexpr const char* fabric =
    "fabric: {generator: ai_zone, racks: 24, hosts_per_rack: 2, spines: 6, link: 400 Gbps}\n";

struct Storm {
  Scratch scratch;
  explicit Storm(const std::string& format) {
    scratch.write("f.yaml", fabric);
    const Outcome made =
        scratch.run({"storm", "--fabric", "f.yaml", "--faults", "40", "--lines", "20000", "--seed",
                     "5", "--format", format, "--out", "storm"});
    REQUIRE_MESSAGE(made.status == 0, made.err);
  }
  Outcome triage(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "triage");
    arguments.insert(arguments.end(), {"--fabric", "f.yaml"});
    return scratch.run(arguments);
  }
};

// Cases of 40 faults, scored.
void is_good(const Outcome& outcome) {
  REQUIRE_MESSAGE(outcome.status == 0, outcome.err);
  const auto score = nlohmann::json::parse(outcome.out);
  CHECK(score["faults"] == 40);
  CHECK(score["cases"].get<int>() >= 38);
  CHECK(score["cases"].get<int>() <= 42);
  CHECK(score["macro_f1"].get<double>() > 0.97);
  CHECK(score["top1"].get<double>() >= 0.95);
}

}  // namespace

TEST_CASE("triage: a case for each fault, from records and from raw syslog") {
  const Storm records("records");
  is_good(records.triage({"storm/records.jsonl", "--truth", "storm", "--json"}));
  const Storm syslog("syslog");
  is_good(
      syslog.triage({"storm/syslog.log", "--format", "syslog", "--records", "storm/records.jsonl",
                     "--inventory", "storm/inventory.csv", "--truth", "storm", "--json"}));
}

TEST_CASE("triage: the same bytes on any number of threads, and a table for people") {
  const Storm storm("records");
  const Outcome one = storm.triage({"storm/records.jsonl", "--json", "--threads", "1"});
  const Outcome two = storm.triage({"storm/records.jsonl", "--json", "--threads", "2"});
  REQUIRE(one.status == 0);
  CHECK(one.out == two.out);
  CHECK(one.out.find("\"cause\"") != std::string::npos);
  CHECK(storm.triage({"storm/records.jsonl"}).out.find("ctsw:") != std::string::npos);
}

TEST_CASE("triage: wrong input is refused with its place") {
  Scratch scratch;
  scratch.write("f.yaml", fabric);
  scratch.write("r.jsonl", "{\"t\":1,\"source\":\"snmp\",\"kind\":\"link_down\"}\n");
  scratch.write("broken.jsonl", "\n{\"t\":1\n");
  scratch.write("rules.yaml", "prices:\n  cabel: 3\n");
  const auto refuses = [&](const std::vector<std::string>& arguments, const char* what) {
    std::vector<std::string> words{"triage"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    const Outcome outcome = scratch.run(words);
    CHECK(outcome.status == 2);
    CHECK_MESSAGE(outcome.err.find(what) != std::string::npos, outcome.err);
  };
  CHECK(scratch.run({"triage", "r.jsonl", "--fabric", "f.yaml"}).status == 0);
  refuses({"r.jsonl"}, "--fabric");
  refuses({"none.jsonl", "--fabric", "f.yaml"}, "none.jsonl");
  refuses({"broken.jsonl", "--fabric", "f.yaml"}, "broken.jsonl:2");
  refuses({"r.jsonl", "--fabric", "f.yaml", "--rules", "rules.yaml"}, "rules.yaml:1");
  refuses({"r.jsonl", "--fabric", "f.yaml", "--format", "json"}, "--format");
}
