#include "plan/infer/sizing.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <set>
#include <string>

#include "base/test_approx.hpp"
#include "base/test_folder.hpp"

namespace weft::plan {
namespace {

model::Scenario sized_scenario(const std::string& yaml) {
  auto file = model::parse_scenario(yaml, "s.yaml", {});
  REQUIRE(file.has_value());
  return std::move(file->variants.front());
}

// Every step takes 10 ms, whatever is in it.
std::string constant_profile(const TestFolder& folder) {
  folder.write("p_dense.csv", "layer,tokens,time_us\nembedding,1,8999\nembedding,4096,8999\n");
  folder.write("p_per_sequence.csv", "layer,sequences,time_us\nlm_head,1,1000\nlm_head,64,1000\n");
  folder.write("p_attention.csv",
               "prefill_chunk,kv_prefill,n_decode,kv_decode,time_us\n8,0,0,0,1\n16,0,0,0,1\n"
               "0,0,1,16,1\n");
  return folder.file("p");
}

// P(W <= t) of M/D/1, service 1 (Erlang 1909): (1 - r) sum over k <= t of
// (-r (t - k))^k / k! exp(r (t - k)).
double waits_at_most(double load, int t) {
  double sum = 0, factorial = 1;
  for (int k = 0; k <= t; ++k) {
    if (k > 0) factorial *= k;
    sum += std::pow(-load * (t - k), k) / factorial * std::exp(load * (t - k));
  }
  return (1 - load) * sum;
}

TEST_CASE("capacity of a server of constant steps: Erlang's formula for M/D/1") {
  const TestFolder folder;
  // One request at a time, one step each: waiting is all there is.
  const std::string service =
      "inference:\n  profile: " + constant_profile(folder) +
      "\n  model: {layers: 1, hidden: 8, kv_heads: 1, head_dim: 4}\n"
      "  engine: {max_seqs: 1, asynchronous: false, prefix_cache: false, step_gap: 0}\n"
      "  requests: {poisson: {rate: 20, count: 60000, input: 8, output: 1}}\n";
  const auto alone = infer(sized_scenario(service + "  replicas: 4\n"));
  if (!alone) FAIL(alone.error().text());
  CHECK(alone->latencies[2].ours.p99 == approx(0.010).epsilon(1e-9));
  const auto curve = goodput_curve(
      sized_scenario(service + "  slo: {ttft: 50 ms, percentile: 95}\n"));  // waits of 4 steps
  if (!curve) FAIL(curve.error().text());
  double low = 0, high = 0.999;
  while (high - low > 1e-6)
    (waits_at_most((low + high) / 2, 4) >= 0.95 ? low : high) = (low + high) / 2;
  CHECK(low == approx(0.6938).epsilon(0.001));
  CHECK(curve->capacity_per_s * 0.010 == approx(low).epsilon(0.02));
  REQUIRE(curve->over_per_s.has_value());
  CHECK(*curve->over_per_s / curve->capacity_per_s <= 1.0101);
  for (const CurvePoint& point : curve->points)
    CHECK(point.goodput_per_s <= point.rate_per_s * 1.001);
}

// Trials that hold from a made-up line on, and fit up to `room` replicas.
struct MadeUp {
  std::uint32_t prefill = 1, decode = 1, room = 5000;
  bool trade = false;  // a third more of one makes up for the other
  mutable std::set<std::pair<std::uint32_t, std::uint32_t>> tried{};

  bool holds(std::uint32_t p, std::uint32_t d) const {
    return trade ? p * d >= prefill * decode && p + d >= 4 : p >= prefill && d >= decode;
  }
  Result<SizingTrial> operator()(std::uint32_t p, std::uint32_t d) const {
    CHECK(tried.insert({p, d}).second);
    SizingTrial out{.prefill = p, .decode = d};
    out.fits = p + d <= room;
    out.holds = out.fits && holds(p, d);
    return out;
  }
};

TEST_CASE("the fewest replicas of both kinds: equal to all trials, whatever fits") {
  for (const bool trade : {false, true})
    for (std::uint32_t prefill = 1; prefill <= 9; ++prefill)
      for (std::uint32_t decode = 1; decode <= 9; ++decode)
        for (const std::uint32_t room : {2U, 7U, 13U, 5000U}) {
          const MadeUp world{.prefill = prefill, .decode = decode, .room = room, .trade = trade};
          std::optional<std::pair<std::uint32_t, std::uint32_t>> best;
          for (std::uint32_t total = 2; total <= std::min(room, 90U) && !best; ++total)
            for (std::uint32_t p = 1; p < total && !best; ++p)
              if (world.holds(p, total - p)) best = {p, total - p};
          const auto sizing = fewest_replicas(true, std::cref(world));
          REQUIRE(sizing.has_value());
          REQUIRE(sizing->answer.has_value() == best.has_value());
          if (!best) continue;
          const SizingTrial& found = sizing->trials[*sizing->answer];
          CHECK(std::pair(found.prefill, found.decode) == *best);
        }
}

TEST_CASE("the fewest replicas of one kind: every answer and every room") {
  for (std::uint32_t least = 1; least <= 40; ++least)
    for (std::uint32_t room = 1; room <= 40; ++room) {
      const MadeUp world{.prefill = least, .decode = 0, .room = room};
      const auto sizing = fewest_replicas(false, std::cref(world));
      REQUIRE(sizing.has_value());
      REQUIRE(sizing->answer.has_value() == (least <= room));
      if (sizing->answer) CHECK(sizing->trials[*sizing->answer].prefill == least);
      CHECK(sizing->trials.size() <= 13);
    }
  const MadeUp never{.prefill = 9000, .decode = 0, .room = 9999};
  const auto sizing = fewest_replicas(false, std::cref(never));
  REQUIRE(sizing.has_value());
  CHECK(!sizing->answer);
  CHECK(to_table(*sizing).ends_with("NOT ENOUGH: 4096 replicas miss the objectives\n"));
}

TEST_CASE("sizes on a fabric: the answer keeps what one less does not, and a full fabric is said") {
  const std::string yaml =
      "fabric: {generator: ai_zone, racks: 2, hosts_per_rack: 1, gpus_per_host: 8, spines: 1}\n"
      "inference:\n  model: llama3-8b\n  gpu: h100\n  gpu_hour: 2\n"
      "  requests: {poisson: {rate: 40, count: 300, input: 2000, output: 100}}\n";
  const auto sizing = size_replicas(sized_scenario(yaml + "  slo: {ttft: 300 ms, tpot: 20 ms}\n"));
  if (!sizing) FAIL(sizing.error().text());
  REQUIRE(sizing->answer.has_value());
  const std::uint32_t found = sizing->trials[*sizing->answer].prefill;
  REQUIRE(found > 1);
  for (const auto& [replicas, holds] : {std::pair(found, true), std::pair(found - 1, false)}) {
    const auto report =
        infer(sized_scenario(yaml + "  slo: {ttft: 300 ms, tpot: 20 ms}\n  replicas: " +
                             std::to_string(replicas) + "\n"));
    REQUIRE(report.has_value());
    CHECK((report->latencies[0].ours.p99 <= 0.3 && report->latencies[4].ours.p99 <= 0.02) == holds);
    CHECK(*report->cost_per_million_output_tokens ==
          approx(2.0 * replicas * report->end_s / 3600 / (300 * 100) * 1e6));
  }
  const auto full = size_replicas(sized_scenario(yaml + "  slo: {ttft: 1 ms}\n"));
  REQUIRE(full.has_value());
  CHECK(!full->answer);
  CHECK(to_table(*full).find("NOT ENOUGH: more replicas do not fit: ") != std::string::npos);
  const auto split = size_replicas(sized_scenario(
      yaml + "  slo: {ttft: 400 ms, tpot: 20 ms}\n  replicas: {prefill: 1, decode: 1}\n"));
  if (!split) FAIL(split.error().text());
  REQUIRE(split->answer.has_value());
  CHECK(split->trials[*split->answer].decode > 0);
}

TEST_CASE("classes have objectives of their own") {
  const std::string yaml =
      "inference:\n  model: llama3-8b\n  gpu: h100\n"
      "  requests: {poisson: [{class: chat, rate: 4, count: 100, input: 200, output: 20},"
      " {class: batch, rate: 1, input: 8000, output: 20}]}\n";
  const auto report = infer(
      sized_scenario(yaml + "  slo: [{class: chat, ttft: 1 us}, {tpot: 10 s, percentile: 90}]\n"));
  if (!report) FAIL(report.error().text());
  REQUIRE(report->objectives.size() == 2);
  const Attainment &chat = report->objectives[0], &rest = report->objectives[1];
  CHECK(chat.requests == 100);
  CHECK(rest.requests == 25);  // as long as the first class
  CHECK(chat.met == 0);
  CHECK(!chat.holds());
  CHECK(rest.met == 25);
  CHECK(rest.holds());
  CHECK(*report->goodput == approx(25 / report->end_s));
  const auto error = [&](const std::string& more) {
    const auto out = infer(sized_scenario(yaml + more));
    return out ? "none" : out.error().text();
  };
  CHECK(error("  slo: {class: chart, ttft: 1 s}\n") ==
        "s.yaml:5:8: no request is of class \"chart\"; the requests have: chat, batch");
  CHECK(error("  slo: [{ttft: 1 s}, {percentile: 0, tpot: 1 s}, {class: chat}]\n") ==
        "s.yaml:5:35: inference.slo.percentile: 0 is not within 1 .. 100; choose a value in range\n"
        "s.yaml:5:22: two objectives for all requests; write both in one entry\n"
        "s.yaml:5:50: an objective without ttft and tpot; write e.g. {ttft: 500 ms, tpot: 50 ms, "
        "percentile: 99}");
  CHECK(size_replicas(sized_scenario(yaml)).error().text() ==
        "s.yaml:2:3: \"slo\" is missing: there is no latency target to size for; add e.g. slo: "
        "{ttft: "
        "500 ms, tpot: 50 ms, percentile: 99}");
}

}  // namespace
}  // namespace weft::plan
