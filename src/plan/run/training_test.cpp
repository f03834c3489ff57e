#include "plan/run/training.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/rng.hpp"
#include "base/test_approx.hpp"
#include "base/test_effort.hpp"
#include "plan/run/run.hpp"
#include "plan/run/test_kit.hpp"
#include "workload/parallel/step_cost.hpp"

namespace weft::plan {
namespace {

using testing::run;

std::string run_error(const std::string& yaml) {
  const auto file = model::parse_scenario(yaml, "test.yaml", {});
  if (!file) return file.error().text();
  const auto outcome = run_scenario(*file, {});
  return outcome ? "" : outcome.error().text();
}

const model::TrainingOutcome& training(const model::Outcome& outcome, std::size_t variant = 0,
                                       std::size_t job = 0) {
  const auto& training = outcome.variants[variant].jobs[job].training;
  REQUIRE(training.has_value());
  return *training;
}

// A small model, so that plans of all kinds fit: 8 layers.
constexpr std::string_view tiny =
    "model: {layers: 8, hidden: 2048, ffn: 8192, heads: 16, head_size: 128, vocabulary: 32000}";

double exposed_sum(const model::TrainingOutcome& t) {
  return std::accumulate(t.exposed_s.begin(), t.exposed_s.end(), 0.0);
}

struct RandomPlan {
  std::uint32_t tp, pp, vp, dp, microbatches, micro_batch;
  std::string yaml;
};

RandomPlan draw_plan(Rng& rng) {
  const auto power = [&](std::uint32_t most) { return 1u << rng.below(most + 1); };
  RandomPlan plan{};
  plan.tp = power(3);
  plan.pp = power(2);
  plan.vp = plan.pp > 1 ? power(1) : 1;
  plan.dp = power(2);
  plan.microbatches = 1 + static_cast<std::uint32_t>(rng.below(std::uint64_t{4} * plan.pp));
  plan.micro_batch = power(1);
  const char* places[] = {"topology", "rack_order", "random", "fragmented", "scattered"};
  const char* schemes[] = {"ecmp", "e_ecmp", "spray"};
  const char* faults[] = {"[]", "[{kind: gpu_slow, gpu: 3, factor: 1.7}]",
                          "[{kind: switch_down, switch: ctsw:1}]",
                          "[{kind: link_degraded, tier: rtsw->ctsw, count: 3, factor: 0.3}]"};
  plan.yaml = fmt::format(
      "fabric: {{generator: ai_zone, racks: 12, spines: 4}}\n"
      "routing: {{scheme: {}, qps: {}}}\n"
      "jobs: [{{name: j, {}, parallel: {{tp: {}, pp: {}, vp: {}, dp: {}}}, batch: {}, "
      "micro_batch: {}, sequence: 2048, zero: {}, recompute: {}, place: {}}}]\n"
      "faults: {}\nseed: {}\n",
      schemes[rng.below(3)], power(2), tiny, plan.tp, plan.pp, plan.vp, plan.dp,
      plan.dp * plan.microbatches * plan.micro_batch, plan.micro_batch, rng.below(4),
      rng.below(2) == 0 ? "selective" : "full", places[rng.below(5)], faults[rng.below(4)],
      rng.below(1000));
  return plan;
}

// The busiest stage, computing alone on healthy GPUs.
double compute_floor(const RandomPlan& plan) {
  const auto root = parse_yaml(plan.yaml, "plan.yaml");
  const Config& job = root->find("jobs")->items[0];
  Errors errors;
  Reader reader(job, "job", errors);
  const auto model = workload::read_model(*reader.child("model"));
  const auto gpu = workload::gpu_by_name({"h100", {}});
  const auto read = workload::read_plan(reader, *model, *gpu);
  REQUIRE(read.has_value());
  const auto cost = workload::step_cost(*model, *read, *gpu);
  REQUIRE(cost.has_value());
  double worst = 0;
  for (std::uint32_t s = 0; s < cost->pp; ++s) {
    double stage = cost->optimizer_s[s];
    for (std::uint32_t v = 0; v < cost->virtual_stages; ++v)
      stage += plan.microbatches *
               (cost->chunk(s, v).forward.compute_s + cost->chunk(s, v).backward.compute_s);
    worst = std::max(worst, stage);
  }
  return worst;
}

}  // namespace

TEST_CASE("no step is faster than its busiest resource: 1,000 random plans") {
  for (std::uint64_t seed = 0; seed < test_effort(1000); ++seed) {
    Rng rng = Rng(seed).stream("plans");
    const RandomPlan plan = draw_plan(rng);
    CAPTURE(plan.yaml);
    const model::Outcome outcome = run(plan.yaml);
    REQUIRE(outcome.variants[0].completion.unfinished == 0);
    const model::TrainingOutcome& t = training(outcome);
    CHECK(t.step_time_s >= compute_floor(plan) * (1 - 1e-9));
    CHECK(t.step_time_s >= t.roofline_s * (1 - 1e-9));
    for (const model::TierOutcome& tier : outcome.variants[0].tiers)
      CHECK(tier.max_load <= 1 + 1e-9);
    CHECK(t.compute_s + t.idle_s + exposed_sum(t) == approx(t.step_time_s).epsilon(1e-6));
    CHECK(t.mfu < 1);
  }
}

TEST_CASE("the same scenario gives the same digest; contention can only cost time") {
  Rng rng(7);
  for (int i = 0; i < 20; ++i) {
    const RandomPlan plan = draw_plan(rng);
    CAPTURE(plan.yaml);
    const model::Outcome first = run(plan.yaml), second = run(plan.yaml);
    CHECK(first.variants[0].digest == second.variants[0].digest);
    const model::Outcome alone = run(plan.yaml + "engine: {name: fluid, contention: false}\n");
    CHECK(training(alone).step_time_s <= training(first).step_time_s * (1 + 1e-9));
    for (std::size_t d = 0; d < model::dimension_count; ++d) {
      const auto total = [&](const model::Outcome& outcome) {
        const auto& bytes = training(outcome).bytes[d];
        return std::accumulate(bytes.begin(), bytes.end(), 0.0);
      };
      CHECK(total(alone) == approx(total(first)).epsilon(1e-9));
    }
  }
}

TEST_CASE("folding tensor parallelism into hosts: bytes are counted, and time is exposed") {
  const std::string yaml = fmt::format(
      "fabric: {{generator: ai_zone, racks: 2, spines: 4}}\n"
      "jobs: [{{name: j, {}, parallel: {{tp: 8, pp: 1, dp: 2}}, batch: 8, sequence: 2048, "
      "place: rack_order}}]\n",
      tiny);
  const model::Outcome outcome = run(yaml);
  const model::TrainingOutcome& t = training(outcome);
  using model::Dimension;
  using model::Distance;
  const auto& tp = t.bytes[static_cast<std::size_t>(Dimension::tp)];
  CHECK(t.exposed_s[static_cast<std::size_t>(Dimension::tp)] > 0);
  CHECK(tp[static_cast<std::size_t>(Distance::host)] > 0);
  CHECK(tp[static_cast<std::size_t>(Distance::rack)] == 0);
  // Both replicas are in one rack: their gradients stay there.
  const auto& dp = t.bytes[static_cast<std::size_t>(Dimension::dp)];
  CHECK(dp[static_cast<std::size_t>(Distance::rack)] > 0);
  CHECK(dp[static_cast<std::size_t>(Distance::zone)] == 0);
}

TEST_CASE("one slow GPU slows the step by its factor, and is the one that is waited for") {
  const std::string yaml = fmt::format(
      "fabric: {{generator: ai_zone, racks: 4, spines: 18}}\n"
      "jobs: [{{name: j, {}, parallel: {{tp: 8, pp: 1, dp: 8}}, batch: 64, sequence: 2048, "
      "place: rack_order}}]\n"
      "compare:\n  healthy: {{}}\n  slow: {{faults: [{{kind: gpu_slow, gpu: 21, factor: 1.3}}]}}\n",
      tiny);
  const model::Outcome outcome = run(yaml);
  const model::TrainingOutcome &healthy = training(outcome, 0), &slow = training(outcome, 1);
  CHECK(slow.step_time_s > healthy.step_time_s);
  CHECK(slow.step_time_s < 1.3 * healthy.step_time_s);
  // The end of the compute is hidden behind the first gradients' exchange.
  const double critical_s = healthy.critical.compute_s;
  CHECK(critical_s > 0.8 * healthy.compute_s);
  CHECK(slow.step_time_s - healthy.step_time_s == approx(0.3 * critical_s).epsilon(1e-6));
  REQUIRE_FALSE(slow.waits.empty());
  CHECK(slow.waits[0].rank.starts_with("rank 16 "));  // of its tensor-parallel group
}

TEST_CASE("two jobs on one fabric get in each other's way") {
  const auto job = [](const char* name, const char* ranks) {
    return fmt::format(
        "{{name: {}, {}, parallel: {{tp: 1, pp: 1, dp: 4}}, batch: 4, "
        "sequence: 512, overlap: {{dp_reduce: false}}, place: list, ranks: {}}}",
        name, tiny, ranks);
  };
  const std::string fabric =
      "fabric: {generator: ai_zone, racks: 4, hosts_per_rack: 2, gpus_per_host: 1, spines: 1}\n";
  const model::Outcome alone =
      run(fabric + "jobs: [" + job("a", "[0, 2, 4, 6]") + "]\nrouting: {scheme: spray}\n");
  const model::Outcome both = run(fabric + "jobs: [" + job("a", "[0, 2, 4, 6]") + ", " +
                                  job("b", "[1, 3, 5, 7]") + "]\nrouting: {scheme: spray}\n");
  CHECK(training(both, 0, 0).step_time_s > training(alone).step_time_s * 1.2);
  CHECK(both.variants[0].jobs[1].name == "b");
}

// The short one's last step begins while the long one ends, and is in no mean.
TEST_CASE("a job of short steps beside one of long steps: no link carries more than it can") {
  const auto job = [](const char* name, int batch, const char* ranks) {
    return fmt::format(
        "{{name: {}, {}, parallel: {{dp: 4}}, zero: 3, batch: {}, place: list, ranks: {}}}", name,
        tiny, batch, ranks);
  };
  for (const int batch : {12, 16, 24}) {
    CAPTURE(batch);
    const model::Outcome both = run(
        "fabric: {generator: ai_zone, racks: 4, hosts_per_rack: 2, gpus_per_host: 1, spines: 2}\n"
        "jobs: [" +
        job("short", 4, "[0, 2, 4, 6]") + ", " + job("long", batch, "[1, 3, 5, 7]") + "]\n");
    for (const model::TierOutcome& tier : both.variants[0].tiers) CHECK(tier.max_load <= 1 + 1e-9);
    for (const std::size_t j : {0u, 1u})
      CHECK(training(both, 0, j).step_time_s >= training(both, 0, j).roofline_s * (1 - 1e-9));
  }
}

TEST_CASE("jobs that make no sense are refused with their arithmetic") {
  const std::string fabric = "fabric: {generator: ai_zone, racks: 2, spines: 4}\n";
  const auto says = [&](const std::string& job, const std::string& what) {
    const std::string error = run_error(fabric + "jobs: [{name: j, " + job + "}]\n");
    CAPTURE(job);
    CHECK_MESSAGE(error.find(what) != std::string::npos, error);
  };
  says("model: llama3-70b, collective: all_reduce, gpus: 8, bytes: 1 MB", "has both");
  says("gpus: 8", "has no workload");
  says("model: llama3-70c, parallel: {tp: 8}", "llama3-70b");
  const std::string model = std::string(tiny) + ", batch: 16, ";
  says(model + "parallel: {tp: 8, pp: 2, dp: 4}", "32 of 32 are free");
  says(model + "parallel: {tp: 8, dp: 1}, gpus: 16", "16");
  says(model + "parallel: {tp: 8, dp: 1}, checkpoint: 1 GB", "storage");
  says("workload: /nowhere/trace.txt", "No such file");
}

// One GPU in each of two hosts at one switch.
std::string two_hosts(const std::string& model, const std::string& gpu) {
  return "fabric:\n  rate: 400 Gbps\n  nodes:\n    - {role: host, count: 2}\n"
         "    - {role: gpu, count: 2, host: \"host:0..1\"" +
         model +
         "}\n    - {role: nic, count: 2, host: \"host:0..1\"}\n    - {role: tor}\n"
         "  links: [{pairs: \"gpu:0..1--nic:0..1\"}, \"nic:0..1--tor:0\"]\n"
         "jobs:\n  - {name: j, " +
         std::string(tiny) + ", parallel: {dp: 2}, batch: 2, sequence: 512" + gpu + "}\n";
}

TEST_CASE("a GPU that nobody names is an error, never a default") {
  const std::string unknown = run_error(two_hosts("", ""));
  CHECK(unknown.starts_with("test.yaml:10:5: the fabric does not specify the GPU of its hosts"));
  CHECK(unknown.find("add gpu: with one of a100, h100, ") != std::string::npos);
  CHECK(run_error(two_hosts(", model: mi250", "")).find("\"mi250\", are unknown") !=
        std::string::npos);
  CHECK(run_error(two_hosts(", model: mi250", ", gpu: h1000")).find("h1000") != std::string::npos);
  const double given = training(run(two_hosts("", ", gpu: a100"))).tflops_per_gpu;
  CHECK(training(run(two_hosts(", model: a100", ""))).tflops_per_gpu == given);
  CHECK(training(run(two_hosts(", model: h100", ", gpu: a100"))).tflops_per_gpu == given);
  CHECK(training(run(two_hosts(", model: h100", ""))).tflops_per_gpu > 1.1 * given);
}

}  // namespace weft::plan
