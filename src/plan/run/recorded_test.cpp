#include "plan/run/recorded.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/test_approx.hpp"
#include "base/test_folder.hpp"
#include "plan/run/run.hpp"
#include "plan/run/test_kit.hpp"

namespace weft::plan {
namespace {

using testing::run;

// Broadcast down a binomial tree: rank r sends to r + 2^k for every k above its highest bit.
std::string binomial_goal(unsigned depth, unsigned bytes) {
  std::string out = fmt::format("num_ranks {}\n", 1u << depth);
  for (unsigned r = 0; r < 1u << depth; ++r) {
    out += fmt::format("rank {} {{\n", r);
    unsigned high = 0;
    while ((r >> high) != 0) ++high;
    if (r > 0) out += fmt::format("get: recv {}b from {} tag 0\n", bytes, r - (1u << (high - 1)));
    for (unsigned k = high; k < depth; ++k) {
      out += fmt::format("l{}: send {}b to {} tag 0\n", k, bytes, r + (1u << k));
      if (r > 0) out += fmt::format("l{} requires get\n", k);
    }
    out += "}\n";
  }
  return out;
}

}  // namespace

// Every rank in a rack of its own: one latency L between any two. o = 1.5 us, G = 1 / (50 GB/s).
// The last rank hears after depth x (o + L + s G), and o; a send costs its sender o, so the chain
// of the first child of the first child ... is as long as the row of the root's sends.
TEST_CASE("a GOAL schedule on the engine takes what LogGP says") {
  constexpr double overhead = 1.5e-6, bytes = 100'000;
  constexpr double latency = 4e-6;  // nic, rtsw, ctsw, rtsw, nic: four cables of 1 us
  const std::string fabric =
      "fabric: {generator: ai_zone, racks: 32, hosts_per_rack: 1, gpus_per_host: 1, spines: 4, "
      "latency: 1 us}\n";
  const auto section = parse_yaml(fabric, "f.yaml");
  for (const unsigned depth : {1u, 3u, 5u}) {
    const TestFolder folder;
    const std::string file =
        folder.write("tree.goal", binomial_goal(depth, static_cast<unsigned>(bytes)));
    for (const char* contention : {"true", "false"}) {
      const model::Outcome outcome = run(
          fmt::format("{}routing: {{scheme: spray}}\nengine: {{name: fluid, contention: {}}}\n"
                      "jobs: [{{name: tree, workload: {}, overhead: 1.5 us, place: rack_order}}]\n",
                      fabric, contention, file));
      const auto& t = outcome.variants[0].jobs[0].training;
      REQUIRE(t.has_value());
      const double expected = depth * overhead + depth * (overhead + latency + bytes / 50e9);
      CAPTURE(depth);
      CAPTURE(contention);
      // A root that has sent k messages already shares its NIC with what is still on the wire.
      if (std::string_view(contention) == "false")
        CHECK(t->step_time_s == approx(expected).epsilon(1e-9));
      else
        CHECK(t->step_time_s >= expected * (1 - 1e-9));
    }
  }
}

TEST_CASE("jobs of recorded workloads: unknown files and keys are errors with a position") {
  const auto error_of = [](const std::string& job) {
    const auto file = model::parse_scenario(
        "fabric: {generator: ai_zone, racks: 2}\njobs: [{name: j, " + job + "}]\n", "s.yaml", {});
    REQUIRE(file.has_value());
    const auto outcome = run_scenario(*file, {});
    return outcome ? std::string() : outcome.error().text();
  };
  CHECK(error_of("workload: nowhere.txt").find("s.yaml:2:") != std::string::npos);
  CHECK(error_of("workload: nowhere.txt").find("No such file") != std::string::npos);
  const TestFolder folder;
  const std::string file = folder.write("bad.txt", "this is no workload\n");
  CHECK_FALSE(error_of("workload: " + file).empty());
  CHECK(error_of("workload: " + file + ", batch: 3").find("batch") != std::string::npos);
}

}  // namespace weft::plan
