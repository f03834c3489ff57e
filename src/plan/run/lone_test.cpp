#include "plan/run/lone.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <span>
#include <utility>

#include "base/test_approx.hpp"
#include "base/test_effort.hpp"
#include "model/formats/build_fabric.hpp"
#include "plan/run/run.hpp"
#include "plan/run/test_kit.hpp"

namespace weft::plan {
namespace {

struct Group {
  const char* op;
  const char* algorithm;
};
constexpr Group groups[] = {
    {"all_reduce", "auto"},   {"all_reduce", "ring"},
    {"all_reduce", "tree"},   {"all_reduce", "halving_doubling"},
    {"all_reduce", "direct"}, {"all_reduce", "hierarchical"},
    {"all_reduce", "nvls"},   {"all_reduce", "nvls_tree"},
    {"all_reduce", "flat"},   {"all_gather", "auto"},
    {"all_gather", "ring"},   {"all_gather", "recursive_doubling"},
    {"all_gather", "pat"},    {"reduce_scatter", "ring"},
    {"broadcast", "tree"},    {"broadcast", "ring"},
    {"all_to_all", "auto"},   {"send_recv", "auto"},
};

std::string scenario(int hosts, const Group& group, const std::string& bytes,
                     const std::string& more = "", const char* host = "h100") {
  return fmt::format(
      "fabric: {{generator: ai_zone, racks: {}, hosts_per_rack: 1, spines: 16, host: {}}}\n"
      "routing: {{scheme: spray}}\n{}"
      "jobs: [{{name: j, collective: {}, algorithm: {}, gpus: {}, bytes: {}}}]\n",
      hosts, host, more, group.op, group.algorithm, 8 * hosts, bytes);
}

// What `weft perf` says of it.
std::optional<double> perf_seconds(int hosts, const Group& group, double bytes,
                                   const char* host = "h100", const std::string& more = "") {
  const auto file = model::parse_scenario(scenario(hosts, group, "8 B", more, host), "s.yaml", {});
  const Setup setup = read_setup(file->variants.front()).value();
  std::vector<model::NodeId> ranks(setup.fabric.gpus().begin(), setup.fabric.gpus().end());
  const auto ops = workload::op_names();
  const auto op = static_cast<workload::Op>(std::ranges::find(ops, group.op) - ops.begin());
  const auto machine = workload::machine_of(setup.library, setup.fabric, ranks).value();
  const auto call = workload::plan_call(machine, op, bytes, {.algorithm = group.algorithm});
  if (!call) return std::nullopt;
  return LoneCollective::run(setup, 1,
                             {.op = op, .algorithm = call->pick.algorithm, .ranks = ranks})
      .value()
      .seconds(call->cost, bytes);
}

// How many groups and sizes there were.
int check_one_cost(const char* host, const std::string& more = "") {
  int tried = 0;
  for (const int hosts : {1, 2, 3})
    for (const Group& group : groups)
      for (const char* bytes : {"8 B", "4 KiB", "1 MiB", "128 MiB", "16 GiB"}) {
        const double count = static_cast<double>(parse_bytes({bytes, {}}).value().count);
        const auto perf = perf_seconds(hosts, group, count, host, more);
        if (!perf) continue;  // NVLS between hosts, NVLSTree inside one
        ++tried;
        CAPTURE(hosts);
        CAPTURE(group.op);
        CAPTURE(group.algorithm);
        CAPTURE(bytes);
        const model::Outcome outcome = testing::run(scenario(hosts, group, bytes, more, host));
        CHECK(outcome.variants[0].jobs[0].time_mean_s == approx(*perf).epsilon(1e-9));
      }
  return tried;
}

TEST_CASE("one cost: a lone collective takes as long in `run` as in `perf`, 8 B to 16 GiB") {
  const std::array<std::pair<const char*, const char*>, 3> machines{
      {{"h100", "collectives: {nic: {attach: package, drive: event}}\n"},
       {"mi300x", ""},  // GPUs in a mesh
       {"h100", ""}}};
  for (const auto& [gpu, more] : std::span(machines).first(test_effort(machines.size())))
    CHECK(check_one_cost(gpu, more) > 200);
}

TEST_CASE("a step of a NIC has its path from the first metre, a measured one beyond 5 us") {
  // Of the 30 edges that a chunk passes, 4 are between hosts, with 4 cables each.
  const auto us = [](const char* latency, const std::string& more) {
    const std::string text = scenario(2, {"all_reduce", "ring"}, "8 B", more);
    const std::string at = "spines: 16, ";
    const model::Outcome outcome = testing::run(
        std::string(text).insert(text.find(at) + at.size(), fmt::format("latency: {}, ", latency)));
    return outcome.variants[0].jobs[0].time_mean_s / 1e-6;
  };
  const std::string nic = "collectives: {nic: {}}\n";
  CHECK(us("1 us", nic) - us("0 s", nic) == approx(4 * 4));
  CHECK(us("1 us", "") == us("0 s", ""));
  CHECK(us("2 us", "") - us("0 s", "") == approx(4 * (8 - 5)));
}

// Packets bring their own headers and the latency of their paths.
void check_packets(const std::string& more) {
  for (const int hosts : {1, 2})
    for (const Group& group : {groups[0], groups[1], groups[2], groups[7]})
      for (const char* bytes : {"8 B", "64 KiB", "4 MiB"}) {
        const double count = static_cast<double>(parse_bytes({bytes, {}}).value().count);
        const auto perf = perf_seconds(hosts, group, count, "h100", more);
        if (!perf) continue;
        CAPTURE(hosts);
        CAPTURE(group.algorithm);
        CAPTURE(bytes);
        const model::Outcome outcome =
            testing::run(scenario(hosts, group, bytes, "engine: packet\n" + more));
        const double ratio = outcome.variants[0].jobs[0].time_mean_s / *perf;
        CHECK(ratio > 0.99);
        CHECK(ratio < 1.01);
      }
}

TEST_CASE("one cost: the packet engine too, within 1 %") {
  check_packets("");
  check_packets("collectives: {nic: {attach: package, drive: event}}\n");
}

TEST_CASE("line rate: bytes at the rate of the links, and nothing else") {
  const model::Outcome outcome = testing::run(
      "fabric: {generator: ai_zone, racks: 2, hosts_per_rack: 1, spines: 16, latency: 0 s}\n"
      "routing: {scheme: spray}\ncollectives: {cost: line_rate}\n"
      "jobs: [{name: j, collective: all_reduce, algorithm: ring, gpus: 16, bytes: 1 GiB}]\n");
  const double bytes = 1 << 30;
  CHECK(outcome.variants[0].jobs[0].time_mean_s ==
        approx(2.0 * 15 / 16 * bytes / 400e9).epsilon(1e-9));
}

TEST_CASE("keys of collectives:") {
  const auto time_of = [](const std::string& section) {
    return testing::run(scenario(2, groups[1], "8 B", "collectives: {" + section + "}\n"))
        .variants[0]
        .jobs[0]
        .time_mean_s;
  };
  // Two crossings of the network, there and back, by LL, whose steps take 2.7 / 5 (NCCL's tables).
  CHECK(time_of("step: 50 us") - time_of("step: 40 us") == approx(2 * 0.54 * 10e-6));
  CHECK(time_of("transport: efa") > time_of("transport: infiniband"));
  const auto refused = [](const std::string& section) {
    const auto file = model::parse_scenario(
        scenario(2, groups[1], "8 B", "collectives: {" + section + "}\n"), "s.yaml", {});
    const auto outcome = run_scenario(*file, {});
    return outcome ? std::string() : outcome.error().text();
  };
  CHECK(refused("cost: ncll").find("did you mean \"nccl\"") != std::string::npos);
  CHECK(refused("system: p6").find("s.yaml:3:") != std::string::npos);
  CHECK(refused("step: 2 s").find("s.yaml:3:") != std::string::npos);
  CHECK(refused("launch: 9000000 s").find("above 1 s") != std::string::npos);
  CHECK(refused("steps: 3 us").find("did you mean \"step\"") != std::string::npos);
}

TEST_CASE("all_to_all of unequal sizes: a matrix instead of bytes") {
  const auto scenario_of = [](const std::string& keys) {
    return "fabric: {generator: ai_zone, racks: 3, hosts_per_rack: 1, gpus_per_host: 1, spines: 3, "
           "latency: 0 s}\nrouting: {scheme: spray}\ncollectives: {cost: line_rate}\n"
           "jobs: [{name: j, collective: all_to_all, gpus: 3, window: 2, " +
           keys + "}]\n";
  };
  const model::Outcome outcome = testing::run(
      scenario_of("matrix: [[9 GB, 10 MB, 20 MB], [0 B, 0 B, 5 MB], [0 B, 0 B, 0 B]]"));
  const model::JobOutcome& job = outcome.variants[0].jobs[0];
  CHECK(job.bytes_per_rank == 30e6);  // what it keeps crosses nothing
  CHECK(job.time_mean_s == approx(30e6 / 50e9));
  const auto refused = [&](const std::string& keys) {
    const auto file = model::parse_scenario(scenario_of(keys), "s.yaml", {});
    const auto result = run_scenario(*file, {});
    return result ? std::string() : result.error().text();
  };
  CHECK(refused("matrix: [[0 B, 1 B], [1 B]]").find("this row of the matrix has 1") !=
        std::string::npos);
  CHECK(refused("matrix: [[0 B, 1 B], [1 B, 0 B]]").find("4 entries for 3 ranks") !=
        std::string::npos);
  CHECK(refused("matrix: []").find("has no rows") != std::string::npos);
  CHECK(refused("bytes: 1 B, matrix: [[0 B]]").find("both \"bytes:\"") != std::string::npos);
  CHECK(refused("matrix: [[0 B, x], [1 B, 0 B]]").find("s.yaml:4:") != std::string::npos);
}

}  // namespace
}  // namespace weft::plan
