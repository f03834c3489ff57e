#include "engine/fluid/serving_player.hpp"

#include <doctest/doctest.h>

#include "base/progress.hpp"
#include "base/rng.hpp"
#include "base/test_approx.hpp"
#include "engine/fluid/job_run.hpp"
#include "engine/fluid/test_kit.hpp"
#include "workload/serving/test_kit.hpp"

namespace weft::engine::fluid {
namespace {

using workload::InferenceRequest;
using workload::RequestTimes;
using workload::ServingRun;

constexpr std::int64_t us = 1'000'000;  // ps
constexpr std::uint32_t layers = 4;
constexpr double token_bytes = 131'072;
// Hosts of one GPU with one NIC of 400 Gbps, all on one switch.
constexpr const char* star =
    "{generator: ai_zone, racks: 1, hosts_per_rack: 4, gpus_per_host: 1, spines: 1}";

std::vector<InferenceRequest> many(std::uint32_t count, double per_second) {
  auto out = workload::poisson_requests({.per_second = per_second, .count = count}).requests;
  Rng rng(7);
  for (InferenceRequest& one : out) {
    one.input = 1 + static_cast<std::uint32_t>(rng.below(600));
    one.output = 1 + static_cast<std::uint32_t>(rng.below(120));
  }
  return out;
}

// Two replicas that prefill and one that decodes, on the first three hosts.
struct Bench {
  Fabric fabric = testing::make_fabric(star);
  workload::KernelProfile profile = workload::testing::plain_profile();
  workload::Cluster cluster;
  std::vector<StateChange> changes;
  Bench() {
    cluster.limits.step_gap = {};
    cluster.replicas = 2;
    cluster.decode_replicas = 1;
    cluster.kv_bytes_per_token = static_cast<std::uint64_t>(token_bytes);
  }
  JobRunResult run(const std::vector<InferenceRequest>& requests, std::span<const Job> jobs = {}) {
    const workload::StepTimes times(profile, layers, cluster.limits, {});
    const ServingJob job{.name = "service",
                         .requests = &requests,
                         .times = &times,
                         .cluster = cluster,
                         .replicas = {{fabric.gpus()[0]}, {fabric.gpus()[1]}, {fabric.gpus()[2]}}};
    auto router = Router::create(fabric, {}, 1);
    REQUIRE(router.has_value());
    Progress progress("", 1, Progress::Show::never);
    auto out = run_work({jobs, {}, {&job, 1}}, *router, changes, {}, progress);
    if (!out) FAIL(out.error().text());
    return *std::move(out);
  }
  LinkId link(std::size_t gpu, bool out) const {
    const NodeId nic = fabric.nic_of(fabric.gpus()[gpu]);
    for (const LinkId l : fabric.out(nic))
      if (fabric.kind(fabric.to(l)) == model::NodeKind::fabric_switch)
        return out ? l : model::reverse(l);
    FAIL("no uplink");
    return {};
  }
};

TEST_CASE("keys and values moved: every byte over every link, and the time that takes") {
  Bench bench;
  const auto requests = many(150, 400);
  const JobRunResult out = bench.run(requests);
  double bytes = 0;
  for (const InferenceRequest& one : requests) bytes += one.input * token_bytes;
  CHECK(out.serving[0].run.ended == requests.size());
  CHECK(static_cast<double>(out.serving[0].run.kv_bytes_moved) == bytes);
  const auto carried = [&](LinkId l) { return out.link_bytes[l.index()]; };
  CHECK(carried(bench.link(2, false)) == approx(bytes).epsilon(1e-9));
  CHECK(carried(bench.link(0, true)) + carried(bench.link(1, true)) == approx(bytes).epsilon(1e-9));
  for (const RequestTimes& one : out.serving[0].run.requests) {
    CHECK(one.queue() + one.prefill() + one.transfer() == one.ttft());
    CHECK(one.transfer().seconds() >= one.input * token_bytes / 50e9);
  }
}

// Two prompts at once share the way into the decode host, one after the other does not.
TEST_CASE("transfers share links max-min, with each other and with a job beside them") {
  Bench bench;
  const InferenceRequest prompt{.arrival = {}, .input = 1000, .output = 2};
  const double alone = 1000 * token_bytes / 50e9, latency = 20e-6;
  const auto transfer = [](const JobRunResult& out) {
    return out.serving[0].run.requests[0].transfer().seconds();
  };
  CHECK(transfer(bench.run({prompt})) > alone);
  CHECK(transfer(bench.run({prompt})) < alone + latency);
  CHECK(transfer(bench.run({prompt, prompt})) > 2 * alone);
  CHECK(transfer(bench.run({prompt, prompt})) < 2 * alone + latency);
  // A flow from the fourth host into the third, all the time.
  Job job{.name = "beside", .ranks = {bench.fabric.gpus()[3], bench.fabric.gpus()[2]}};
  workload::Stage stage{.name = "flow"};
  stage.flows.push_back({job.ranks[0], job.ranks[1], 50e9});
  job.traffic.stages.push_back(stage);
  const JobRunResult shared = bench.run({prompt}, {&job, 1});
  CHECK(transfer(shared) > 2 * alone);
  CHECK(transfer(shared) < 2 * alone + latency);
  // What the transfer took, the flow lacked: a second, and the prompt's bytes.
  CHECK(shared.jobs[0].iteration_s[0] == approx(1 + alone).epsilon(1e-4));
}

TEST_CASE("every request ends, however its steps and transfers fall together") {
  Bench bench;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    CAPTURE(seed);
    auto requests =
        workload::poisson_requests({.per_second = 1, .count = 3, .seed = seed}).requests;
    for (InferenceRequest& one : requests) one.input = 256, one.output = 4;
    CHECK(bench.run(requests).serving[0].run.ended == 3);
  }
}

TEST_CASE("a dead way: requests wait for it, and a way that stays dead is named") {
  Bench bench;
  const std::vector<InferenceRequest> one{{.arrival = {}, .input = 1000, .output = 2}};
  bench.changes =
      testing::faults_of(bench.fabric, "[{kind: host_down, host: host:2, at: 0 s, until: 5 s}]");
  const JobRunResult healed = bench.run(one);
  CHECK(healed.serving[0].run.ended == 1);
  CHECK(healed.serving[0].run.requests[0].first_token.ps > 5'000'000 * us);
  bench.changes = testing::faults_of(bench.fabric, "[{kind: host_down, host: host:2, at: 0 s}]");
  const JobRunResult dead = bench.run(one);
  CHECK(dead.serving[0].run.ended == 0);
  REQUIRE(dead.serving[0].standstill.has_value());
  CHECK(dead.serving[0].standstill->why ==
        "gpu:0 has no live path to gpu:2 (KV cache of request 0)");
}

}  // namespace
}  // namespace weft::engine::fluid
