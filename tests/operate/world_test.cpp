// `weft serve --world`: the whole service against a simulated network, again and again the same.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "adapt/sqlite/store.hpp"
#include "run_weft.hpp"

using nlohmann::json;
using weft::cli_test::Outcome;
using weft::cli_test::Scratch;

namespace {

constexpr const char* small_world =
    "fabric: {generator: ai_zone, racks: 3, hosts_per_rack: 2, gpus_per_host: 2, spines: 12, "
    "link: 400 Gbps}\n"
    "faults:\n"
    "  - {kind: link_lossy, link: \"ctsw:1->rtsw:2\", loss: 0.01, at: 1 min, until: 8 min}\n"
    "  - {kind: link_down, link: \"rtsw:0--ctsw:0\", at: 2 min, until: 8 min}\n"
    "  - {kind: link_degraded, link: \"rtsw:1--ctsw:3\", factor: 0.5, at: 2 min, until: 8 min}\n"
    "  - {kind: icmp_ratelimit, switch: \"ctsw:5\", at: 3 min}\n";

std::vector<std::string> world_command(const Scratch& scratch, const std::string& store,
                                       const std::string& seed) {
  scratch.write("world.yaml", small_world);
  scratch.write("serve.yaml", "policy: {defaults: {soak: 2 min}}\n");
  return {"serve",
          "--world",
          "world.yaml",
          "--config",
          "serve.yaml",
          "--for",
          "25 min",
          "--store",
          store,
          "--listen",
          "unix:" + store + ".sock",
          "--json",
          "--seed",
          seed};
}

// All that a store knows.
std::string contents(const Scratch& scratch, const std::string& store) {
  const auto opened = weft::adapt::sqlite::open_sqlite(scratch.path() + "/" + store);
  REQUIRE_MESSAGE(opened.has_value(), (opened ? "" : opened.error().text()));
  constexpr std::size_t all = 10'000'000;
  const auto events = (*opened)->events(0, all);
  const auto audit = (*opened)->audit(0, "", all);
  const auto cases = (*opened)->documents("case", weft::end_of_time, all);
  REQUIRE((events && audit && cases));
  std::string out;
  for (const auto& event : *events)
    out += fmt::format("{} {} {}\n", event.received.ns, event.feed, event.line);
  for (const auto& entry : *audit)
    out += fmt::format("{} {} {} {}\n", entry.t.ns, entry.subject, entry.action, entry.detail);
  for (const auto& document : *cases)
    out += fmt::format("{} {}\n", document.updated.ns, document.body);
  return out;
}

TEST_CASE("faults of a simulated network are found, drained and returned, each time the same") {
  const Scratch scratch;
  const Outcome first = scratch.run(world_command(scratch, "a.db", "1"));
  REQUIRE_MESSAGE(first.status == 0, first.err);
  const json report = json::parse(first.out);
  INFO(report.dump(1));
  CHECK(report["cases_false"] == 0);
  CHECK(report["drains_healthy"] == 0);
  CHECK(report["still_drained"] == 0);
  REQUIRE(report["faults"].size() == 4);
  for (const json& fault : report["faults"]) {
    CHECK(fault["right"] == true);
    if (fault["kind"] == "icmp_ratelimit") continue;
    if (fault["kind"] == "link_degraded") {  // after three polls; test traffic finds it slow, too
      REQUIRE((fault["case_s"].is_number() && fault["drain_s"].is_number()));
      CHECK(fault["case_s"] < 120);
      CHECK(fault["return_s"] > 5 * 60);
      continue;
    }
    REQUIRE((fault["case_s"].is_number() && fault["drain_s"].is_number()));
    CHECK(fault["case_s"] < 20);
    CHECK(fault["drain_s"] < 40);
    CHECK(fault["return_s"] > 5 * 60);
  }

  SUBCASE("also when somebody asks for cases all the time") {
    const int second = scratch.start(world_command(scratch, "b.db", "1"), "b.json");
    std::size_t answers = 0;
    for (int i = 0; i < 200 && scratch.read("b.json").empty(); ++i)
      answers += scratch.run({"case", "none", "--from", "unix:b.db.sock"}).status == 2 ? 1 : 0;
    CHECK(weft::cli_test::wait_for(second) == 0);
    CHECK(answers > 0);
    CHECK(scratch.read("b.json") == first.out);
    CHECK((contents(scratch, "b.db") == contents(scratch, "a.db")));
  }
  SUBCASE("but not with another seed") {
    const Outcome other = scratch.run(world_command(scratch, "c.db", "2"));
    CHECK(other.status == 0);
    CHECK((contents(scratch, "c.db") != contents(scratch, "a.db")));
  }
  SUBCASE("and a store is used once") {
    const Outcome again = scratch.run(world_command(scratch, "a.db", "1"));
    CHECK(again.status != 0);
    CHECK_MESSAGE(again.err.contains("begins anew"), again.err);
  }
}

}  // namespace
