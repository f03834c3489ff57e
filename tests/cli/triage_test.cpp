// `weft triage` as a user runs it: storms replayed from records and from raw syslog.
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>

#include "run_weft.hpp"

using weft::cli_test::Outcome;
using weft::cli_test::Scratch;

namespace {

constexpr const char* fabric =
    "fabric: {generator: ai_zone, racks: 24, hosts_per_rack: 2, spines: 6, link: 400 Gbps}\n";

// The faults alone are 4,400 lines.
#ifdef WEFT_SANITIZED
constexpr const char* usual_lines = "9000";
#else
constexpr const char* usual_lines = "20000";
#endif

struct Storm {
  Scratch scratch;
  explicit Storm(const std::string& format, const std::string& lines = usual_lines) {
    scratch.write("f.yaml", fabric);
    const Outcome made = scratch.run({"storm", "--fabric", "f.yaml", "--faults", "40", "--lines",
                                      lines, "--seed", "5", "--format", format, "--out", "storm"});
    REQUIRE_MESSAGE(made.status == 0, made.err);
  }
  Outcome triage(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "triage");
    arguments.insert(arguments.end(), {"--fabric", "f.yaml"});
    return scratch.run(arguments);
  }
};

// A storm like the others, as history, and what it teaches.
void learn_from_history(const Storm& storm) {
  const Outcome made =
      storm.scratch.run({"storm", "--fabric", "f.yaml", "--faults", "40", "--lines", usual_lines,
                         "--seed", "105", "--out", "history"});
  REQUIRE_MESSAGE(made.status == 0, made.err);
  const Outcome learned = storm.triage({"history/records.jsonl", "--learn", "relations.yaml"});
  REQUIRE_MESSAGE(learned.status == 0, learned.err);
  CHECK(learned.out.empty());
}

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
  const Storm storm("records", "6000");
  const Outcome one = storm.triage({"storm/records.jsonl", "--json", "--threads", "1"});
  const Outcome two = storm.triage({"storm/records.jsonl", "--json", "--threads", "2"});
  REQUIRE(one.status == 0);
  CHECK(one.out == two.out);
  CHECK(one.out.find("\"cause\"") != std::string::npos);
  CHECK(storm.triage({"storm/records.jsonl"}).out.find("ctsw:") != std::string::npos);
}

// As `zcat *.jsonl.gz` joins files, or worse.
TEST_CASE("triage: records in any order give the cases of records in order") {
  const Storm storm("records", "20000");
  const Outcome sorted = storm.triage({"storm/records.jsonl", "--json"});
  REQUIRE(sorted.status == 0);
  REQUIRE(sorted.out.find("\"cause\"") != std::string::npos);
  std::vector<std::string> lines;
  std::istringstream text(storm.scratch.read("storm/records.jsonl"));
  for (std::string line; std::getline(text, line);) lines.push_back(line + "\n");
  REQUIRE(lines.size() > 16'384);  // pieces that are read at once
  const auto joined = [&] { return std::accumulate(lines.begin(), lines.end(), std::string()); };
  std::ranges::reverse(lines);
  storm.scratch.write("reversed.jsonl", joined());
  std::ranges::stable_partition(lines,
                                [&](const std::string& line) { return line.size() % 2 > 0; });
  storm.scratch.write("joined.jsonl", joined());
  for (const char* file : {"reversed.jsonl", "joined.jsonl"}) {
    const Outcome outcome = storm.triage({file, "--json", "--threads", "1"});
    CHECK(outcome.status == 0);
    CHECK(outcome.out == sorted.out);
    CHECK(outcome.err == sorted.err);
  }
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
  // Lines that are no records, and one of which nothing is in the fabric.
  scratch.write("useless.jsonl",
                "[]\n{\"t\":1,\"source\":\"snmp\",\"kind\":\"link_down\",\"entity\":\"x\"}\n");
  refuses({"useless.jsonl", "--fabric", "f.yaml"}, "useless.jsonl:1");
  refuses({"r.jsonl", "--fabric", "f.yaml", "--rules", "rules.yaml"}, "rules.yaml:1");
  refuses({"r.jsonl", "--fabric", "f.yaml", "--format", "json"}, "--format");
}

TEST_CASE("triage: a line of more than 64 KiB is no record, and the others are read") {
  Scratch scratch;
  scratch.write("f.yaml", fabric);
  const std::string good =
      R"({"t":1000000000,"source":"syslog","entity":"rtsw:1->ctsw:1","kind":"link_down"})";
  const std::string filler = R"({"t":1,"source":"syslog","kind":"info","message":")" +
                             std::string(std::size_t{3} << 20, 'x') + "\"}\n";
  scratch.write("r.jsonl", good + "\n" + filler + filler + good + "\n");
  const Outcome outcome =
      scratch.run({"triage", "r.jsonl", "--fabric", "f.yaml", "--json", "--threads", "1"});
  CHECK_MESSAGE(outcome.status == 0, outcome.err);
  CHECK(outcome.err.find("r.jsonl:2") != std::string::npos);
  CHECK(outcome.err.find("2 records are malformed and ignored") != std::string::npos);
  CHECK(outcome.out.find(R"("record":"1")") != std::string::npos);
  CHECK(outcome.out.find(R"("record":"4")") != std::string::npos);
}

TEST_CASE("triage: what a missing rule loses is won back by relations learned from history") {
  const Storm storm("records");
  learn_from_history(storm);
  const std::string relations = storm.scratch.read("relations.yaml");
  CHECK(relations.starts_with(std::string("# Learned by weft triage --learn from ") + usual_lines +
                              " records"));
  CHECK(relations.find("{from: link_down, to: bgp_down, at: port, after: [0 s,") !=
        std::string::npos);
  // Lost sessions belong to no cable, card or switch.
  storm.scratch.write(
      "rules.yaml",
      "groups: {link: [link_down, link_up, interface_down, bgp_up, bfd_up, probe_loss]}\n");
  const auto score = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"storm/records.jsonl", "--truth", "storm", "--json"});
    const Outcome outcome = storm.triage(more);
    REQUIRE_MESSAGE(outcome.status == 0, outcome.err);
    return nlohmann::json::parse(outcome.out);
  };
  const auto with_rule = score({}), without = score({"--rules", "rules.yaml"});
  const auto learned = score({"--rules", "rules.yaml", "--relations", "relations.yaml"});
  const auto f1 = [](const nlohmann::json& s) { return s["macro_f1"].get<double>(); };
  CHECK(f1(without) < f1(with_rule) - 0.02);
  CHECK(f1(learned) > f1(without) + 0.01);
  CHECK(without["cases"].get<int>() >= 50);
  CHECK(learned["cases"].get<int>() <= 42);
  CHECK(learned["top1"] == with_rule["top1"]);
  // Beside the rule they change next to nothing.
  CHECK(f1(score({"--relations", "relations.yaml"})) > f1(with_rule) - 0.005);
}

TEST_CASE("triage: which cases learned relations change, and none without them") {
  const Storm storm("records");
  storm.scratch.write(
      "relations.yaml",
      "relations:\n  - {from: link_down, to: crc_errors, at: device, after: [0 s, 10 min], "
      "support: 9, confidence: 0.9}\n");
  storm.scratch.write("none.yaml", "relations: []\n");
  const auto diff = [&](const std::string& file) {
    const Outcome outcome =
        storm.triage({"storm/records.jsonl", "--json", "--diff-relations", file});
    REQUIRE_MESSAGE(outcome.status == 0, outcome.err);
    return outcome.out;
  };
  CHECK(diff("none.yaml").empty());
  CHECK(diff("relations.yaml").find(R"("change":"regrouped")") != std::string::npos);
  const Outcome cases =
      storm.triage({"storm/records.jsonl", "--json", "--relations", "relations.yaml"});
  CHECK(cases.out.find(R"("relation":"learned","confidence":0.90)") != std::string::npos);
  const Outcome two = storm.triage(
      {"storm/records.jsonl", "--json", "--relations", "relations.yaml", "--threads", "2"});
  CHECK(two.out == cases.out);
  storm.scratch.write("bad.yaml", "relations:\n  - {from: link_dwn, to: bgp_down}\n");
  const Outcome refused = storm.triage({"storm/records.jsonl", "--relations", "bad.yaml"});
  CHECK(refused.status == 2);
  CHECK_MESSAGE(refused.err.find("bad.yaml:2") != std::string::npos, refused.err);
}

TEST_CASE("serve: the relations of its configuration are a file, and read as strictly") {
  Scratch scratch;
  scratch.write("f.yaml", fabric);
  scratch.write("bad.yaml", "relations:\n  - {from: link_dwn, to: bgp_down}\n");
  const auto refusal = [&](const std::string& config) {
    scratch.write("serve.yaml", config);
    const Outcome outcome = scratch.run({"serve", "--fabric", "f.yaml", "--config", "serve.yaml",
                                         "--listen", "unix:api.sock", "--store", "weft.db"});
    CHECK(outcome.status == 2);
    return outcome.err;
  };
  CHECK(refusal("relations: bad.yaml\n").find("bad.yaml:2") != std::string::npos);
  CHECK(refusal("relations: none.yaml\n").find("none.yaml") != std::string::npos);
  CHECK(refusal("relations: [a, b]\n").find("serve.yaml:1") != std::string::npos);
}
