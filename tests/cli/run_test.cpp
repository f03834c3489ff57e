// weft run and weft sweep: what they print, what they write, and that it is always the same.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>
#include <thread>

#include "run_weft.hpp"

using namespace weft;
using cli_test::Outcome;
using cli_test::Scratch;
using nlohmann::json;

namespace {

// Four racks of two hosts; half of the spines fail while the job runs, and come back.
constexpr const char* scenario = R"(name: mid-run faults
fabric: {generator: ai_zone, racks: 4, hosts_per_rack: 2, gpus_per_host: 8, spines: 4}
jobs:
  - {name: ar, collective: all_reduce, gpus: 32, bytes: 64 MiB, repeat: 3}
  - {name: a2a, collective: all_to_all, gpus: 16, bytes: 16 MiB, place: fragmented}
compare:
  spray: {routing: {scheme: spray}}
  spray, failing:
    routing: {scheme: spray}
    faults: [{kind: switch_down, role: ctsw, count: 2, at: 1 ms, until: 3 ms}]
  e_ecmp: {routing: {scheme: e_ecmp, qps: 16}}
)";

json run_json(const Scratch& scratch, std::vector<std::string> more = {}) {
  std::vector<std::string> arguments{"run", "s.yaml", "--json"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Outcome outcome = scratch.run(arguments);
  REQUIRE_MESSAGE(outcome.status == 0, outcome.err);
  return json::parse(outcome.out);
}

double mean_s(const json& report, const char* variant, const char* job) {
  return report["variants"][variant]["jobs"][job]["time_s"]["mean"];
}

}  // namespace

TEST_CASE("a collective of no bytes takes no times the least") {
  const Scratch scratch;
  scratch.write("s.yaml",
                "fabric: {generator: ai_zone, racks: 2, latency: 0 s}\n"
                "collectives: {cost: line_rate}\n"
                "jobs: [{name: a, collective: all_reduce, gpus: 8, bytes: 0 B}]\n");
  const Outcome outcome = scratch.run({"run", "s.yaml"});
  CHECK_MESSAGE(outcome.status == 0, outcome.err);
  CHECK_MESSAGE(!outcome.out.contains("nan"), outcome.out);
  CHECK(outcome.out.contains("a: all_reduce of 0 ns."));
}

TEST_CASE("variants with their jobs, tiers and digests; faults in mid-run cost time") {
  const Scratch scratch;
  scratch.write("s.yaml", scenario);
  const json report = run_json(scratch);
  REQUIRE(report["variants"].size() == 3);
  for (const auto& [name, variant] : report["variants"].items()) {
    CAPTURE(name);
    REQUIRE(variant["jobs"].size() == 2);
    CHECK(variant["jobs"]["ar"]["iterations"] == 3);
    CHECK(variant["tiers"].contains("rtsw->ctsw"));
    CHECK(variant["digest"].get<std::string>().size() == 16);
    for (const auto& [job_name, job] : variant["jobs"].items())
      CHECK(job["ratio"].get<double>() >= 1 - 1e-9);
  }
  CHECK(mean_s(report, "spray, failing", "ar") > 1.05 * mean_s(report, "spray", "ar"));
  CHECK(report["variants"]["spray, failing"]["faults"].size() == 1);
}

TEST_CASE("the same bytes on every run, whatever the number of threads") {
  const Scratch scratch;
  scratch.write("s.yaml", scenario);
  REQUIRE(scratch.run({"run", "s.yaml", "--out", "a", "--threads", "1"}).status == 0);
  REQUIRE(scratch.run({"run", "s.yaml", "--out", "b", "--threads", "2", "-q"}).status == 0);
  for (const char* file : {"report.json", "report.html", "trace.json.gz"}) {
    CAPTURE(file);
    CHECK_FALSE(scratch.read(std::string("a/") + file).empty());
    CHECK(scratch.read(std::string("a/") + file) == scratch.read(std::string("b/") + file));
  }
  const Outcome outcome = scratch.run({"run", "s.yaml", "--json"});
  CHECK(outcome.out == scratch.read("a/report.json"));
}

TEST_CASE("--set holds in every variant, --seed moves hashes and nothing else") {
  const Scratch scratch;
  scratch.write("s.yaml", scenario);
  const json plain = run_json(scratch);
  const json doubled = run_json(scratch, {"--set", "jobs.0.bytes=128 MiB"});
  for (const auto& [name, variant] : doubled["variants"].items())
    CHECK(variant["jobs"]["ar"]["bytes_per_rank"] == 128 << 20);
  const json pinned = run_json(scratch, {"--set", "routing.scheme=pinned"});
  for (const auto& [name, variant] : pinned["variants"].items())
    CHECK(variant["scheme"] == "pinned");
  const json other = run_json(scratch, {"--seed", "2"});
  CHECK(other["scenario"]["seed"] == 2);
  CHECK(other["variants"]["e_ecmp"]["digest"] != plain["variants"]["e_ecmp"]["digest"]);
}

TEST_CASE("a job that cannot finish is reported, and the exit status says so") {
  const Scratch scratch;
  scratch.write("s.yaml",
                "fabric: {generator: ai_zone, racks: 2, hosts_per_rack: 1, spines: 2}\n"
                "jobs: [{name: j, collective: all_reduce, gpus: 16, bytes: 64 MiB}]\n"
                "faults: [{kind: switch_down, role: ctsw, count: 2, at: 100 us}]\n");
  const Outcome outcome = scratch.run({"run", "s.yaml", "--json"});
  CHECK(outcome.status == 1);
  const json variant = json::parse(outcome.out)["variants"]["base"];
  CHECK(variant["flow_completion"]["unfinished"].get<int>() > 0);
  CHECK(variant["jobs"]["j"]["iterations"] == 0);
  CHECK(variant["jobs"]["j"]["time_s"]["mean"].is_null());
  CHECK(variant["notes"].dump().find("no live path") != std::string::npos);
}

TEST_CASE("a sweep: every point in the order of the file, on any number of threads") {
  const Scratch scratch;
  scratch.write("s.yaml", R"(
fabric: {generator: ai_zone, racks: 4, hosts_per_rack: 2, gpus_per_host: 8, spines: 4}
jobs: [{name: j, collective: all_reduce, gpus: 32, bytes: 64 MiB}]
sweep: {fabric.spines: [2, 4], seed: [1, 2, 3]}
)");
  const Outcome one = scratch.run({"sweep", "s.yaml", "--csv", "a.csv", "--threads", "1"});
  const Outcome two = scratch.run({"sweep", "s.yaml", "--csv", "b.csv", "--threads", "2"});
  CHECK(one.status == 0);
  CHECK(one.out == two.out);
  CHECK(scratch.read("a.csv") == scratch.read("b.csv"));
  CHECK(scratch.read("a.csv").starts_with("fabric.spines,seed,variant,job,time_s,"));

  const json rows = json::parse(scratch.run({"sweep", "s.yaml", "--json"}).out)["rows"];
  REQUIRE(rows.size() == 6);
  for (std::size_t i = 0; i < 6; ++i) {
    CHECK(rows[i]["point"]["fabric.spines"] == (i < 3 ? "2" : "4"));
    CHECK(rows[i]["point"]["seed"] == std::to_string(i % 3 + 1));
  }
  // A seed in the sweep is the seed of the run.
  const std::vector<std::string> seed_2{"run", "s.yaml", "--json", "--seed", "2"};
  const json run = json::parse(scratch.run(seed_2).out);
  CHECK(rows[4]["time_s"] == run["variants"]["base"]["jobs"]["j"]["time_s"]["mean"]);
  CHECK(rows[4]["time_s"] != rows[3]["time_s"]);
}

TEST_CASE(
    "a sweep ends cleanly at Ctrl-C, and --resume ends with the bytes of one that ran through") {
  const Scratch scratch;
  scratch.write("s.yaml", R"(
fabric: {generator: ai_zone, racks: 16}
jobs: [{name: j, collective: all_to_all, gpus: 128, bytes: 1 MiB, place: random}]
sweep: {fabric.spines: [4, 8, 16, 18], seed: [1, 2, 3, 4, 5, 6]}
)");
  const std::vector<std::string> in_part{"sweep", "s.yaml", "--out", "part", "--threads", "1"};
  const auto lines = [&](const std::string& file) {
    const std::string text = scratch.read(file);
    CHECK((text.empty() || text.ends_with('\n')));
    return std::ranges::count(text, '\n');
  };
  const char* journal = "part/points.jsonl";
  std::ptrdiff_t points = 0;  // in it
  for (const int signal : {SIGINT, SIGTERM}) {
    std::vector<std::string> again = in_part;
    if (points > 0) again.emplace_back("--resume");
    const int process = scratch.start(again, "out");
    const auto written = [&] { return std::ranges::count(scratch.read(journal), '\n'); };
    for (int ms = 0; ms < 60'000 && written() < points + 4; ++ms)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ::kill(process, signal);
    CHECK(cli_test::wait_for(process) == 128 + signal);
    points = lines(journal) - 1;
    REQUIRE(points < 24);
    CHECK(lines("part/rows.csv") == points + 1);
    const std::string errors = scratch.read("out.err");
    CHECK(errors.contains("weft: ends after the points in hand; once more ends at once\n"));
    CHECK(
        errors.contains(fmt::format("weft: stopped: points {}-23 ({} of 24) did not run; go on "
                                    "with --resume\n",
                                    points, 24 - points)));
  }
  std::vector<std::string> rest = in_part;
  rest.emplace_back("--resume");
  const Outcome resumed = scratch.run(rest);
  CHECK(resumed.status == 0);
  const Outcome whole = scratch.run({"sweep", "s.yaml", "--out", "whole", "--threads", "1"});
  CHECK(whole.status == 0);
  for (const char* file : {"rows.csv", "sweep.json", "sweep.html", "points.jsonl"}) {
    CAPTURE(file);
    CHECK(scratch.read(std::string("part/") + file) == scratch.read(std::string("whole/") + file));
  }
}

TEST_CASE("a sweep goes on after a point that cannot run, and tells") {
  const Scratch scratch;
  const std::string head =
      "fabric: {generator: ai_zone, racks: 4, hosts_per_rack: 2, gpus_per_host: 8, spines: 4}\n"
      "jobs: [{name: j, collective: all_reduce, gpus: 32, bytes: 64 MiB}]\n";
  scratch.write("spines.yaml", head + "sweep: {fabric.spines: [2, 0, 4]}\n");
  scratch.write("faults.yaml",
                head + "sweep: {faults: [[], [{kind: switch_down, role: ctsw, count: 4}]]}\n");
  scratch.write("unknown.yaml", head + "sweep: {rooting.qps: [1]}\n");

  const Outcome spines = scratch.run({"sweep", "spines.yaml", "--json"});
  CHECK(spines.status == 1);
  const json result = json::parse(spines.out);
  CHECK(result["failed_points"] == 1);
  REQUIRE(result["rows"].size() == 3);
  CHECK(result["rows"][1]["error"].get<std::string>().find("spines.yaml:3:") == 0);
  CHECK(result["rows"][2]["time_s"].get<double>() > 0);

  const Outcome faults = scratch.run({"sweep", "faults.yaml", "--json"});
  CHECK(faults.status == 1);
  const json broken = json::parse(faults.out)["rows"][1];
  CHECK(broken["error"].get<std::string>().starts_with("unfinished at "));
  CHECK(broken["job"] == "j");

  const Outcome unknown = scratch.run({"sweep", "unknown.yaml"});
  CHECK(unknown.status == 2);
  CHECK(unknown.err.find("did you mean \"routing\"") != std::string::npos);
}
