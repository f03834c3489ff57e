// collectives: {adaptive: true} in whole runs, against the same without it and closed forms.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "base/rng.hpp"
#include "base/test_approx.hpp"
#include "base/test_effort.hpp"
#include "plan/run/test_kit.hpp"

namespace weft::plan {
namespace {

using testing::run;

// Seconds of each variant's first job; 0 where it does not end.
std::vector<double> adaptive_times(const std::string& yaml) {
  std::vector<double> out;
  for (const model::VariantOutcome& variant : run(yaml).variants)
    out.push_back(variant.completion.unfinished > 0 ? 0 : variant.jobs.front().time_mean_s);
  return out;
}

constexpr const char* against_static =
    "compare: {static: {}, adaptive: {collectives: {adaptive: true}}}\n";

TEST_CASE("adaptive: never more than 1 % slower than static, on random degradations") {
  Rng rng(17);
  const std::vector<const char*> routings{
      "{scheme: e_ecmp, qps: 4}", "{scheme: e_ecmp, qps: 8}",
      "{scheme: te, qps: 4}",     "{scheme: ecmp}",
      "{scheme: spray}",          "{scheme: e_ecmp, qps: 4, weighted: true}"};
  const std::vector<const char*> ops{"all_reduce", "all_gather", "all_to_all", "send_recv"};
  const std::vector<const char*> costs{"line_rate", "nccl"};
  double gains = 0;
  int worse = 0;
  const std::size_t cases = std::max<std::size_t>(test_effort(200), 50);
  for (std::size_t i = 0; i < cases; ++i) {
    const std::string yaml = fmt::format(
        "fabric: {{generator: ai_zone, racks: {}, spines: {}}}\n"
        "collectives: {{cost: {}}}\n"
        "routing: {}\n"
        "jobs: [{{name: a, collective: {}, gpus: {}, bytes: {} MiB, place: random}}]\n"
        "faults:\n"
        "  - {{kind: link_degraded, tier: rtsw->ctsw, count: {}, pick: random, factor: 0.{}}}\n"
        "  - {{kind: link_down, tier: rtsw->ctsw, count: {}, pick: random}}\n"
        "seed: {}\n{}",
        2 + rng.below(5), 4 + rng.below(8), costs[rng.below(2)], routings[i % routings.size()],
        ops[rng.below(ops.size())], 8 * (2 + rng.below(3)), 1 + rng.below(256), 1 + rng.below(3),
        1 + rng.below(9), 1 + rng.below(2), i, against_static);
    CAPTURE(yaml);
    const std::vector<double> s = adaptive_times(yaml);
    if (s[0] == 0) continue;  // a rack without uplinks
    CHECK(s[1] > 0);
    CHECK(s[1] <= 1.01 * s[0]);
    worse += s[1] > s[0] * (1 + 1e-9) ? 1 : 0;
    gains += s[0] / s[1] - 1;
  }
  CHECK(worse <= 10);
  CHECK(gains / static_cast<double>(cases) > 0.3);
}

TEST_CASE("adaptive: a training step is not slower either, and shorter in the mean") {
  double gains = 0;
  constexpr int cases = 6;
  for (int seed = 1; seed <= cases; ++seed) {
    const std::vector<double> s = adaptive_times(fmt::format(
        "fabric: {{generator: ai_zone, racks: 4, spines: 16}}\n"
        "routing: {{scheme: {}, qps: 4}}\n"
        "jobs: [{{name: t, model: llama3-8b, parallel: {{tp: 2, pp: 2, dp: 16}}, batch: 64, "
        "place: random}}]\n"
        "faults: [{{kind: link_degraded, tier: rtsw->ctsw, count: 3, pick: random, factor: 0.5}}]\n"
        "seed: {}\n{}",
        seed % 2 == 0 ? "te" : "e_ecmp", seed, against_static));
    CAPTURE(seed);
    CHECK(s[1] <= 1.01 * s[0]);
    gains += s[0] / s[1] - 1;
  }
  CHECK(gains > 0);  // compute hides most of it
}

TEST_CASE("adaptive: a NIC at half rate costs its half, and a dead one its eighth") {
  // 4 hosts in 4 racks, of 8 NICs each; one to one, so that NICs alone limit.
  const auto job = [](const char* faults) {
    return adaptive_times(fmt::format(
        "fabric: {{generator: ai_zone, racks: 4, hosts_per_rack: 1, spines: 8, latency: 0 s}}\n"
        "collectives: {{cost: line_rate}}\nrouting: {{scheme: optimal}}\n"
        "jobs: [{{name: a, collective: all_reduce, algorithm: ring, gpus: 32, bytes: 1 GiB}}]\n"
        "faults: [{}]\n{}",
        faults, against_static));
  };
  const double healthy = job("")[0];
  const auto half = job("{kind: nic_degraded, nic: nic:3, factor: 0.5}");
  CHECK(half[0] == approx(2 * healthy).epsilon(1e-4));
  CHECK(half[1] == approx(8 / 7.5 * healthy).epsilon(1e-4));
  const auto dead = job("{kind: nic_down, nic: nic:3}");
  CHECK(dead[0] == 0);  // static does not end
  CHECK(dead[1] == approx(8.0 / 7 * healthy).epsilon(1e-4));
}

TEST_CASE("adaptive: packets follow, and a change during a run is followed by the next iteration") {
  const auto times = [](const char* more) {
    return adaptive_times(fmt::format(
        "fabric: {{generator: ai_zone, racks: 4, spines: 8}}\ncollectives: {{cost: line_rate}}\n"
        "routing: {{scheme: e_ecmp, qps: 4}}\n"
        "jobs: [{{name: a, collective: send_recv, gpus: 64, bytes: 8 MiB, place: "
        "scattered}}]\n{}{}",
        more, against_static));
  };
  const auto fluid = times("engine: fluid\n"), packet = times("engine: packet\n");
  CHECK(fluid[1] < 0.9 * fluid[0]);
  CHECK(packet[1] < 0.9 * packet[0]);
  CHECK(packet[0] == approx(fluid[0]).epsilon(0.03));
  // NICs take turns between QPs, whatever each has to send: those with most end later.
  CHECK(packet[1] > fluid[1]);
  CHECK(packet[1] < 1.15 * fluid[1]);

  const auto outcome = run(fmt::format(
      "fabric: {{generator: ai_zone, racks: 4, hosts_per_rack: 1, spines: 8, latency: 0 s}}\n"
      "collectives: {{cost: line_rate}}\nrouting: {{scheme: optimal}}\n"
      "jobs: [{{name: a, collective: all_reduce, algorithm: ring, gpus: 32, bytes: 1 GiB, "
      "repeat: 20}}]\n"
      "faults: [{{kind: nic_degraded, nic: nic:3, factor: 0.5, at: 21 ms, until: 70 ms}}]\n{}",
      against_static));
  const auto& fixed = outcome.variants[0].jobs[0];
  const auto& adaptive = outcome.variants[1].jobs[0];
  CHECK(fixed.time_min_s == approx(adaptive.time_min_s));
  CHECK(fixed.time_max_s == approx(2 * fixed.time_min_s).epsilon(1e-3));
  CHECK(adaptive.time_mean_s < 0.9 * fixed.time_mean_s);
}

}  // namespace
}  // namespace weft::plan
