#include "engine/packet_jobs/graph.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/config.hpp"
#include "base/test_approx.hpp"
#include "engine/packet_jobs/run.hpp"
#include "model/formats/test_fabric.hpp"

namespace weft::engine::packet {
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
  GraphResult graph;
  RunResult all;
};

Timed run(const model::Fabric& fabric, const model::OpGraph& graph, std::uint32_t iterations = 1) {
  GraphJob job{.name = "g", .graph = &graph};
  job.ranks.assign(fabric.gpus().begin(), fabric.gpus().begin() + graph.rank_count);
  job.iterations = iterations;
  auto router = route::Router::create(fabric, {}, 1);
  REQUIRE(router.has_value());
  PacketEngine engine;
  engine.options.pfc.on = true;
  auto result = engine.run({{}, {&job, 1}}, *router, {}, {});
  REQUIRE_MESSAGE(result.has_value(), (result ? "" : result.error().text()));
  CHECK(result->unfinished.empty());
  GraphResult first = result->graphs.at(0);
  return {std::move(first), *std::move(result)};
}

double exposed_sum(const GraphResult& result) {
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
  CHECK(timed.graph.iteration_s[0] == approx(150e-6 + message).epsilon(0.002));
  // Rank 0 knows of the end a little later than rank 1, and then waits for it.
  CHECK(timed.graph.compute_s == approx(75e-6));
  CHECK(timed.graph.exposed_s[static_cast<std::size_t>(Dimension::pp)] ==
        approx(message).epsilon(0.1));
  CHECK(timed.graph.compute_s + timed.graph.idle_s + exposed_sum(timed.graph) ==
        approx(timed.graph.iteration_s[0]));
  CHECK(timed.graph.busiest_rank == 0);
  CHECK(timed.graph.busiest_compute_s == approx(100e-6));
  const double rack = timed.graph.bytes[static_cast<std::size_t>(Dimension::pp)]
                                       [static_cast<std::size_t>(model::Distance::zone)];
  CHECK(rack == 1 << 20);
  CHECK(timed.all.packet->sent_bytes == (1 << 20) + grant_bytes);
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
    CHECK(timed.graph.compute_s == approx(compute));
    const double collective = 6 * 1e6 / 50e9;  // 120 us and more
    if (compute > 1) {
      CHECK(timed.graph.iteration_s[1] == approx(compute));
      CHECK(exposed_sum(timed.graph) == approx(0).epsilon(1e-9));
    } else {
      CHECK(timed.graph.iteration_s[1] > collective);
      CHECK(timed.graph.iteration_s[1] < 1.2 * collective);
      CHECK(exposed_sum(timed.graph) > 0.9 * collective);
    }
    CHECK(timed.graph.compute_s + timed.graph.idle_s + exposed_sum(timed.graph) ==
          approx(timed.graph.iteration_s[1]));
  }
}

// All-reduces that overlap at every second layer, and a message beside them into the same NIC.
TEST_CASE("phases that recur are simulated once, and nothing but a note shows it") {
  const model::Fabric fabric = lone_hosts(4);
  std::vector<model::Program> programs(4);
  for (std::uint32_t rank = 0; rank < 4; ++rank)
    for (std::uint32_t layer = 0; layer < 6; ++layer) {
      const std::uint32_t computed = model::add_operation(
          programs[rank], {.stream = 1, .seconds = layer % 2 == 0 ? 300e-6 : 20e-6}, {});
      model::add_operation(programs[rank],
                           {.kind = Kind::collective, .dimension = Dimension::dp, .bytes = 2e6},
                           {&computed, 1});
      if (rank == 1 || rank == 2)
        model::add_operation(programs[rank],
                             {.kind = rank == 2 ? Kind::send : Kind::recv,
                              .dimension = Dimension::pp,
                              .slot = 3 - rank,
                              .tag = layer,
                              .bytes = 300e3},
                             {&computed, 1});
    }
  model::OpGraph graph = graph_of(std::move(programs));
  const Status finished = graph.finish();
  REQUIRE_MESSAGE(finished.has_value(), (finished ? "" : finished.error().text()));
  GraphJob job{.name = "g", .graph = &graph};
  job.ranks.assign(fabric.gpus().begin(), fabric.gpus().end());
  job.iterations = 5;
  for (const bool spray : {false, true}) {
    PacketEngine engine;
    engine.options.pfc.on = true;
    engine.options.ecn.on = true;
    engine.options.ecn.kmin = Bytes{10'000};
    engine.options.ecn.kmax = Bytes{100'000};
    engine.options.congestion = spray ? Congestion::nscc : Congestion::dcqcn;
    engine.options.balance = spray ? Balance::spray : Balance::path;
    if (spray) engine.options.reliability = Reliability::selective;
    const auto with = [&](Memoise memoise) {
      auto router = route::Router::create(fabric, {}, 1);
      engine.memoise = memoise;
      auto result = engine.run({{}, {&job, 1}}, *router, {}, {});
      REQUIRE_MESSAGE(result.has_value(), (result ? "" : result.error().text()));
      return *std::move(result);
    };
    const RunResult on = with(Memoise::on), off = with(Memoise::off);
    REQUIRE(on.notes.size() == 1);
    INFO(on.notes[0].text);
    CHECK(on.notes[0].text.find("repeat earlier ones exactly") != std::string::npos);
    CHECK(off.notes.empty());
    CHECK(on.digest == off.digest);
    CHECK(on.graphs.at(0).iteration_s == off.graphs.at(0).iteration_s);
    CHECK(on.graphs.at(0).exposed_s == off.graphs.at(0).exposed_s);
    CHECK(on.link_bytes == off.link_bytes);
    CHECK(on.packet->hops == off.packet->hops);
    CHECK(on.packet->ecn_marks == off.packet->ecn_marks);
    CHECK(on.packet->ecn_marks > 0);
    CHECK(on.packet->buffer_max_bytes == off.packet->buffer_max_bytes);
    CHECK(on.transfer_times.count() == off.transfer_times.count());
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
  GraphJob job{.name = "g", .graph = &graph};
  job.ranks.assign(fabric.gpus().begin(), fabric.gpus().end());
  auto router = route::Router::create(fabric, {}, 1);
  const auto result = PacketEngine{}.run({{}, {&job, 1}}, *router, {}, {});
  REQUIRE(!result.has_value());
  CHECK(result.error().text().find("would never start") != std::string::npos);
  CHECK(result.error().text().find("job \"g\": operation ") != std::string::npos);
}

}  // namespace
}  // namespace weft::engine::packet
