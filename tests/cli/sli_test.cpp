// `weft sli` as a user runs it: figures, files, and wrong input of every kind.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/test_approx.hpp"
#include "run_weft.hpp"

using weft::cli_test::Outcome;
using weft::cli_test::Scratch;

namespace {

constexpr const char* sli_fabric =
    "fabric: {generator: ai_zone, racks: 2, hosts_per_rack: 1, gpus_per_host: 1, spines: 2}\n";
constexpr const char* episode = R"({"id":"e1","kind":"loss","entities":["ctsw:0"],)"
                                R"("start":"2026-03-01T00:02:00Z","end":"2026-03-01T00:05:00Z"})"
                                "\n";

std::string row(int minute, int lost) {
  return fmt::format(
      R"({{"t":"2026-03-01T00:{:02}:00Z","src":"nic:0","dst":"nic:1","sport":1,"class":"0",)"
      R"("path":["nic:0->rtsw:0","rtsw:0->ctsw:0","ctsw:0->rtsw:1","rtsw:1->nic:1"],)"
      R"("leg":"forward","sent":20000,"lost":{},"late":0,"rtt_us":{{"p50":9,"p99":20}}}})"
      "\n",
      minute, lost);
}

// Ten minutes of which 2, 3 and 4 are bad.
std::string ten_minutes() {
  std::string out;
  for (int minute = 0; minute < 10; ++minute)
    out += row(minute, minute >= 2 && minute < 5 ? 400 : 0);
  return out;
}

Scratch& filled(Scratch& scratch) {
  scratch.write("f.yaml", sli_fabric);
  scratch.write("e.jsonl", ten_minutes());
  scratch.write("ep.jsonl", episode);
  return scratch;
}

void check_refused(const std::string& file, const std::string& text,
                   const std::vector<std::string>& more, const std::string& says) {
  CAPTURE(text);
  Scratch scratch;
  filled(scratch).write(file, text);
  std::vector<std::string> arguments{"sli", "e.jsonl", "--fabric", "f.yaml"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Outcome outcome = scratch.run(arguments);
  INFO("got: ", outcome.err.substr(0, 500));
  CHECK(outcome.status == 2);
  CHECK(outcome.out.empty());
  CHECK(outcome.err.find(says) != std::string::npos);
}

}  // namespace

TEST_CASE("sli: minutes, cause, files") {
  Scratch scratch;
  const Outcome outcome =
      filled(scratch).run({"sli", "e.jsonl", "--fabric", "f.yaml", "--episodes", "ep.jsonl",
                           "--openslo", "slo.yaml", "--metrics", "m.prom", "--json"});
  CHECK(outcome.err == "");
  REQUIRE(outcome.status == 0);
  const auto json = nlohmann::json::parse(outcome.out);
  REQUIRE(json["series"].size() >= 4);
  const auto& all = json["series"][0];
  CHECK(all["objective"] == "cross-rack");
  CHECK(all["minutes"]["good"] == 7);
  CHECK(all["minutes"]["bad_loss"] == 3);
  CHECK(all["availability"] == approx(0.7));
  REQUIRE(all["causes"].size() == 1);
  CHECK(all["causes"][0]["episode"] == "e1");
  CHECK(all["causes"][0]["minutes"] == approx(3));
  CHECK(scratch.read("slo.yaml").find("budgetingMethod: Timeslices") != std::string::npos);
  CHECK(scratch.read("m.prom").find("weft_sli_availability{objective=\"zone\"") !=
        std::string::npos);
  const Outcome table = scratch.run({"sli", "e.jsonl", "--fabric", "f.yaml"});
  CHECK(table.status == 0);
  CHECK(table.out.find("unexplained") != std::string::npos);
  CHECK(table.out.find("70.0000 %") != std::string::npos);
}

TEST_CASE("sli: files may be split and come in any order") {
  Scratch scratch;
  filled(scratch);
  scratch.write("a.jsonl", row(7, 0) + row(2, 400) + row(0, 0) + row(9, 0));
  scratch.write("b.jsonl", row(4, 400) + row(1, 0) + row(8, 0));
  scratch.write("c.jsonl", row(3, 400) + row(6, 0) + row(5, 0));
  const Outcome one = scratch.run({"sli", "e.jsonl", "--fabric", "f.yaml", "--json"});
  const Outcome three =
      scratch.run({"sli", "c.jsonl", "a.jsonl", "b.jsonl", "--fabric", "f.yaml", "--json"});
  CHECK(one.status == 0);
  CHECK(one.out == three.out);
}

TEST_CASE("sli: a part of the time") {
  Scratch scratch;
  const Outcome outcome =
      filled(scratch).run({"sli", "e.jsonl", "--fabric", "f.yaml", "--from", "2026-03-01T00:04:00Z",
                           "--to", "2026-03-01T00:20:00Z", "--json"});
  REQUIRE(outcome.status == 0);
  const auto json = nlohmann::json::parse(outcome.out);
  CHECK(json["minutes"] == 16);
  CHECK(json["series"][0]["minutes"]["bad"] == 1);
  CHECK(json["series"][0]["minutes"]["no_data"] == 10);
}

TEST_CASE("sli: wrong evidence") {
  const auto bad = [](const std::string& text, const std::string& says) {
    check_refused("e.jsonl", ten_minutes() + text + "\n", {}, says);
  };
  bad("{", "e.jsonl:11");
  bad("[1]", "e.jsonl:11");
  bad(R"({"t":"yesterday","src":"nic:0","dst":"nic:1","sent":1,"lost":0})", "e.jsonl:11");
  bad(R"({"t":1,"src":"nic:9","dst":"nic:1","sent":1,"lost":0})", "nic:9");
  bad(R"({"t":1,"src":"nic:0","dst":"nic:1","sent":1,"lost":2})", "count each probe once");
  bad(R"({"t":1,"src":"nic:0","dst":"nic:1","sent":1})", "lost");
  bad(R"({"t":1,"src":"nic:0","dst":"nic:1","sent":9,"lost":0})", "check the clocks");
  check_refused("e.jsonl", "", {}, "no evidence");
  check_refused("x", "", {"nothing.jsonl"}, "nothing.jsonl");
}

TEST_CASE("sli: wrong episodes, objectives and options") {
  check_refused("ep.jsonl", "{}\n", {"--episodes", "ep.jsonl"}, "ep.jsonl:1");
  check_refused("ep.jsonl", std::string(episode) + episode, {"--episodes", "ep.jsonl"},
                "duplicate id");
  check_refused("ep.jsonl", R"({"id":"e","kind":"loss","entities":["spine:3"],"start":1,"end":2})",
                {"--episodes", "ep.jsonl"}, "ep.jsonl: episode \"e\"");
  check_refused("o.yaml", "objectives: [{name: a, scope: zone, tarrget: 99 %}]",
                {"--objectives", "o.yaml"}, "did you mean \"target\"");
  check_refused("o.yaml", "objectives: [", {"--objectives", "o.yaml"}, "o.yaml:1");
  check_refused("x", "", {"--objectives", "none.yaml"}, "none.yaml");
  check_refused("x", "", {"--from", "noon"}, "--from");
  check_refused("x", "", {"--from", "2026-03-02T00:00:00Z", "--to", "2026-03-01T00:00:00Z"},
                "nothing lies between");
  check_refused("x", "", {"--lateness", "1 s"}, "whole number of minutes");
  check_refused("f.yaml", "fabric: {generator: ai_zonne}", {}, "ai_zone");
}
