#include "engine/packet_jobs/lowering.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <queue>
#include <set>

#include "base/config.hpp"
#include "base/test_approx.hpp"
#include "base/test_effort.hpp"
#include "model/formats/test_fabric.hpp"

namespace weft::engine::packet {
namespace {

using workload::Op;

constexpr double rate = 50e9;     // bytes per second of every connection
constexpr double latency = 1e-6;  // of a message, and of its acknowledgement

using model::testing::make_fabric;

model::Fabric hosts_of(std::uint32_t hosts, std::uint32_t gpus) {
  return make_fabric("generator: ai_zone\nracks: " + std::to_string(hosts) +
                     "\nhosts_per_rack: 1\ngpus_per_host: " + std::to_string(gpus) + "\nspines: 2");
}

struct Run {
  std::vector<double> ready_s, arrived_s;  // negative: never
  double end_s = 0;
};

// Every connection is a pipe of its own: messages cross it one after the other. The oracle for what
// waits for what, not for networks.
Run execute(const MessageSet& set) {
  const std::size_t n = set.size();
  Run run{std::vector<double>(n, -1), std::vector<double>(n, -1)};
  std::vector<double> free_s(set.connections.size(), 0), ready(n, 0);
  std::vector<std::uint32_t> waits(n);
  struct Event {
    double at;
    std::uint32_t message;
    enum class What { ready, arrived, acknowledged } what;
    auto operator<=>(const Event&) const = default;
  };
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events;
  const auto make_ready = [&](std::uint32_t m, double now) {
    const Message& message = set.messages[m];
    const double at =
        std::max(static_cast<double>(message.not_before_ps) * 1e-12, now + message.delay_ns * 1e-9);
    events.push({at, m, Event::What::ready});
  };
  for (std::uint32_t m = 0; m < n; ++m) {
    waits[m] = set.messages[m].waits;
    if (waits[m] == 0) make_ready(m, 0);
  }
  while (!events.empty()) {
    const Event event = events.top();
    events.pop();
    const Message& message = set.messages[event.message];
    run.end_s = std::max(run.end_s, event.at);
    if (event.what == Event::What::ready) {
      run.ready_s[event.message] = event.at;
      double& free = free_s[message.connection];
      const bool join = message.bytes == 0;
      if (!join) free = std::max(free, event.at) + static_cast<double>(message.bytes) / rate;
      const double at = join ? event.at : free + latency;
      events.push({at, event.message, Event::What::arrived});
      events.push({at + (join ? 0 : latency), event.message, Event::What::acknowledged});
      continue;
    }
    if (event.what == Event::What::arrived) run.arrived_s[event.message] = event.at;
    const bool acknowledged = event.what == Event::What::acknowledged;
    for (const Dependent dependent : set.dependents_of(event.message))
      if ((dependent.when != 0) == acknowledged && --waits[dependent.message] == 0)
        make_ready(dependent.message, event.at);
  }
  return run;
}

// All of it ends, and every dependent is released where it starts.
void check_graph(const MessageSet& set, const Run& run) {
  for (std::uint32_t m = 0; m < set.size(); ++m) {
    REQUIRE(run.arrived_s[m] >= 0);
    const auto& here = set.connections[set.messages[m].connection];
    for (const Dependent dependent : set.dependents_of(m)) {
      const auto& next = set.connections[set.messages[dependent.message].connection];
      CHECK(next.src == (dependent.when == 0 ? here.dst : here.src));
    }
  }
}

using NodePair = std::pair<NodeId, NodeId>;

std::map<NodePair, double> bytes_of(const MessageSet& set) {
  std::map<NodePair, double> sums;
  for (std::uint32_t m = 0; m < set.size(); ++m) {
    const auto& connection = set.connections[set.messages[m].connection];
    if (connection.src != connection.dst)
      sums[{connection.src, connection.dst}] += static_cast<double>(set.messages[m].bytes);
  }
  return sums;
}

std::map<NodePair, double> bytes_of(const workload::Traffic& traffic) {
  std::map<NodePair, double> sums;
  const auto add = [&](const workload::Edge& edge) { sums[{edge.from, edge.to}] += edge.bytes; };
  for (const auto& stage : traffic.stages) {
    for (const auto& chain : stage.chains) std::ranges::for_each(chain.edges, add);
    std::ranges::for_each(stage.flows, add);
    for (const auto& exchange : stage.exchanges)
      exchange.for_each_message(
          [&](NodeId from, NodeId to, double bytes) { add({from, to, bytes}); });
  }
  return sums;
}

struct Case {
  Op op = Op::all_reduce;
  std::string algorithm = "ring";
  double bytes = 1e6;
  std::uint32_t channels = 1, window = 1;
  std::string routing = "{}";
  std::uint32_t iterations = 1;
  std::vector<Duration> late = {};
  Duration overhead = {};
};

struct Lowered {
  workload::Traffic traffic;
  MessageSet set;
  LoweredJob job;
  double counted = 0;
};

Lowered lower(const model::Fabric& fabric, std::uint32_t n, const Case& c) {
  workload::Request request{.op = c.op,
                            .algorithm = c.algorithm,
                            .ranks = {},
                            .bytes = c.bytes,
                            .channels = c.channels,
                            .window = c.window,
                            .matrix = {}};
  request.ranks.assign(fabric.gpus().begin(), fabric.gpus().begin() + n);
  auto traffic = workload::build_traffic(fabric, request);
  REQUIRE_MESSAGE(traffic.has_value(), (traffic ? "" : traffic.error().text()));
  Errors errors;
  const auto config = route::read_routing(*parse_yaml(c.routing, "test.yaml"), errors);
  REQUIRE(errors.empty());
  auto router = route::Router::create(fabric, config, 1);
  REQUIRE(router.has_value());
  Lowered out{.traffic = *traffic, .set = {}, .job = {}};
  MessageGraph graph;
  auto job = lower_collective({.traffic = out.traffic,
                               .ranks = request.ranks,
                               .step_overhead = c.overhead,
                               .late = c.late,
                               .iterations = c.iterations},
                              *router, graph);
  REQUIRE(job.has_value());
  out.job = *std::move(job);
  out.set = graph.take();
  out.counted = message_count(out.traffic, n, *router) * c.iterations;
  return out;
}

double end_of(const Lowered& lowered) {
  const Run run = execute(lowered.set);
  check_graph(lowered.set, run);
  return *std::ranges::max_element(run.arrived_s);
}

//   gpu - nic - rack switch - 2 spines     one GPU a host: a ring of n hosts
TEST_CASE("ring: 2 (n - 1) turns of a chunk and a latency") {
  for (const std::uint32_t n : {2u, 3u, 8u}) {
    CAPTURE(n);
    const model::Fabric fabric = hosts_of(n, 1);
    const double bytes = n * 1e6;
    CHECK(end_of(lower(fabric, n, {.bytes = bytes})) ==
          approx(2 * (n - 1) * (1e6 / rate + latency)));
    CHECK(end_of(lower(fabric, n, {.op = Op::all_gather, .bytes = bytes})) ==
          approx((n - 1) * (1e6 / rate + latency)));
    CHECK(end_of(lower(fabric, n, {.bytes = bytes, .overhead = 2_us})) ==
          approx(2 * (n - 1) * (1e6 / rate + latency + 2e-6)));
  }
}

TEST_CASE("a chunk that divides over QPs has arrived with its last part") {
  const model::Fabric fabric = hosts_of(4, 1);
  for (const int qps : {2, 4, 8, 16}) {
    const std::string routing = "{scheme: e_ecmp, qps: " + std::to_string(qps) + "}";
    const Lowered split = lower(fabric, 4, {.bytes = 4e6, .routing = routing});
    CHECK(end_of(split) == approx(6 * (1e6 / qps / rate + latency)));
    const Lowered turns = lower(fabric, 4,
                                {.bytes = 4e6,
                                 .routing = "{scheme: e_ecmp, message_mode: round_robin, qps: " +
                                            std::to_string(qps) + "}"});
    CHECK(end_of(turns) == approx(6 * (1e6 / rate + latency)));
    std::set<std::uint32_t> used;
    for (const auto& connection : turns.set.connections) used.insert(connection.qp);
    CHECK(used.size() == static_cast<std::size_t>(qps));
  }
}

TEST_CASE("one late rank delays a ring as a message-by-message run says") {
  const model::Fabric fabric = hosts_of(4, 1);
  const double chunk = 1e6 / rate + latency;
  // Nothing that comes late is needed before its turn: the ring's last chunk waits for all of it.
  const double end = end_of(lower(fabric, 4, {.bytes = 4e6, .late = {{}, {}, 100_us, {}}}));
  CHECK(end == approx(100e-6 + 6 * chunk));
}

TEST_CASE("exchange: rounds of one message, and no barrier") {
  const std::uint32_t n = 6;
  const model::Fabric fabric = hosts_of(n, 1);
  const double one = 1e6 / rate;
  const auto end = [&](std::uint32_t window) {
    return end_of(
        lower(fabric, n,
              {.op = Op::all_to_all, .algorithm = "pairwise", .bytes = n * 1e6, .window = window}));
  };
  // A round: the message, its acknowledgement, and the word of the next round.
  const double word = static_cast<double>(grant_bytes) / rate + latency;
  CHECK(end(1) == approx(5 * (one + latency) + 4 * (latency + word)));
  CHECK(end(5) == approx(one + latency));
  CHECK(end(1'000'000) == approx(one + latency));
  CHECK(end(2) < end(1));
  CHECK(end(2) > end(3));
}

TEST_CASE("a tree takes its pieces, and its depth for the first of them") {
  // One host is a chain of its GPUs: up n - 1 edges, and down again.
  const model::Fabric fabric = hosts_of(1, 4);
  const Lowered lowered = lower(fabric, 4, {.algorithm = "tree", .bytes = 64.0 * 131072});
  CHECK(end_of(lowered) == approx((64 + 5) * 131072 / rate + 6 * latency));
  const Lowered broadcast =
      lower(fabric, 4, {.op = Op::broadcast, .algorithm = "ring", .bytes = 64.0 * 131072});
  CHECK(end_of(broadcast) == approx((64 + 2) * 131072 / rate + 3 * latency));
}

TEST_CASE("switches that sum wait for all, and send to all") {
  const model::Fabric fabric = hosts_of(1, 8);
  const Lowered lowered = lower(fabric, 8, {.algorithm = "nvls", .bytes = 8 * 131072});
  const double whole = lowered.traffic.stages[0].chains[0].edges[0].bytes;
  const double pieces = std::ceil(whole / stream_piece_bytes);
  CHECK(end_of(lowered) == approx((pieces + 1) * whole / pieces / rate + 2 * latency));
}

TEST_CASE("all algorithms: local, complete, and every edge's bytes to the byte") {
  struct Row {
    const char* algorithm;
    Op op;
  };
  const Row rows[] = {{"ring", Op::all_reduce},
                      {"ring", Op::all_gather},
                      {"ring", Op::reduce_scatter},
                      {"ring", Op::broadcast},
                      {"tree", Op::all_reduce},
                      {"tree", Op::broadcast},
                      {"direct", Op::all_reduce},
                      {"direct", Op::send_recv},
                      {"flat", Op::all_gather},
                      {"flat", Op::broadcast},
                      {"halving_doubling", Op::all_reduce},
                      {"recursive_doubling", Op::all_gather},
                      {"hierarchical", Op::all_reduce},
                      {"pat", Op::all_gather},
                      {"sharp", Op::all_reduce},
                      {"nvls_tree", Op::all_reduce},
                      {"pairwise", Op::all_to_all}};
  const char* routings[] = {"{}", "{scheme: e_ecmp, qps: 4}",
                            "{scheme: e_ecmp, qps: 8, message_mode: round_robin}",
                            "{scheme: e_ecmp, qps: 8}"};
  const model::Fabric fabric = hosts_of(3, 4);
  std::size_t asked = 0;
  for (const Row& row : rows)
    for (const char* routing : routings)
      for (const std::uint32_t window : {1u, 3u, 11u}) {
        if (window != 1 && row.op != Op::all_to_all) continue;
        if (test_is_quick && asked++ % 5 != 0) continue;  // each routing has some
        CAPTURE(std::string(row.algorithm));
        CAPTURE(std::string(routing));
        CAPTURE(window);
        const double bytes = 12'345'678;
        const std::uint32_t n = 12;
        const Lowered lowered = lower(fabric, n,
                                      {.op = row.op,
                                       .algorithm = row.algorithm,
                                       .bytes = bytes,
                                       .channels = 4,
                                       .window = window,
                                       .routing = routing,
                                       .iterations = 2,
                                       .late = std::vector<Duration>(7, 3_us)});
        const Run run = execute(lowered.set);
        check_graph(lowered.set, run);
        CHECK(lowered.counted >= static_cast<double>(lowered.set.size()) - 1);
        CHECK(lowered.counted <= 2.1 * static_cast<double>(lowered.set.size()) + 100);
        auto sent = bytes_of(lowered.set);
        double grants = 0;  // of each rank
        if (row.op == Op::all_to_all)
          for (const auto& exchange : lowered.traffic.stages[0].exchanges)
            grants += exchange.round_count() - std::min(window, exchange.round_count());
        double granted = 0;
        for (const auto& [pair, wanted] : bytes_of(lowered.traffic)) {
          // Two iterations; every chain and flow between a pair rounds for itself.
          const double excess = sent[pair] - 2 * wanted;
          CHECK(excess > -40);
          CHECK(excess < 40 + 2 * static_cast<double>(grant_bytes));
          granted += excess;
        }
        CHECK(std::abs(granted - 2 * n * grants * static_cast<double>(grant_bytes)) <= 300);
      }
}

TEST_CASE("nobody starts a stage or an iteration before it has all of the last one") {
  const model::Fabric fabric = hosts_of(4, 2);
  for (const char* algorithm : {"halving_doubling", "hierarchical", "ring"}) {
    CAPTURE(algorithm);
    const std::uint32_t n = 8;
    std::vector<Duration> late(n);
    for (std::uint32_t r = 0; r < n; ++r) late[r] = Duration{std::int64_t{r} * 7'777'777};
    const Lowered lowered =
        lower(fabric, n, {.algorithm = algorithm, .channels = 2, .iterations = 3, .late = late});
    const Run run = execute(lowered.set);
    std::map<NodeId, double> has_all;  // of the parts before
    for (std::size_t p = 0; p < lowered.job.parts(); ++p) {
      std::map<NodeId, double> next = has_all;
      for (MessageId m = lowered.job.first[p]; m < lowered.job.first[p + 1]; ++m) {
        const auto& connection = lowered.set.connections[lowered.set.messages[m].connection];
        CHECK(run.ready_s[m] >= has_all[connection.src]);
        if (connection.src != connection.dst)
          next[connection.dst] = std::max(next[connection.dst], run.arrived_s[m]);
      }
      has_all = std::move(next);
    }
  }
}

TEST_CASE("a request of no bytes takes the overhead of its steps") {
  const model::Fabric fabric = hosts_of(4, 1);
  CHECK(end_of(lower(fabric, 4, {.bytes = 0, .overhead = 2_us})) == approx(6 * 2e-6));
  // Longer than one message can wait.
  CHECK(end_of(lower(fabric, 4, {.bytes = 0, .overhead = 2_s})) == approx(12));
}

TEST_CASE("every message has a byte at least") {
  const model::Fabric fabric = hosts_of(4, 1);
  const Lowered lowered = lower(fabric, 4, {.bytes = 3});
  CHECK(end_of(lowered) == approx(6 * (1 / rate + latency)));
}

}  // namespace
}  // namespace weft::engine::packet
