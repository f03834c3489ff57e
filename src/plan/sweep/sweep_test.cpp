#include "plan/sweep/sweep.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "plan/run/run.hpp"

namespace weft::plan {
namespace {

model::ScenarioFile scenario(std::string_view yaml) {
  auto file = model::parse_scenario(yaml, "s.yaml", {});
  REQUIRE_MESSAGE(file.has_value(), (file ? "" : file.error().text()));
  return *std::move(file);
}

std::string refusal(std::string_view yaml) {
  const auto points = sweep_points(scenario(yaml));
  return points ? "accepted" : points.error().text();
}

// One job whose time is routing.qps, so that rows tell which point they come from.
Result<model::Outcome> fake_run(const model::ScenarioFile& file) {
  const Config* qps = file.variants[0].root.find("routing")->find("qps");
  if (qps->text == "13") return fail(Errc::value, qps->where, "unlucky");
  model::Outcome out;
  for (const model::Scenario& variant : file.variants) {
    model::VariantOutcome v{.name = variant.name};
    v.jobs.push_back({.name = "job"});
    v.jobs[0].time_mean_s = std::stod(qps->text);
    v.tiers.push_back({.name = "a->b", .mmr = 2.5});
    out.variants.push_back(v);
  }
  return out;
}

}  // namespace

TEST_CASE("points are the product of the lists, the last key fastest, in every variant") {
  const auto points = sweep_points(
      scenario("routing: {qps: 1}\ncompare: {a: {}, b: {routing: {qps: 9}}}\n"
               "sweep: {fabric.spines: [16, 18], routing.qps: [1, 4, 16], seed: [7]}\n"));
  REQUIRE(points.has_value());
  REQUIRE(points->size() == 6);
  CHECK((*points)[1].values[0].second == "16");
  CHECK((*points)[1].values[1].second == "4");
  CHECK((*points)[3].values[0].second == "18");
  for (const model::Scenario& variant : (*points)[1].scenario.variants) {
    CHECK(variant.root.find("routing")->find("qps")->text == "4");
    CHECK(variant.seed == 7);
  }
}

TEST_CASE("what cannot be swept is refused with its place") {
  CHECK(refusal("routing: {}\n").find("no \"sweep:\" keys") != std::string::npos);
  CHECK(refusal("sweep: {routing.qps: 4}\n").find("s.yaml:1:22") != std::string::npos);
  CHECK(refusal("sweep: {routing.qps: []}\n").find("at least one value") != std::string::npos);
  CHECK(refusal("seed: 1\nsweep: {seed: [x]}\n").find("not a number") != std::string::npos);
  std::string many = "[1";
  for (int i = 0; i < 400; ++i) many += ", " + std::to_string(i);
  many += "]";
  CHECK(
      refusal("sweep: {a.x: " + many + ", a.y: " + many + "}\n").find("more than 100000 points") !=
      std::string::npos);
}

TEST_CASE("rows stand in order of points on any number of threads; failures do not stop the rest") {
  const auto points =
      sweep_points(scenario("routing: {qps: 1}\nsweep: {routing.qps: [5, 13, 7, 1, 2, 3, 4]}\n"));
  REQUIRE(points.has_value());
  Progress silent("", 0, Progress::Show::never);
  const SweepResult one = run_sweep(*points, fake_run, 1, silent);
  const SweepResult four = run_sweep(*points, fake_run, 4, silent);
  REQUIRE(one.rows.size() == 7);
  CHECK(one.failed_points == 1);
  CHECK(one.rows[1].error.find("unlucky") != std::string::npos);
  CHECK(one.rows[2].job.time_mean_s == 7);
  CHECK(to_csv(one) == to_csv(four));
  CHECK(to_json(one) == to_json(four));
  CHECK(to_table(one).find("failed: ") != std::string::npos);
  CHECK(to_csv(one).starts_with("routing.qps,variant,job,time_s,"));
}

// Here, because the tests of this room run under ThreadSanitizer.
TEST_CASE("variants run side by side give the same as one after the other") {
  const model::ScenarioFile file = scenario(
      "fabric: {generator: ai_zone, racks: 2, hosts_per_rack: 2, gpus_per_host: 2, spines: 2}\n"
      "jobs:\n"
      "  - {name: c, collective: all_reduce, gpus: 4, bytes: 1 MiB, repeat: 3}\n"
      "  - name: t\n"
      "    model: {layers: 2, hidden: 512, ffn: 2048, heads: 8, head_size: 64, vocabulary: 1000}\n"
      "    parallel: {tp: 2, dp: 2}\n    batch: 4\n    sequence: 512\n"
      "compare:\n  ecmp: {}\n  spray: {routing: {scheme: spray}}\n"
      "  dead: {faults: [{kind: switch_down, switch: \"ctsw:0\"}]}\n"
      "  other: {fabric: {spines: 1}}\n  qps: {routing: {scheme: e_ecmp, qps: 4}}\n");
  const auto one = run_scenario(file, {.threads = 1}), four = run_scenario(file, {.threads = 4});
  REQUIRE_MESSAGE(one.has_value(), (one ? "" : one.error().text()));
  REQUIRE(four.has_value());
  REQUIRE(four->variants.size() == 5);
  for (std::size_t v = 0; v < 5; ++v) {
    CHECK(four->variants[v].name == one->variants[v].name);
    CHECK(four->variants[v].digest == one->variants[v].digest);
    CHECK(four->variants[v].jobs[0].time_mean_s == one->variants[v].jobs[0].time_mean_s);
    CHECK(four->variants[v].jobs[1].training->step_times_s ==
          one->variants[v].jobs[1].training->step_times_s);
  }
}

// Times are 1, 2, 4, 8 s; worked out by hand: 2 s for 10 loses to 1 s for 10 at equal power.
TEST_CASE("the Pareto front and the best iterations per price") {
  const auto points =
      sweep_points(scenario("routing: {}\nsweep: {routing.qps: [1, 2, 4, 8, 9]}\n"));
  REQUIRE(points.has_value());
  const auto price = [](const model::Scenario& variant) -> Result<SweepCost> {
    const Config* qps = variant.root.find("routing")->find("qps");
    if (qps->text == "9") return fail(Errc::unknown, qps->where, "no switch");
    if (qps->text == "4") return SweepCost{2, 100};
    return SweepCost{qps->text == "8" ? 5.0 : 10.0, qps->text == "8" ? 50.0 : 100.0};
  };
  Progress silent("", 0, Progress::Show::never);
  SweepResult result = run_sweep(*points, fake_run, 2, silent, price);
  result.currency = "EUR";
  REQUIRE(result.rows.size() == 5);
  const bool front[] = {true, false, true, true, false};
  for (std::size_t i = 0; i < 5; ++i) {
    CAPTURE(i);
    CHECK(result.rows[i].on_front == front[i]);
    CHECK(result.rows[i].is_best == (i == 2));  // 4 s x 2 is the least of 10, 20, 8, 40
  }
  CHECK(result.rows[4].error.find("no switch") != std::string::npos);
  CHECK(result.failed_points == 1);
  const std::string csv = to_csv(result);
  CHECK(csv.find(",cost,watts,per_s_per_million,per_s_per_mw,pareto,error\n") != std::string::npos);
  CHECK(csv.find(",2,100,125000,2500,best,\n") != std::string::npos);
  CHECK(to_json(result).find("\"pareto\": \"front\"") != std::string::npos);
  CHECK(to_table(result).find("Pareto, EUR") != std::string::npos);
}

}  // namespace weft::plan
