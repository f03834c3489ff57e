#include "workload/serving/cluster.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>

#include "base/file.hpp"
#include "base/rng.hpp"
#include "base/test_approx.hpp"
#include "base/test_skip.hpp"
#include "workload/serving/test_kit.hpp"

namespace weft::workload {
namespace {

constexpr std::int64_t us = 1'000'000;  // ps
constexpr std::uint32_t layers = 4;
constexpr std::int64_t prefill_step = 25 + layers * 19, decode_step = 25 + layers * 15;

struct Bench {
  KernelProfile profile = testing::plain_profile();
  Cluster cluster;
  Bench() { cluster.limits.step_gap = {}; }
  ServingRun run(const std::vector<InferenceRequest>& requests) {
    const StepTimes times(profile, layers, cluster.limits, {});
    auto out = serve(requests, times, cluster);
    REQUIRE(out.has_value());
    return *std::move(out);
  }
};

std::vector<InferenceRequest> many(std::uint32_t count, double per_second) {
  auto out = poisson_requests({.per_second = per_second, .count = count}).requests;
  Rng rng(7);
  for (InferenceRequest& one : out) {
    one.input = 1 + static_cast<std::uint32_t>(rng.below(600));
    one.output = 1 + static_cast<std::uint32_t>(rng.below(120));
  }
  return out;
}

std::uint64_t tokens_to_compute(const std::vector<InferenceRequest>& requests) {
  std::uint64_t sum = 0;
  for (const InferenceRequest& one : requests) sum += one.input + one.output - 1;
  return sum;
}

void check_equal(const RequestTimes& a, const RequestTimes& b) {
  CHECK(a.scheduled == b.scheduled);
  CHECK(a.first_token == b.first_token);
  CHECK(a.last_token == b.last_token);
}

TEST_CASE("one request: chunks of the budget, then a step for each token") {
  for (const bool asynchronous : {false, true}) {
    Bench bench;
    bench.cluster.limits.asynchronous = asynchronous;
    bench.cluster.limits.token_budget = 64;
    const auto out = bench.run({{.arrival = {5 * us}, .input = 100, .output = 5}}).requests[0];
    CHECK(out.queue().ps == 0);
    CHECK(out.ttft().ps == 2 * prefill_step * us);
    CHECK(out.tpot_s() == approx(decode_step * 1e-6).epsilon(1e-12));
    CHECK(out.e2e().ps == (2 * prefill_step + 4 * decode_step) * us);
  }
}

// As in recorded runs: the step that runs at its arrival and the one scheduled behind it come
// first.
TEST_CASE("asynchronous scheduling: a new request waits for one step more") {
  Bench bench;
  const std::vector<InferenceRequest> two{{.arrival = {}, .input = 100, .output = 9},
                                          {.arrival = {us}, .input = 100, .output = 9}};
  CHECK(bench.run(two).requests[1].first_token.ps ==
        (prefill_step + decode_step + prefill_step) * us);
  bench.cluster.limits.asynchronous = false;
  CHECK(bench.run(two).requests[1].first_token.ps == 2 * prefill_step * us);
}

TEST_CASE("pipeline stages work on different requests at once") {
  Bench bench;
  bench.cluster.limits.stages = 2;
  bench.cluster.limits.token_budget = 128;
  const std::int64_t stage = prefill_step * us / 2;
  const auto out = bench.run(
      {{.arrival = {}, .input = 128, .output = 1}, {.arrival = {}, .input = 128, .output = 1}});
  CHECK(out.requests[0].first_token.ps == 2 * stage);
  CHECK(out.requests[1].first_token.ps == 3 * stage);
}

TEST_CASE("every token is computed once where the cache is large") {
  Bench bench;
  const auto requests = many(300, 900);
  const ServingRun out = bench.run(requests);
  CHECK(out.replicas[0].preemptions == 0);
  CHECK(out.replicas[0].computed_tokens == tokens_to_compute(requests));
  for (const RequestTimes& one : out.requests) {
    CHECK(one.queue() >= Duration{});
    CHECK(one.prefill() > Duration{});
    CHECK(one.transfer().ps == 0);
    CHECK(one.queue() + one.prefill() + one.transfer() == one.ttft());
    CHECK(one.last_token >= one.first_token);
  }
}

TEST_CASE("a small cache preempts; what is lost is computed again, and all blocks come back") {
  Bench bench;
  ServingLimits& limits = bench.cluster.limits;
  limits.kv_blocks = 60;
  limits.step_gap = {};
  const auto requests = many(300, 900);
  for (const bool asynchronous : {false, true})
    for (const std::uint32_t stages : {1u, 3u}) {
      limits.asynchronous = asynchronous;
      limits.stages = stages;
      const StepTimes times(bench.profile, layers, limits, {});
      Replica replica(times, limits, Replica::Role::whole);
      std::vector<std::uint32_t> tokens(requests.size(), 0);
      const auto advance = [&](Time until) {
        while (replica.next() < until) {
          replica.step();
          for (const auto& one : replica.delivered()) CHECK(++tokens[one.id] == one.tokens);
        }
      };
      for (std::uint32_t i = 0; i < requests.size(); ++i) {
        advance(requests[i].arrival);
        replica.submit(i, requests[i], requests[i].arrival);
      }
      advance(never);
      for (std::uint32_t i = 0; i < requests.size(); ++i) CHECK(tokens[i] == requests[i].output);
      CHECK(replica.counts().preemptions > 10);
      CHECK(replica.counts().computed_tokens + replica.counts().cached_tokens >
            tokens_to_compute(requests));
      CHECK(replica.free_blocks() == limits.kv_blocks);
      CHECK(replica.load_tokens() == 0);
    }
}

// Two requests fill 8 blocks with 64 tokens each. The first one's next token takes the second one's
// blocks; the second is then first in the queue, and too long for what is free, so that the third,
// which would fit, waits for the end of the first.
TEST_CASE("who lost its blocks is first in the queue, and nobody passes it") {
  Bench bench;
  bench.cluster.limits.kv_blocks = 8;
  bench.cluster.limits.asynchronous = false;
  const ServingRun out = bench.run({{.arrival = {}, .input = 60, .output = 40},
                                    {.arrival = {}, .input = 60, .output = 40},
                                    {.arrival = {us}, .input = 16, .output = 2}});
  CHECK(out.replicas[0].preemptions == 1);
  CHECK(out.requests[0].e2e().ps == (prefill_step + 39 * decode_step) * us);
  CHECK(out.requests[2].scheduled == out.requests[0].last_token);
  // To 99 tokens the first one took three of its four blocks, its last block first.
  CHECK(out.replicas[0].cached_tokens == 16);
}

TEST_CASE("a request that no cache can hold is refused") {
  Bench bench;
  bench.cluster.limits.kv_blocks = 4;
  const StepTimes times(bench.profile, layers, bench.cluster.limits, {});
  CHECK(serve({{.arrival = {}, .input = 60, .output = 4}}, times, bench.cluster).has_value());
  const auto out = serve({{.arrival = {}, .input = 60, .output = 5}}, times, bench.cluster);
  REQUIRE(!out.has_value());
  CHECK(out.error().text() ==
        "request 0 has 65 tokens, and the KV cache of a replica holds 64; give more kv_blocks, or "
        "shorten the request");
}

TEST_CASE("times stay within what 64 bits of picoseconds hold") {
  Bench bench;
  const StepTimes slow(bench.profile, layers, bench.cluster.limits, [](auto) { return 1e9; });
  const auto out = serve({{.arrival = {}, .input = 60, .output = 500}}, slow, bench.cluster);
  REQUIRE(!out.has_value());
  CHECK(out.error().what == "the requests take longer than 92 days");
}

TEST_CASE("a shared prefix is computed once, in whole blocks, and leaves a token to compute") {
  Bench bench;
  const auto with = [](double at, std::uint32_t input, std::uint32_t prefix) {
    return InferenceRequest{.arrival = {static_cast<std::int64_t>(at * 1e12)},
                            .input = input,
                            .output = 3,
                            .prefix = 9,
                            .prefix_tokens = prefix};
  };
  const auto out = bench.run({with(0, 100, 70), with(1, 200, 70), with(2, 64, 64)});
  CHECK(out.replicas[0].cached_tokens == 64 + 48);
  bench.cluster.limits.prefix_cache = false;
  CHECK(bench.run({with(0, 100, 70), with(1, 200, 70)}).replicas[0].cached_tokens == 0);
}

TEST_CASE("round robin over replicas is as many runs of their own; twice the same") {
  Bench bench;
  const auto requests = many(200, 2000);
  Bench alone;
  bench.cluster.replicas = 3;
  const ServingRun all = bench.run(requests), again = bench.run(requests);
  for (std::uint32_t r = 0; r < 3; ++r) {
    std::vector<InferenceRequest> dealt;
    for (std::size_t i = r; i < requests.size(); i += 3) dealt.push_back(requests[i]);
    const ServingRun own = alone.run(dealt);
    for (std::size_t i = 0; i < dealt.size(); ++i) {
      check_equal(own.requests[i], all.requests[r + 3 * i]);
      check_equal(again.requests[r + 3 * i], all.requests[r + 3 * i]);
    }
  }
}

TEST_CASE("routes: to the least loaded, and to where a prefix was") {
  Bench bench;
  bench.cluster.replicas = 2;
  const std::vector<InferenceRequest> requests{
      {.arrival = {}, .input = 500, .output = 50, .prefix = 1, .prefix_tokens = 400},
      {.arrival = {us}, .input = 100, .output = 50, .prefix = 2, .prefix_tokens = 64},
      {.arrival = {2 * us}, .input = 100, .output = 50, .prefix = 1, .prefix_tokens = 64}};
  const auto replica = [&](RoutePolicy route) {
    bench.cluster.route = route;
    return bench.run(requests).requests[2].replica;
  };
  CHECK(replica(RoutePolicy::round_robin) == 0);
  CHECK(replica(RoutePolicy::least_tokens) == 1);
  CHECK(replica(RoutePolicy::prefix) == 0);
}

TEST_CASE("prefill and decode apart equal one replica where the fabric is infinitely fast") {
  std::vector<InferenceRequest> requests = many(40, 1);
  for (std::size_t i = 0; i < requests.size(); ++i)  // never two at a time
    requests[i].arrival = {static_cast<std::int64_t>(i) * 1'000'000 * us};
  Bench whole, split;
  split.cluster.decode_replicas = 2;
  split.cluster.kv_bytes_per_token = 1000;
  const ServingRun a = whole.run(requests), b = split.run(requests);
  for (std::size_t i = 0; i < requests.size(); ++i) check_equal(a.requests[i], b.requests[i]);
}

TEST_CASE("keys and values that take time: exactly so much later, and the same bytes") {
  Bench bench;
  const ServedModel model{.layers = 32, .hidden = 4096, .kv_heads = 8, .head_dim = 128, .bytes = 2};
  CHECK(model.kv_bytes_per_token() == 131'072);
  bench.cluster.decode_replicas = 1;
  bench.cluster.kv_bytes_per_token = model.kv_bytes_per_token();
  const auto requests = many(150, 400);
  const StepTimes times(bench.profile, layers, bench.cluster.limits, {});
  const auto out = serve(requests, times, bench.cluster, Duration{3 * us});
  REQUIRE(out.has_value());
  std::uint64_t bytes = 0;
  for (const InferenceRequest& one : requests) bytes += one.input * 2ULL * 32 * 8 * 128 * 2;
  CHECK(out->kv_bytes_moved == bytes);
  CHECK(out->ended == requests.size());
  for (const RequestTimes& one : out->requests) {
    CHECK(one.transfer().ps == 3 * us);
    CHECK(one.queue() + one.prefill() + one.transfer() == one.ttft());
  }
}

struct Error3 {
  double ttft, tpot, e2e, tpot99;
};

double mean_of(const std::vector<double>& x) {
  double sum = 0;
  for (const double one : x) sum += one;
  return sum / static_cast<double>(x.size());
}

Error3 errors_of(const std::string& prefix, const ServingLimits& limits) {
  const auto unpack = [&](const std::string& name) {
    const std::string file = prefix + name;
    return ProfileText{file, gunzip(read_file(file).value(), file).value()};
  };
  const auto profile =
      read_profile(unpack("_profile_dense.csv.gz"), unpack("_profile_per_sequence.csv.gz"),
                   unpack("_profile_attention.csv.gz"));
  REQUIRE(profile.has_value());
  const ProfileText record = unpack("_requests.jsonl.gz");
  const auto trace = read_requests(record.text, record.file);
  REQUIRE(trace.has_value());
  Cluster cluster;
  cluster.limits = limits;
  const StepTimes times(*profile, 32, limits, {});
  const auto run = serve(trace->requests, times, cluster);
  REQUIRE(run.has_value());
  std::array<std::vector<double>, 3> ours, theirs;
  for (std::size_t i = 0; i < run->requests.size(); ++i) {
    const RequestTimes& one = run->requests[i];
    const MeasuredRequest& other = trace->measured[i];
    ours[0].push_back(one.ttft().seconds());
    theirs[0].push_back((other.first_token - one.arrival).seconds());
    ours[1].push_back(one.tpot_s());
    theirs[1].push_back((other.last_token - other.first_token).seconds() / (one.output - 1));
    ours[2].push_back(one.e2e().seconds());
    theirs[2].push_back((other.last_token - one.arrival).seconds());
  }
  const auto of_mean = [&](std::size_t k) { return mean_of(ours[k]) / mean_of(theirs[k]) - 1; };
  Error3 out{of_mean(0), of_mean(1), of_mean(2), 0};
  std::ranges::sort(ours[1]);
  std::ranges::sort(theirs[1]);
  const std::size_t p99 = ours[1].size() * 99 / 100;
  out.tpot99 = ours[1][p99] / theirs[1][p99] - 1;
  return out;
}

// LLMServingSim's records of vLLM 0.19 (MIT), which the tree does not hold; docs/commands/infer.md.
TEST_CASE("recorded runs of vLLM" * doctest::test_suite("needs recorded_runs")) {
  const std::string folder = "tests/data/serving";
  if (!std::filesystem::exists(folder)) {
    skip_test(folder + " with records of vLLM is not there");
    return;
  }
  ServingLimits small, large;
  small.kv_blocks = 2588;
  large.max_seqs = 128;
  for (const auto& [gpu, limits] : {std::pair{"RTX4090", small}, std::pair{"RTXPRO6000", large}}) {
    const Error3 error = errors_of(folder + "/vllm_" + gpu + "_Llama-3.1-8B", limits);
    INFO(gpu << " TTFT " << error.ttft << " TPOT " << error.tpot << " e2e " << error.e2e << " p99 "
             << error.tpot99);
    CHECK(std::abs(error.ttft) < 0.05);
    CHECK(std::abs(error.tpot) < 0.02);
    CHECK(std::abs(error.e2e) < 0.04);
    CHECK(std::abs(error.tpot99) < 0.03);
  }
}

}  // namespace
}  // namespace weft::workload
