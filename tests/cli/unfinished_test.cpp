// weft run: a job that dies says so in its row, on the terminal, in JSON and in the report, and is
// compared with nothing.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "run_weft.hpp"

using namespace weft;
using cli_test::Outcome;
using cli_test::Scratch;
using nlohmann::json;

namespace {

// The lines of a terminal that begin with `name` and a blank.
std::vector<std::string> rows_of(const std::string& text, const std::string& name) {
  std::vector<std::string> out;
  for (const std::string_view line : split(text, '\n'))
    if (line.starts_with(name + " ")) out.emplace_back(line);
  return out;
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// A ring of four racks of one GPU; 4 MB take 120 us an iteration, so that the rack dies in the
// fourth of ten.
constexpr const char* ring_job = R"(
fabric: {generator: ai_zone, racks: 4, hosts_per_rack: 1, gpus_per_host: 1, spines: 2, latency: 0 s}
routing: {scheme: spray}
collectives: {cost: line_rate}
jobs: [{name: ar, collective: all_reduce, algorithm: ring, gpus: 4, bytes: 4 MB, repeat: 10}]
)";
constexpr const char* rack_dies = "faults: [{kind: switch_down, switch: \"rtsw:1\", at: 420 us}]";

std::string training(const std::string& compare) {
  return R"(
fabric: {generator: ai_zone, racks: 4, hosts_per_rack: 1, gpus_per_host: 1, spines: 2}
jobs:
  - name: t
    model: {layers: 2, hidden: 512, ffn: 2048, heads: 8, head_size: 64, vocabulary: 1000}
    parallel: {dp: 4}
    batch: 4
    sequence: 512
    repeat: 3
compare:
)" + compare;
}

double number(const json& value) { return value.get<double>(); }

void check_dead(const json& job, std::size_t finished, double at_s, double within_s) {
  CAPTURE(job.dump());
  CHECK(job["iterations"] == finished);
  REQUIRE(job["unfinished"].is_object());
  CHECK(std::abs(number(job["unfinished"]["at_s"]) - at_s) <= within_s);
  CHECK(contains(job["unfinished"]["why"].get<std::string>(), "has no live path to gpu:"));
  for (const char* key : {"mean", "min", "max"}) CHECK(job["time_s"][key].is_null());
  for (const char* key : {"ratio", "busbw_GBps", "algbw_GBps"}) CHECK(job[key].is_null());
}

void check_row(const std::string& text, const std::string& variant, const std::string& said) {
  const std::vector<std::string> rows = rows_of(text, variant);
  CAPTURE(text);
  REQUIRE(!rows.empty());
  CHECK_MESSAGE(contains(rows[0], said), rows[0]);
  CHECK_FALSE(contains(rows[0], "1.00"));
}

}  // namespace

TEST_CASE("a collective that dies in iteration 4 of 10, on both engines") {
  const Scratch scratch;
  scratch.write("s.yaml", fmt::format("{0}compare:\n  healthy: {{}}\n  dead: {{{1}}}\n"
                                      "  packet healthy: {{engine: packet}}\n"
                                      "  packet dead: {{engine: packet, {1}}}\n",
                                      ring_job, rack_dies));
  const Outcome outcome = scratch.run({"run", "s.yaml", "--out", "out"});
  CHECK(outcome.status == 1);
  check_row(outcome.out, "dead", "unfinished at 420 us: iteration 4 of 10: gpu:");
  check_row(outcome.out, "packet dead", "unfinished at 420 us: iteration 4 of 10: gpu:");
  CHECK(contains(rows_of(outcome.out, "healthy").at(0), "1.00"));

  const json variants = json::parse(scratch.read("out/report.json"))["variants"];
  for (const char* engine : {"", "packet "}) {
    CAPTURE(engine);
    const json& healthy = variants[engine + std::string("healthy")]["jobs"]["ar"];
    CHECK(healthy["unfinished"].is_null());
    CHECK(healthy["iterations"] == 10);
    check_dead(variants[engine + std::string("dead")]["jobs"]["ar"], 3, 420e-6, 1e-6);
    // What did cross the links counts over the time it took.
    for (const auto& [name, tier] : variants[engine + std::string("dead")]["tiers"].items())
      CHECK(number(tier["max_load"]) <= 1 + 1e-9);
  }
  CHECK(contains(scratch.read("out/report.html"),
                 "unfinished at 420 us: iteration 4 of 10: gpu:"));  // for readers without script
}

TEST_CASE("nothing is compared with a baseline that died") {
  const Scratch scratch;
  scratch.write("s.yaml",
                fmt::format("{}compare:\n  dead: {{{}}}\n  healthy: {{}}\n", ring_job, rack_dies));
  const Outcome outcome = scratch.run({"run", "s.yaml"});
  CHECK(outcome.status == 1);
  const std::string row = rows_of(outcome.out, "healthy").at(0);
  CHECK_MESSAGE(contains(row, "  -  "), row);
}

TEST_CASE("a training job that dies in step 2 of 3, on both engines") {
  for (const std::string engine : {"fluid", "packet"}) {
    CAPTURE(engine);
    const Scratch scratch;
    scratch.write("healthy.yaml", training("  base: {engine: " + engine + "}\n"));
    const Outcome first = scratch.run({"run", "healthy.yaml", "--json"});
    REQUIRE_MESSAGE(first.status == 0, first.err);
    const json healthy = json::parse(first.out)["variants"]["base"]["jobs"]["t"];
    REQUIRE(healthy["step_times_s"].size() == 3);
    const double step_s = healthy["step_times_s"][0];
    // Compute comes first, so that the network is used last.
    const auto at_us = static_cast<long>(1.5 * step_s * 1e6);
    scratch.write("s.yaml", training(fmt::format(
                                "  healthy: {{engine: {0}}}\n  dead: {{engine: {0}, faults: "
                                "[{{kind: switch_down, switch: \"rtsw:1\", at: {1} us}}]}}\n",
                                engine, at_us)));
    const Outcome outcome = scratch.run({"run", "s.yaml", "--out", "out"});
    CHECK(outcome.status == 1);
    check_row(outcome.out, "dead", "unfinished at ");
    check_row(outcome.out, "dead", ": step 2 of 3: gpu:");
    CHECK(contains(rows_of(outcome.out, "healthy").at(0), "1.00"));
    const json report = json::parse(scratch.read("out/report.json"));
    const json& job = report["variants"]["dead"]["jobs"]["t"];
    check_dead(job, 1, 1.75 * step_s, 0.25 * step_s + 1e-6);
    for (const char* key : {"step_time_s", "compute_s", "idle_s", "bubble", "tokens_per_s_per_gpu",
                            "tflops_per_gpu", "mfu"}) {
      CAPTURE(key);
      CHECK(job[key].is_null());
    }
    CHECK(job["step_times_s"].size() == 1);
  }
}

TEST_CASE("in a sweep too") {
  const Scratch scratch;
  scratch.write("s.yaml", fmt::format("{}{}\nsweep: {{seed: [1, 2]}}\n", ring_job, rack_dies));
  const Outcome outcome = scratch.run({"sweep", "s.yaml"});
  CHECK(outcome.status == 1);
  CHECK(contains(outcome.out, "failed: seed=1, variant base, job "));
  CHECK(contains(outcome.out, ": unfinished at 420 us: iteration 4 of 10: gpu:"));
}
