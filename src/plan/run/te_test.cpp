// Scheme te in whole runs. At line rate, so that the network alone decides.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>

#include "base/test_approx.hpp"
#include "plan/run/run.hpp"
#include "plan/run/test_kit.hpp"

namespace weft::plan {
namespace {

using testing::run;

// Seconds of each variant's first job.
std::vector<double> times(const std::string& yaml) {
  std::vector<double> out;
  for (const model::VariantOutcome& variant : run(yaml).variants) {
    CHECK(variant.completion.unfinished == 0);
    out.push_back(variant.jobs.front().time_mean_s);
  }
  return out;
}

TEST_CASE("te: whole flows at line rate on both engines, also after failures it has heard of") {
  // 16 NICs of each rack send to other racks, over 18 spines.
  const std::string faults =
      ", faults: [{kind: link_down, tier: rtsw->ctsw, count: 8, pick: random, at: 1 ns}]}\n";
  for (const char* engine : {"fluid", "packet"}) {
    CAPTURE(std::string(engine));
    const std::vector<double> s =
        times(fmt::format("fabric: {{generator: ai_zone, racks: 8, spines: 18}}\n"
                          "collectives: {{cost: line_rate}}\n"
                          "jobs: [{{name: pairs, collective: send_recv, gpus: 128, bytes: 16 MiB, "
                          "place: scattered}}]\n"
                          "engine: {}\n"
                          "routing: {{scheme: te, qps: 4}}\n"
                          "compare:\n"
                          "  te: {{}}\n"
                          "  e_ecmp: {{routing: {{scheme: e_ecmp}}}}\n"
                          "  heard at once: {{routing: {{qps: 4}}{}"
                          "  heard soon: {{routing: {{te: {{sees: 100 us}}}}{}"
                          "  not heard of: {{routing: {{te: {{sees: 30 s}}}}{}",
                          engine, faults, faults, faults));
    const double alone = 16.0 * (1 << 20) / 50e9;  // at 400 Gbps
    CHECK(s[0] > alone);
    CHECK(s[0] < 1.05 * alone);  // with headers and latency
    CHECK(s[1] > 2 * alone);
    CHECK(s[2] < 1.05 * alone);
    CHECK(s[3] > 1.05 * s[2]);
    CHECK(s[4] > 1.2 * s[3]);
    CHECK(s[4] < s[1]);  // most paths are still assigned
  }
}

// 4 NICs of a rack send over 4 uplinks, one of which is down: 2 times the time of a NIC with whole
// flows, 1.5 with halves.
TEST_CASE("te: pairs of QPs are divided where that helps, on both engines") {
  for (const char* engine : {"fluid", "packet"}) {
    CAPTURE(std::string(engine));
    const std::vector<double> s = times(fmt::format(
        "fabric: {{generator: ai_zone, racks: 4, hosts_per_rack: 1, gpus_per_host: 4, spines: 4}}\n"
        "collectives: {{cost: line_rate}}\n"
        "jobs: [{{name: pairs, collective: send_recv, gpus: 16, bytes: 16 MiB, place: "
        "list, ranks: [0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15]}}]\n"
        "engine: {}\n"
        "routing: {{scheme: te, qps: 2, te: {{split: true}}}}\n"
        "compare:\n"
        "  healthy: {{}}\n"
        "  whole: {{routing: {{qps: 1, te: {{split: false}}}}, faults: [&one {{kind: link_down, "
        "link: \"rtsw:1--ctsw:2\"}}]}}\n"
        "  halves: {{faults: [*one]}}\n",
        engine));
    CHECK(s[1] / s[0] == approx(2).epsilon(0.02));
    CHECK(s[2] / s[0] == approx(1.5).epsilon(0.02));
  }
}

TEST_CASE("te: a training step, and other fabrics refused where the scenario says so") {
  const std::vector<double> s = times(
      "fabric: {generator: ai_zone, racks: 4, spines: 16}\n"
      "jobs: [{name: t, model: llama3-8b, parallel: {tp: 2, pp: 2, dp: 16}, batch: 64, "
      "place: random}]\n"
      "compare:\n"
      "  te: {routing: {scheme: te, qps: 4}}\n"
      "  ecmp: {routing: {scheme: ecmp}}\n");
  CHECK(s[0] < s[1]);
  const auto file = model::parse_scenario(
      "fabric: {generator: fat_tree, k: 4}\nrouting: {scheme: te}\n"
      "jobs: [{name: a, collective: all_reduce, gpus: 16, bytes: 1 MiB}]\n",
      "test.yaml", {});
  REQUIRE(file.has_value());
  const auto outcome = run_scenario(*file, {});
  REQUIRE(!outcome.has_value());
  CHECK(outcome.error().text().starts_with(
      "test.yaml:2:10: traffic engineering assigns the paths of a"));
}

// Rack 1 loses one of its 4 uplinks, over each of which one flow at line rate leaves and one comes
// in: its own switch turns to another uplink after 50 us, the other racks when the controller
// (200 us) or BGP (600 us) has led round; marks of a dead controller wait for the repair (700 us),
// or until they lapse (600 us after the start: 400 us), when BGP has led round already.
TEST_CASE("convergence: flows hit, time without a path and bytes lost, on both engines") {
  constexpr double line_rate = 50e9;  // bytes per second
  const auto outcomes = [](const char* engine) {
    return run(fmt::format(
                   "fabric: {{generator: ai_zone, racks: 4, hosts_per_rack: 1, gpus_per_host: 4, "
                   "spines: 4, latency: 500 ns}}\n"
                   "collectives: {{cost: line_rate}}\n"
                   "jobs: [{{name: pairs, collective: send_recv, gpus: 16, bytes: 64 MiB, place: "
                   "list, ranks: [0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15]}}]\n"
                   "engine: {}\n"
                   "routing: {{scheme: te, convergence: {{detect: 50 us, bgp: 600 us, compute: 50 "
                   "us, install: 100 us}}}}\n"
                   "faults: [{{kind: link_down, link: \"rtsw:1--ctsw:2\", at: 200 us, until: 900 "
                   "us}}]\n"
                   "compare:\n"
                   "  te: {{}}\n"
                   "  dead: {{routing: {{te: {{controller: dead}}}}}}\n"
                   "  e_ecmp: {{routing: {{scheme: e_ecmp}}}}\n"
                   "  lapsed: {{routing: {{te: {{controller: dead, lease: 600 us}}, "
                   "convergence: {{bgp: 300 us}}}}}}\n"
                   "  at once: {{routing: {{convergence: null}}}}\n",
                   engine))
        .variants;
  };
  std::vector<std::uint64_t> hit;  // of the fluid engine, by variant
  for (const char* engine : {"fluid", "packet"}) {
    CAPTURE(std::string(engine));
    const std::vector<model::VariantOutcome> variants = outcomes(engine);
    CHECK(variants[4].failures.empty());
    for (std::size_t v = 0; v < 4; ++v) {
      CAPTURE(variants[v].name);
      REQUIRE(variants[v].failures.size() == 1);
      const model::FailureOutcome& failure = variants[v].failures[0];
      CHECK(failure.what == "rtsw:1--ctsw:2");
      CHECK(failure.at_s == approx(200e-6));
      CHECK(failure.stranded == 0);
      CHECK(failure.flows.size() == failure.hit);
      CHECK(failure.path_again_p50_s == approx(50e-6));
      constexpr std::array<double, 4> last{200e-6, 700e-6, 600e-6, 400e-6};
      CHECK(failure.path_again_max_s == approx(last[v]));
      if (v < hit.size()) CHECK(failure.hit == hit[v]);
      hit.push_back(failure.hit);
      if (v == 2) continue;  // hashed flows share links, and are no closed form
      CHECK(failure.hit == 2);
      const double stalled = line_rate * (50e-6 + failure.path_again_max_s);
      if (failure.lost_packets) {
        const double packets = stalled / (4096 + 62);
        CHECK(static_cast<double>(*failure.lost_packets) == approx(packets).epsilon(0.02));
      } else {
        CHECK(failure.stalled_bytes == approx(stalled));
        CHECK(failure.lost_bytes == approx(2 * line_rate * 4 * 500e-9));
      }
    }
  }
}

// A single flow is over later by the time that it had no path, and by nothing else.
TEST_CASE("convergence: a flow ends later by its blackout") {
  for (const char* engine : {"fluid", "packet"}) {
    CAPTURE(std::string(engine));
    int crossed = 0;
    for (const char* spine : {"ctsw:0", "ctsw:1"}) {
      const std::vector<double> s = times(fmt::format(
          "fabric: {{generator: ai_zone, racks: 2, hosts_per_rack: 1, gpus_per_host: 1, spines: "
          "2}}\n"
          "collectives: {{cost: line_rate}}\n"
          "jobs: [{{name: one, collective: all_to_all, gpus: 2, matrix: [[0 B, 64 MiB], [0 B, 0 "
          "B]]}}]\n"
          "engine: {}\n"
          "routing: {{scheme: ecmp, convergence: {{detect: 300 us, bgp: 700 us}}}}\n"
          "compare:\n"
          "  healthy: {{}}\n"
          "  up: {{faults: [{{kind: link_down, link: \"rtsw:0->{}\", at: 300 us}}]}}\n"
          "  down: {{faults: [{{kind: link_down, link: \"{}->rtsw:1\", at: 300 us}}]}}\n"
          "  spine: {{faults: [{{kind: switch_down, switch: \"{}\", at: 300 us}}]}}\n",
          engine, spine, spine, spine));
      if (s[1] == s[0]) {  // over the other spine
        CHECK(s[2] == s[0]);
        CHECK(s[3] == s[0]);
        continue;
      }
      ++crossed;
      const double round_trip = 20e-6;  // at most: what was on the way is sent again
      CHECK(s[1] - s[0] == approx(300e-6).scale(1).epsilon(round_trip));
      CHECK(s[2] - s[0] == approx(700e-6).scale(1).epsilon(round_trip));
      CHECK(s[3] - s[0] == approx(300e-6).scale(1).epsilon(round_trip));
    }
    CHECK(crossed == 1);
  }
}

TEST_CASE("convergence: schemes without one path for each flow are refused") {
  const auto file = model::parse_scenario(
      "fabric: {generator: ai_zone, racks: 2}\nrouting: {scheme: spray, convergence: {}}\n"
      "jobs: [{name: a, collective: all_reduce, gpus: 16, bytes: 1 MiB}]\n",
      "test.yaml", {});
  REQUIRE(file.has_value());
  const auto outcome = run_scenario(*file, {});
  REQUIRE(!outcome.has_value());
  CHECK(outcome.error().text().find("convergence is not modelled for scheme spray") !=
        std::string::npos);
}

}  // namespace
}  // namespace weft::plan
