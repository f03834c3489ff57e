#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>

#include "base/file.hpp"
#include "base/rng.hpp"
#include "base/test_folder.hpp"
#include "plan/infer/infer.hpp"
#include "plan/run/run.hpp"
#include "plan/sweep/journal.hpp"

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
Result<std::vector<SweepRow>> fake_run(const model::ScenarioFile& file) {
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
  return rows_of_run(out);
}

SweepResult run_sweep(const std::vector<SweepPoint>& points, std::uint32_t threads,
                      const PriceVariant& price = {}) {
  PointRows rows(points.size());
  run_points(points, fake_run, {.threads = threads, .price = price}, rows);
  return sweep_result(sweep_head(points, "", "").keys, rows, price ? "EUR" : "");
}

}  // namespace

TEST_CASE("rows of estimates say so") {
  model::Outcome outcome;
  outcome.variants.push_back({.name = "part", .jobs = {{.name = "a", .time_mean_s = 2}}});
  outcome.variants[0].estimate = model::Estimate{.share = 0.05, .spread = 0.001};
  outcome.variants.push_back({.name = "whole", .jobs = {{.name = "a", .time_mean_s = 2}}});
  PointRows rows{rows_of_run(outcome)};
  const SweepResult result = sweep_result({}, rows, "");
  CHECK(result.rows.at(0).estimate.value().share == 0.05);
  CHECK(!result.rows.at(1).estimate);
  CHECK(to_table(result).find("times of 1 row are estimates from a part") != std::string::npos);
  CHECK(to_json(result).find("\"share\": 0.05") != std::string::npos);
}

TEST_CASE("a sweep of a service says what weft infer says, of each point and variant") {
  const std::string yaml =
      "fabric: {generator: ai_zone, racks: 2, hosts_per_rack: 2, gpus_per_host: 1, spines: 1}\n"
      "inference:\n  model: llama3-8b\n  gpu: h100\n  gpu_hour: 2\n  slo: {ttft: 80 ms}\n"
      "  requests: {poisson: {rate: 10, count: 50, input: 1000, output: 20}}\n"
      "jobs: [{name: beside, collective: all_reduce, bytes: 1 GiB, gpus: 2}]\n"
      "sweep: {inference.replicas: [1, 2]}\n";
  const auto points = sweep_points(scenario(yaml));
  REQUIRE(points.has_value());
  PointRows rows(points->size());
  run_points(*points, run_services, {}, rows);
  const SweepResult result = sweep_result({"inference.replicas"}, rows, "");
  REQUIRE(result.rows.size() == 4);
  for (std::size_t i = 0; i < 2; ++i) {
    const auto report = infer((*points)[i].scenario.variants[0]);
    REQUIRE(report.has_value());
    const SweepRow &service = result.rows[2 * i], &job = result.rows[2 * i + 1];
    CHECK(service.job == "inference");
    CHECK(service.values == std::vector<std::string>{i == 0 ? "1" : "2"});
    CHECK(service.ttft_p99_s == report->latencies[0].ours.p99);
    CHECK(service.tpot_p99_s == report->latencies[4].ours.p99);
    CHECK(service.e2e_p99_s == report->latencies[5].ours.p99);
    CHECK(service.kept == report->kept());
    CHECK(service.token_cost == report->cost_per_million_output_tokens);
    CHECK(!service.time_s);
    CHECK(job.job == "beside");
    CHECK(job.time_s.has_value());
    CHECK(!job.ttft_p99_s);
  }
  CHECK(*result.rows[0].goodput_per_s < *result.rows[2].goodput_per_s);
  CHECK(to_table(result).find("TTFT p99 ms") != std::string::npos);
  const auto svg = to_svg(result, {.column = "time_s", .key = ""});
  REQUIRE(svg.has_value());
  CHECK(svg->find(">inference.replicas</text>") != std::string::npos);
  CHECK(svg->find(">beside</text>") != std::string::npos);
  CHECK(svg->find(">inference</text>") == std::string::npos);
  const auto refused = [&](const SweepPlot& plot) { return to_svg(result, plot).error().text(); };
  CHECK(refused({.column = "time", .key = ""})
            .starts_with("--show: no column is called \"time\"; choose one of: time_s, "));
  CHECK(refused({.column = "mfu", .key = ""}).starts_with("--show: no row has a value of mfu"));
  CHECK(refused({.column = "", .key = "seed"}) ==
        "--over: \"seed\" is not swept; the keys are inference.replicas");
  const auto broken = sweep_points(scenario("inference: {}\nsweep: {seed: [1]}\n"));
  REQUIRE(broken.has_value());
  PointRows failed(1);
  run_points(*broken, run_services, {}, failed);
  CHECK(!failed[0]->front().error.empty());
}

TEST_CASE("a service of which no request ends has no times, and no plot") {
  const auto points = sweep_points(scenario(
      "fabric: {generator: ai_zone, racks: 2, hosts_per_rack: 1, gpus_per_host: 1, spines: 1}\n"
      "inference:\n  model: llama3-8b\n  gpu: h100\n  replicas: {prefill: 1, decode: 1}\n"
      "  requests: {poisson: {rate: 1, count: 3, input: 256, output: 4}}\n"
      "faults: [{kind: switch_down, switch: \"ctsw:0\"}]\n"
      "sweep: {inference.requests.poisson.count: [2, 3]}\n"));
  REQUIRE(points.has_value());
  PointRows rows(points->size());
  run_points(*points, run_services, {}, rows);
  const SweepResult result = sweep_result({"inference.requests.poisson.count"}, rows, "");
  REQUIRE(result.rows.size() == 2);
  for (const SweepRow& row : result.rows) {
    CHECK(row.error.contains("never ended"));
    CHECK(!row.ttft_p99_s);
    CHECK(!row.output_tokens_per_s);
  }
  const auto plot = to_svg(result, {});
  REQUIRE(!plot.has_value());
  CHECK(plot.error().text().contains("no row has a value to draw"));
}

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
  const SweepResult one = run_sweep(*points, 1), four = run_sweep(*points, 4);
  REQUIRE(one.rows.size() == 7);
  CHECK(one.failed_points == 1);
  CHECK(one.rows[1].error.find("unlucky") != std::string::npos);
  CHECK(one.rows[2].time_s == 7);
  CHECK(to_csv(one) == to_csv(four));
  CHECK(to_json(one) == to_json(four));
  // Errors stand below the table, which they do not widen.
  const std::string table = to_table(one);
  const std::string rows = table.substr(0, table.find("\n\n"));
  CHECK(rows.find("failed") != std::string::npos);
  CHECK(rows.find("unlucky") == std::string::npos);
  CHECK(table.find("\n\nfailed: routing.qps=13") != std::string::npos);
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

TEST_CASE("rows that do different work are not ranked against each other") {
  CHECK(changes_work("jobs.0.bytes"));
  CHECK(changes_work("jobs.reduce.model.layers"));
  CHECK(changes_work("seed"));
  CHECK_FALSE(changes_work("jobs.0.parallel.tp"));
  CHECK_FALSE(changes_work("fabric.spines"));
  const auto price = [](const model::Scenario&) -> Result<SweepCost> { return SweepCost{1, 1}; };
  const auto points =
      sweep_points(scenario("jobs: [{bytes: 1}]\nrouting: {}\n"
                            "sweep: {jobs.0.bytes: [1, 2], routing.qps: [3, 4]}\n"));
  REQUIRE(points.has_value());
  const SweepResult result = run_sweep(*points, 1, price);
  REQUIRE(result.rows.size() == 4);
  CHECK(result.work_keys == std::vector<std::string>{"jobs.0.bytes"});
  const bool best[] = {true, false, true, false};
  for (std::size_t i = 0; i < 4; ++i) CHECK(result.rows[i].is_best == best[i]);
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
  const SweepResult result = run_sweep(*points, 2, price);
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
  CHECK(csv.find(",cost,watts,per_s_per_cost,per_s_per_watt,pareto,error\n") != std::string::npos);
  CHECK(csv.find(",2,100,0.125,0.0025,best,\n") != std::string::npos);
  CHECK(to_json(result).find("\"pareto\": \"front\"") != std::string::npos);
  CHECK(to_table(result).find("Pareto, EUR") != std::string::npos);
  CHECK(to_table(result).find("125000 ") != std::string::npos);  // 1/s per M, no 1.25e+05
}

namespace {

std::vector<SweepPoint> many_points(int count) {
  std::string list = "1";
  for (int i = 2; i <= count; ++i) list += fmt::format(", {}", i == 13 ? 13.5 : i + 0.1);
  return *sweep_points(scenario(
      "routing: {qps: 1}\ncompare: {a: {}, b: {}}\nsweep: {routing.qps: [" + list + "]}\n"));
}

std::string bytes(const SweepHead& head, const PointRows& rows) {
  const SweepResult result = sweep_result(head.keys, rows, head.currency);
  return to_csv(result) + to_json(result) + to_table(result);
}

std::string refusal(const Result<Journal>& journal) {
  return journal ? "accepted" : journal.error().text();
}

}  // namespace

TEST_CASE("a sweep that was stopped and goes on, and one in shards, end as one that ran through") {
  const std::vector<SweepPoint> points = many_points(40);
  const SweepHead head = sweep_head(points, "prices", "1");
  PointRows through(points.size());
  run_points(points, fake_run, {}, through);

  const TestFolder folder;
  const std::string at = folder.file("stopped");
  for (int part = 0; part < 4; ++part) {  // stopped after 7 points, again and again
    PointRows rows(points.size());
    auto journal = Journal::open(at, head, part > 0, rows);
    REQUIRE_MESSAGE(journal.has_value(), refusal(journal));
    CHECK(std::ranges::count_if(rows, [](const auto& r) { return r.has_value(); }) == part * 7);
    int ended = 0;
    run_points(points, fake_run,
               {.is_stopped = [&] { return ended == 7; },
                .point_ended =
                    [&](std::size_t i, const PointRows& r) {
                      journal->add(i, *r[i]);
                      ++ended;
                    }},
               rows);
  }
  {  // killed while it wrote a line, then to its end on four threads
    std::string text = *read_file(at + "/points.jsonl");
    REQUIRE(write_file(at + "/points.jsonl", text + text.substr(text.size() - 90, 80)).has_value());
  }
  PointRows rows(points.size());
  {
    auto journal = Journal::open(at, head, true, rows);
    REQUIRE_MESSAGE(journal.has_value(), refusal(journal));
    PointRows second(points.size());
    CHECK(refusal(Journal::open(at, head, true, second)).find("another weft sweep") !=
          std::string::npos);
    run_points(points, fake_run,
               {.threads = 4,
                .point_ended = [&](std::size_t i, const PointRows& r) { journal->add(i, *r[i]); }},
               rows);
    CHECK(journal->status().has_value());
  }
  CHECK(bytes(head, rows) == bytes(head, through));
  const auto again = read_journals({at});
  REQUIRE_MESSAGE(again.has_value(), (again ? "" : again.error().text()));
  CHECK(bytes(again->head, again->rows) == bytes(head, through));

  for (std::uint32_t k = 1; k <= 3; ++k) {
    SweepHead part = head;
    part.shard = k, part.shards = 3;
    PointRows of_shard(points.size());
    auto journal = Journal::open(folder.file("shards"), part, false, of_shard);
    REQUIRE(journal.has_value());
    run_points(points, fake_run,
               {.shard = {k, 3},
                .point_ended = [&](std::size_t i, const PointRows& r) { journal->add(i, *r[i]); }},
               of_shard);
    const auto merged = read_journals({folder.file("shards")});
    REQUIRE(merged.has_value());
    const auto missing = sweep_result({}, merged->rows).missing_points;
    CHECK(missing.size() == (k == 1 ? 26 : k == 2 ? 13 : 0));
    if (k == 3) CHECK(bytes(merged->head, merged->rows) == bytes(head, through));
    if (k == 2)
      CHECK(describe_points(missing, 40)
                .starts_with("points 2, 5, 8, 11, 14, 17, 20, 23, ... (13 of 40)"));
  }
}

TEST_CASE("a CSV file that is written as points end grows in their order") {
  const std::vector<SweepPoint> points = many_points(5);
  const SweepHead head = sweep_head(points, "", "1");
  const TestFolder folder;
  auto stream = CsvStream::open(folder.file("rows.csv"), head);
  REQUIRE(stream.has_value());
  PointRows through(points.size()), rows(points.size());
  run_points(points, fake_run, {}, through);
  std::size_t lines[] = {1, 1, 5, 5, 11};  // the head, and two rows a point
  const std::size_t order[] = {1, 3, 0, 4, 2};
  // 0 lets 0 and 1 out, 2 the rest.
  for (std::size_t step = 0; step < 5; ++step) {
    rows[order[step]] = through[order[step]];
    stream->write_ready(rows);
    const std::string text = *read_file(folder.file("rows.csv"));
    CHECK(static_cast<std::size_t>(std::ranges::count(text, '\n')) == lines[step]);
  }
  CHECK(*read_file(folder.file("rows.csv")) == to_csv(sweep_result(head.keys, through)));
}

TEST_CASE("a journal of another sweep, or a broken one, is refused with its place") {
  const std::vector<SweepPoint> points = many_points(3);
  const SweepHead head = sweep_head(points, "", "1");
  const TestFolder folder;
  PointRows rows(points.size());
  CHECK(Journal::open(folder.path(), head, false, rows).has_value());
  CHECK(refusal(Journal::open(folder.path(), head, false, rows)).find("--resume") !=
        std::string::npos);
  const auto other = [&](const SweepHead& changed) {
    return refusal(Journal::open(folder.path(), changed, true, rows));
  };
  CHECK(other(head) == "accepted");
  CHECK(other(sweep_head(points, "x", "1")).find("price table was another one") !=
        std::string::npos);
  CHECK(other(sweep_head(many_points(4), "", "1")).find("it has 3 points") != std::string::npos);
  CHECK(other(sweep_head(points, "", "2")).find("weft 1 made it, this is 2") != std::string::npos);
  const std::string path = folder.file("points.jsonl"), good = *read_file(path);
  const auto with = [&](std::string_view line) {
    REQUIRE(write_file(path, good + std::string(line) + "\n").has_value());
    return other(head);
  };
  CHECK(with("{\"point\":0,\"rows\":[]}") == "accepted");
  CHECK(with("{\"point\":3,\"rows\":[]}").find("points.jsonl:2") != std::string::npos);
  CHECK(with("{\"point\":1,\"rows\":[{\"values\":[]}]}").find("0 values for 1 keys") !=
        std::string::npos);
  CHECK(with("{\"point\":1").find("points.jsonl:2") != std::string::npos);
  CHECK(with("{\"point\":1,\"rows\":[]}\n{\"point\":1,\"rows\":[{\"values\":[\"1\"]}]}")
            .find("twice") != std::string::npos);
  CHECK_FALSE(read_journals({folder.file("none")}).has_value());
  for (const char* bad : {"", "3", "0/2", "3/2", "1/", "/2", "1/2/3", "-1/2"})
    CHECK_FALSE(read_shard(bad).has_value());
  CHECK(read_shard("2/3")->has(4));
}

}  // namespace weft::plan
