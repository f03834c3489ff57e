#include "plan/run/packet_graph.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/config.hpp"
#include "model/formats/test_fabric.hpp"
#include "plan/run/packet_jobs.hpp"
#include "plan/run/run.hpp"

namespace weft::plan {
namespace {

using model::Dimension;
using model::Operation;
using Kind = model::Operation::Kind;

model::Fabric lone_hosts(std::uint32_t hosts) {
  return model::testing::make_fabric(fmt::format(
      "{{generator: ai_zone, racks: {}, hosts_per_rack: 1, gpus_per_host: 1, spines: 2}}", hosts));
}

// One rank an actor; `programs[a]` is actor a's. Everybody is everybody's peer: slot r is rank r.
// Where they do collectives, they do them all together.
model::OpGraph graph_of(std::vector<model::Program> programs) {
  model::OpGraph graph;
  const auto n = static_cast<std::uint32_t>(programs.size());
  graph.rank_count = n;
  graph.label("op");
  model::RankGroup all{.dimension = Dimension::dp, .rows = 1, .ranks = {}, .actors = n};
  for (std::uint32_t a = 0; a < n; ++a) {
    graph.actors.push_back({a, a * n, a});
    graph.actor_ranks.push_back(a);
    all.ranks.push_back(a);
    for (std::uint32_t peer = 0; peer < n; ++peer) graph.peers.push_back(peer);
  }
  graph.memberships.assign(n, 0);
  const bool together = std::ranges::any_of(
      programs[0].operations, [](const Operation& o) { return o.kind == Kind::collective; });
  if (together) graph.groups.push_back(all);
  graph.programs = std::move(programs);
  return graph;
}

struct Timed {
  engine::fluid::GraphResult graph;
  PacketJobsResult all;
};

Timed run(const model::Fabric& fabric, const model::OpGraph& graph, std::uint32_t iterations = 1) {
  engine::fluid::GraphJob job{.name = "g", .graph = &graph};
  job.ranks.assign(fabric.gpus().begin(), fabric.gpus().begin() + graph.rank_count);
  job.iterations = iterations;
  auto router = route::Router::create(fabric, {}, 1);
  REQUIRE(router.has_value());
  PacketJobsOptions options;
  options.engine.pfc.on = true;
  auto result = run_packet_jobs({}, {&job, 1}, *router, {}, options);
  REQUIRE_MESSAGE(result.has_value(), (result ? "" : result.error().text()));
  CHECK(result->run.unfinished.empty());
  engine::fluid::GraphResult first = result->run.graphs.at(0);
  return {std::move(first), *std::move(result)};
}

double exposed_sum(const engine::fluid::GraphResult& result) {
  return std::accumulate(result.exposed_s.begin(), result.exposed_s.end(), 0.0);
}

//   rank 0: compute 100 us, send 1 MiB -> rank 1: receive, compute 50 us
TEST_CASE("a message starts when both ends are ready, and each end knows it by itself") {
  const model::Fabric fabric = lone_hosts(2);
  std::vector<model::Program> programs(2);
  const std::uint32_t computed =
      model::add_operation(programs[0], {.stream = 1, .seconds = 100e-6}, {});
  model::add_operation(
      programs[0], {.kind = Kind::send, .dimension = Dimension::pp, .slot = 1, .bytes = 1 << 20},
      {&computed, 1});
  const std::uint32_t received = model::add_operation(
      programs[1], {.kind = Kind::recv, .dimension = Dimension::pp, .slot = 0, .bytes = 1 << 20},
      {});
  model::add_operation(programs[1], {.stream = 1, .seconds = 50e-6}, {&received, 1});
  model::OpGraph graph = graph_of(std::move(programs));
  const Status finished = graph.finish();
  REQUIRE_MESSAGE(finished.has_value(), (finished ? "" : finished.error().text()));
  const Timed timed = run(fabric, graph);
  auto router = route::Router::create(fabric, {}, 1);
  const double latency = router->latency(fabric.gpus()[0], fabric.gpus()[1]).seconds();
  const double packet = 4160 * 8 / 400e9;
  const double message = (256 + 3) * packet + latency;
  REQUIRE(timed.graph.iteration_s.size() == 1);
  CHECK(timed.graph.iteration_s[0] == doctest::Approx(150e-6 + message).epsilon(0.002));
  // Rank 0 knows of the end a little later than rank 1, and then waits for it.
  CHECK(timed.graph.compute_s == doctest::Approx(75e-6));
  CHECK(timed.graph.exposed_s[static_cast<std::size_t>(Dimension::pp)] ==
        doctest::Approx(message).epsilon(0.1));
  CHECK(timed.graph.compute_s + timed.graph.idle_s + exposed_sum(timed.graph) ==
        doctest::Approx(timed.graph.iteration_s[0]));
  CHECK(timed.graph.busiest_rank == 0);
  CHECK(timed.graph.busiest_compute_s == doctest::Approx(100e-6));
  const double rack = timed.graph.bytes[static_cast<std::size_t>(Dimension::pp)]
                                       [static_cast<std::size_t>(model::Distance::zone)];
  CHECK(rack == 1 << 20);
  CHECK(timed.all.packet.sent_bytes == (1 << 20) + grant_bytes);
}

TEST_CASE("a receiver that is not ready holds its sender back") {
  const model::Fabric fabric = lone_hosts(2);
  std::vector<model::Program> programs(2);
  model::add_operation(programs[0], {.kind = Kind::send, .slot = 1, .bytes = 4096}, {});
  const std::uint32_t computed =
      model::add_operation(programs[1], {.stream = 1, .seconds = 300e-6}, {});
  model::add_operation(programs[1], {.kind = Kind::recv, .slot = 0, .bytes = 4096}, {&computed, 1});
  model::OpGraph graph = graph_of(std::move(programs));
  const Status finished = graph.finish();
  REQUIRE_MESSAGE(finished.has_value(), (finished ? "" : finished.error().text()));
  const Timed timed = run(fabric, graph);
  CHECK(timed.graph.iteration_s[0] > 300e-6);
  CHECK(timed.graph.iteration_s[0] < 310e-6);
}

// Hidden as far as the compute beside it lasts.
TEST_CASE("communication is exposed where nothing computes, and long computes are possible") {
  const model::Fabric fabric = lone_hosts(4);
  for (const double compute : {1e-6, 5.0}) {
    std::vector<model::Program> programs(4);
    for (model::Program& program : programs) {
      model::add_operation(program, {.stream = 1, .seconds = compute}, {});
      model::add_operation(
          program, {.kind = Kind::collective, .dimension = Dimension::dp, .bytes = 4e6}, {});
    }
    model::OpGraph graph = graph_of(std::move(programs));
    const Status finished = graph.finish();
    REQUIRE_MESSAGE(finished.has_value(), (finished ? "" : finished.error().text()));
    const Timed timed = run(fabric, graph, 2);
    REQUIRE(timed.graph.iteration_s.size() == 2);
    CHECK(timed.graph.compute_s == doctest::Approx(compute));
    const double collective = 6 * 1e6 / 50e9;  // 120 us and more
    if (compute > 1) {
      CHECK(timed.graph.iteration_s[1] == doctest::Approx(compute));
      CHECK(exposed_sum(timed.graph) == doctest::Approx(0).epsilon(1e-9));
    } else {
      CHECK(timed.graph.iteration_s[1] > collective);
      CHECK(timed.graph.iteration_s[1] < 1.2 * collective);
      CHECK(exposed_sum(timed.graph) > 0.9 * collective);
    }
    CHECK(timed.graph.compute_s + timed.graph.idle_s + exposed_sum(timed.graph) ==
          doctest::Approx(timed.graph.iteration_s[1]));
  }
}

// Streams run in program order: rank 0 would receive first what rank 1 sends last.
TEST_CASE("program order that makes a circle is refused by name") {
  const model::Fabric fabric = lone_hosts(2);
  std::vector<model::Program> programs(2);
  const auto message = [&](std::uint32_t rank, Kind kind, std::uint32_t tag) {
    model::add_operation(programs[rank],
                         {.kind = kind, .stream = 1, .slot = 1 - rank, .tag = tag, .bytes = 4096},
                         {});
  };
  message(0, Kind::send, 1);
  message(0, Kind::send, 2);
  message(1, Kind::recv, 2);
  message(1, Kind::recv, 1);
  model::OpGraph graph = graph_of(std::move(programs));
  const Status finished = graph.finish();
  REQUIRE_MESSAGE(finished.has_value(), (finished ? "" : finished.error().text()));
  engine::fluid::GraphJob job{.name = "g", .graph = &graph};
  job.ranks.assign(fabric.gpus().begin(), fabric.gpus().end());
  auto router = route::Router::create(fabric, {}, 1);
  const auto result = run_packet_jobs({}, {&job, 1}, *router, {}, {});
  REQUIRE(!result.has_value());
  CHECK(result.error().text().find("would never start") != std::string::npos);
  CHECK(result.error().text().find("job \"g\": operation ") != std::string::npos);
}

const model::TrainingOutcome& variant_training(const model::Outcome& outcome, std::size_t variant) {
  return *outcome.variants[variant].jobs[0].training;
}

TEST_CASE("a training step on both engines: within 5 %, the same bytes, all time accounted for") {
  const auto file = model::parse_scenario(R"(
fabric: {generator: ai_zone, racks: 4, hosts_per_rack: 2, spines: 16}
routing: {scheme: e_ecmp, qps: 4}
transport: {pfc: true, window: 128 KiB}
jobs:
  - name: step
    model: {layers: 8, hidden: 1024, ffn: 4096, heads: 16, head_size: 64, vocabulary: 32000}
    parallel: {tp: 2, pp: 2, dp: 16}
    batch: 64
    micro_batch: 1
    sequence: 2048
compare:
  fluid: {engine: fluid}
  packet: {engine: packet}
  slow: {engine: packet, faults: [{kind: gpu_slow, gpu: 3, factor: 1.7}]}
)",
                                          "test.yaml", {});
  REQUIRE_MESSAGE(file.has_value(), (file ? "" : file.error().text()));
  const auto outcome = run_scenario(*file, {});
  REQUIRE_MESSAGE(outcome.has_value(), (outcome ? "" : outcome.error().text()));
  const model::TrainingOutcome &fluid = variant_training(*outcome, 0),
                               &packet = variant_training(*outcome, 1);
  MESSAGE(fmt::format("step: fluid {:.2f} ms, packet {:.2f} ms", fluid.step_time_s * 1e3,
                      packet.step_time_s * 1e3));
  CHECK(packet.step_time_s / fluid.step_time_s > 0.93);
  CHECK(packet.step_time_s / fluid.step_time_s < 1.05);
  for (std::size_t d = 0; d < model::dimension_count; ++d)
    for (std::size_t k = 0; k < model::distance_count; ++k)
      CHECK(packet.bytes[d][k] == doctest::Approx(fluid.bytes[d][k]).epsilon(1e-9));
  for (const std::size_t v : {1u, 2u}) {
    const model::TrainingOutcome& t = variant_training(*outcome, v);
    double sum = t.compute_s + t.idle_s;
    for (const double s : t.exposed_s) sum += s;
    CHECK(sum == doctest::Approx(t.step_time_s).epsilon(1e-6));
    CHECK(outcome->variants[v].packet->drops == 0);
  }
  CHECK(variant_training(*outcome, 2).step_time_s > 1.2 * packet.step_time_s);
  REQUIRE(!variant_training(*outcome, 2).stragglers.empty());
  CHECK(variant_training(*outcome, 2).stragglers[0].rank.find("gpu:") != std::string::npos);
  CHECK(variant_training(*outcome, 2).stragglers[0].factor > 1.3);
}

}  // namespace
}  // namespace weft::plan
