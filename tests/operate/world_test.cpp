// `weft serve --world`: the whole service against a simulated network, again and again the same.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "adapt/sqlite/store.hpp"
#include "base/rng.hpp"
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

TEST_CASE("a rack that two faults leave short of uplinks is a case beside theirs, about no less") {
  const Scratch scratch;
  scratch.write("world.yaml",
                "fabric: {generator: ai_zone, racks: 3, hosts_per_rack: 1, gpus_per_host: 1, "
                "spines: 4}\n"
                "faults:\n"
                "  - {kind: link_down, link: \"rtsw:1--ctsw:0\", at: 20 s}\n"
                "  - {kind: link_down, link: \"rtsw:1--ctsw:2\", at: 40 s}\n");
  const Outcome run = scratch.run({"serve", "--world", "world.yaml", "--for", "5 min", "--store",
                                   "a.db", "--listen", "unix:a.sock", "--json"});
  REQUIRE_MESSAGE(run.status == 0, run.err);
  const json report = json::parse(run.out);
  INFO(report.dump(1));
  CHECK(report["cases"] == 3);
  CHECK(report["cases_false"] == 0);
  CHECK(contents(scratch, "a.db").find(R"("kind":"capacity","entity":"rack:1")") !=
        std::string::npos);
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

  {  // also when somebody asks for cases all the time
    const int second = scratch.start(world_command(scratch, "b.db", "1"), "b.json");
    std::size_t answers = 0;
    for (int i = 0; i < 200 && scratch.read("b.json").empty(); ++i)
      answers += scratch.run({"case", "none", "--from", "unix:b.db.sock"}).status == 2 ? 1 : 0;
    CHECK(weft::cli_test::wait_for(second) == 0);
    CHECK(answers > 0);
    CHECK(scratch.read("b.json") == first.out);
    CHECK((contents(scratch, "b.db") == contents(scratch, "a.db")));
  }
  {  // but not with another seed
    const Outcome other = scratch.run(world_command(scratch, "c.db", "2"));
    CHECK(other.status == 0);
    CHECK((contents(scratch, "c.db") != contents(scratch, "a.db")));
  }
  // A store is used once.
  const Outcome again = scratch.run(world_command(scratch, "a.db", "1"));
  CHECK(again.status != 0);
  CHECK_MESSAGE(again.err.contains("begins anew"), again.err);
}

// Two or three faults that overlap, each at a spine of its own.
std::string sequence(std::uint64_t number) {
  weft::Rng rng = weft::Rng(number).stream("sequence");
  constexpr std::array kinds{"link_down",   "dead_link",   "link_lossy",   "link_degraded",
                             "port_flap",   "corrupt",     "delay",        "jitter",
                             "duplicate",   "switch_down", "switch_lossy", "daemon_kill",
                             "daemon_stop", "daemon_hang", "blackhole"};
  const auto is_of = [](std::string_view kind, std::initializer_list<std::string_view> list) {
    return std::ranges::find(list, kind) != list.end();
  };
  std::string out =
      "fabric: {generator: ai_zone, racks: 4, hosts_per_rack: 2, gpus_per_host: 1, spines: 8, "
      "link: 400 Gbps}\nfaults:\n";
  std::set<std::uint64_t> used;
  for (std::uint64_t left = 2 + rng.below(2); left > 0; --left) {
    const std::string_view kind = kinds[rng.below(kinds.size())];
    std::uint64_t spine = rng.below(8);
    while (!used.insert(spine).second) spine = rng.below(8);
    std::string upper = fmt::format("ctsw:{}", spine), lower = fmt::format("rtsw:{}", rng.below(4));
    if (is_of(kind, {"switch_down", "switch_lossy", "blackhole"}) || kind.starts_with("daemon"))
      out += fmt::format("  - {{kind: {}, switch: \"{}\"", kind, upper);
    else if (is_of(kind, {"link_lossy", "corrupt", "delay", "jitter"}))
      out += fmt::format("  - {{kind: {}, link: \"{}\"", kind,
                         rng.below(2) == 0 ? fmt::format("{}->{}", lower, upper)
                                           : fmt::format("{}->{}", upper, lower));
    else
      out += fmt::format("  - {{kind: {}, link: \"{}--{}\"", kind, lower, upper);
    if (is_of(kind, {"link_lossy", "corrupt", "switch_lossy"}))
      out += fmt::format(", loss: {:.4f}", 0.005 * std::pow(20, rng.uniform()));
    if (is_of(kind, {"delay", "jitter"})) out += fmt::format(", delay: {} ms", 3 + rng.below(6));
    if (kind == "link_degraded") out += ", factor: 0.5";
    if (kind == "blackhole") out += fmt::format(", to: \"host:{}\"", rng.below(8));
    out += fmt::format(", at: {} s, until: {} s}}\n", 60 + rng.below(90), 480 + rng.below(120));
  }
  return out;
}

TEST_CASE("a hundred sequences of faults that overlap" * doctest::skip()) {
  constexpr std::uint64_t sequences = 100;
  std::uint64_t right = 0, faults = 0, faults_right = 0, cases_false = 0;
  for (std::uint64_t number = 1; number <= sequences; ++number) {
    const Scratch scratch;
    const std::string text = sequence(number);
    CAPTURE(text);
    std::vector<std::string> command = world_command(scratch, "s.db", std::to_string(number));
    scratch.write("world.yaml", text);
    std::ranges::replace(command, std::string("25 min"), std::string("100 min"));
    command.insert(command.end(), {"--probe-flows", "16"});
    const Outcome outcome = scratch.run(command);
    REQUIRE_MESSAGE(outcome.status == 0, outcome.err);
    const json report = json::parse(outcome.out);
    CHECK_MESSAGE(report["drains_healthy"] == 0, report.dump(1));
    CHECK_MESSAGE(report["still_drained"] == 0, report.dump(1));
    bool is_right = true;
    for (const json& fault : report["faults"]) {
      ++faults;
      faults_right += fault["right"] == true ? 1 : 0;
      is_right &= fault["right"] == true;
    }
    right += is_right ? 1 : 0;
    cases_false += report["cases_false"].get<std::uint64_t>();
    if (!is_right || report["cases_false"] != 0) MESSAGE(text << report["faults"].dump());
  }
  MESSAGE(right << " of " << sequences << " sequences right, " << faults_right << " of " << faults
                << " faults; " << cases_false << " cases about no fault");
  CHECK(right >= 98);
  CHECK(cases_false <= 2);
}

}  // namespace
