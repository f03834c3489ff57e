#include "engine/fluid/graph_run.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/test_approx.hpp"
#include "engine/fluid/job_run.hpp"
#include "model/fabric/faults.hpp"
#include "model/fabric/goback_n.hpp"
#include "model/formats/test_fabric.hpp"

namespace weft::engine::fluid {
namespace {

using model::CollectiveOp;
using model::Dimension;
using model::Operation;
using model::OpGraph;
using Kind = Operation::Kind;

constexpr double nic = 50e9;  // bytes/s of 400 Gb/s

// Four racks of one 1-GPU host each, so that every message crosses the fabric:
//   gpu:0 -- nic:0 -- rtsw:0 == ctsw:0, ctsw:1 == rtsw:k -- nic:k -- gpu:k
Fabric small_fabric(std::string_view latency = "0 s") {
  return model::testing::make_fabric(
      fmt::format("{{generator: ai_zone, racks: 4, hosts_per_rack: 1, gpus_per_host: 1, spines: 2, "
                  "latency: {}}}",
                  latency));
}

Operation compute(double seconds, std::uint8_t stream = 1) {
  return {.kind = Kind::compute, .stream = stream, .seconds = seconds};
}
Operation message(Kind kind, double bytes, std::uint32_t tag = 0) {
  return {.kind = kind, .dimension = Dimension::other, .tag = tag, .bytes = bytes};
}
Operation collective(CollectiveOp op, double bytes) {
  return {.kind = Kind::collective, .dimension = Dimension::dp, .collective = op, .bytes = bytes};
}

std::uint32_t add(model::Program& program, const Operation& operation,
                  std::initializer_list<std::uint32_t> after = {}) {
  return model::add_operation(program, operation, std::vector<std::uint32_t>(after));
}

// One rank and one program per actor; each pair of the two that talk is each other's only peer.
// Both are in the group, where there is one.
OpGraph pair_of(model::Program first, model::Program second,
                std::vector<model::RankGroup> groups = {}) {
  OpGraph graph;
  graph.labels = {"operation"};
  graph.programs = {std::move(first), std::move(second)};
  graph.actors = {{0, 0, 0}, {1, 1, 0}};
  graph.actor_ranks = {0, 1};
  graph.peers = {1, 0};
  graph.rank_count = 2;
  graph.groups = std::move(groups);
  if (!graph.groups.empty()) {
    graph.memberships = {0, 0};
    graph.actors[1].group_first = 1;
  }
  const Status status = graph.finish();
  REQUIRE_MESSAGE(status.has_value(), (status ? "" : status.error().text()));
  return graph;
}

// All ranks run one program; where it calls collectives, they form one group.
OpGraph group_of(const model::Program& program, std::uint32_t ranks) {
  OpGraph graph;
  graph.labels = {"operation"};
  graph.programs = {program};
  graph.rank_count = ranks;
  model::RankGroup group{.dimension = Dimension::dp, .actors = ranks};
  for (std::uint32_t r = 0; r < ranks; ++r) {
    graph.actors.push_back({0, 0, r});
    graph.actor_ranks.push_back(r);
    group.ranks.push_back(r);
  }
  if (std::ranges::any_of(program.operations,
                          [](const Operation& o) { return o.kind == Kind::collective; })) {
    graph.memberships.assign(ranks, 0);
    graph.groups.push_back(group);
  } else {
    for (model::Actor& actor : graph.actors) actor.group_first = 0;
  }
  const Status status = graph.finish();
  REQUIRE_MESSAGE(status.has_value(), (status ? "" : status.error().text()));
  return graph;
}

struct Setting {
  const Fabric& fabric;
  std::string_view faults = "[]";
  NetworkOptions options = {};
  double overlap_slowdown = 1;
  std::uint32_t iterations = 1;
};

// What the communication of the critical path waited for, all together.
double waited_s(const GraphResult::LinkWaits& waits) {
  double out = waits.latency_s + waits.library_s + waits.no_path_s + waits.folded_s;
  for (const auto& [link, seconds] : waits.links) out += seconds;
  return out;
}

JobRunResult run(const OpGraph& graph, const Setting& setting) {
  const auto section = parse_yaml(setting.faults, "faults.yaml");
  const auto timeline = model::read_faults(setting.fabric, *section);
  REQUIRE(timeline.has_value());
  auto router = route::Router::create(setting.fabric, {.scheme = "spray"}, 1);
  REQUIRE(router.has_value());
  GraphJob job{.name = "job", .graph = &graph};
  job.ranks.assign(setting.fabric.gpus().begin(), setting.fabric.gpus().begin() + graph.rank_count);
  job.iterations = setting.iterations;
  job.overlap_slowdown = setting.overlap_slowdown;
  Progress silent("", 1, Progress::Show::never);
  NetworkOptions options = setting.options;
  options.simulation.limits = options.contention == NetworkOptions::Contention::on;
  JobRunResult result = run_jobs({}, {&job, 1}, *router, timeline->snapshots, options, silent);
  const GraphResult& g = result.graphs[0];
  if (g.finished) {
    const double parts =
        g.compute_s + g.idle_s + std::accumulate(g.exposed_s.begin(), g.exposed_s.end(), 0.0);
    CHECK(parts == approx(g.iteration_s.back()).epsilon(1e-9));
    CHECK(g.critical.total_s() == approx(g.iteration_s.back()).epsilon(1e-9));
    CHECK(g.critical_links.has_value() == options.simulation.limits);
    if (g.critical_links)
      CHECK(waited_s(*g.critical_links) + g.critical.compute_s ==
            approx(g.critical.total_s()).epsilon(1e-9));
  }
  return result;
}

double step_s(const JobRunResult& result) {
  REQUIRE(result.graphs[0].finished);
  return result.graphs[0].iteration_s.back();
}

double exposed(const JobRunResult& result, Dimension dimension) {
  return result.graphs[0].exposed_s[static_cast<std::size_t>(dimension)];
}

// Both: compute 1 ms, then a collective of 50 MB through each NIC, 1 ms. Rank 0 computes 5 ms more
// and sends nothing but word of it; rank 1 goes on only then.
OpGraph exchange_then_wait() {
  model::Program first, second;
  const auto c = add(first, compute(1e-3));
  const auto x = add(first, collective(CollectiveOp::all_to_all, 100e6), {c});
  const auto more = add(first, compute(5e-3), {x});
  add(first, message(Kind::send, 0), {more});
  const auto own = add(second, compute(1e-3));
  const auto exchange = add(second, collective(CollectiveOp::all_to_all, 100e6), {own});
  const auto word = add(second, message(Kind::recv, 0));
  add(second, compute(2e-3), {exchange, word});
  return pair_of(first, second,
                 {{.dimension = Dimension::dp, .rows = 1, .ranks = {0, 1}, .actors = 2}});
}

// rank 0: compute 2 ms, send 50 MB; rank 1: recv, compute 3 ms.
OpGraph hand_over(double recv_after_s = 0) {
  model::Program first, second;
  const auto c = add(first, compute(2e-3));
  add(first, message(Kind::send, 50e6), {c});
  const auto busy = add(second, compute(recv_after_s, 2));
  const auto r = add(second, message(Kind::recv, 50e6), {busy});
  add(second, compute(3e-3), {r});
  return pair_of(first, second);
}

// Between racks of the zone.
double critical(const JobRunResult& result, Dimension dimension) {
  const auto& parts = result.graphs[0].critical.communication_s;
  return parts[static_cast<std::size_t>(dimension)]
              [static_cast<std::size_t>(model::Distance::zone)];
}

// Rank 0 computes 5 ms and is waited for by a collective of 1 ms; rank 1 computes 2 ms after it.
TEST_CASE("the critical path goes through whoever is waited for") {
  const Fabric fabric = small_fabric();
  model::Program first, second;
  const auto slow = add(first, compute(5e-3));
  add(first, collective(CollectiveOp::all_to_all, 100e6), {slow});
  const auto quick = add(second, compute(1e-3));
  const auto both = add(second, collective(CollectiveOp::all_to_all, 100e6), {quick});
  add(second, compute(2e-3), {both});
  const model::RankGroup group{.dimension = Dimension::dp, .ranks = {0, 1}, .actors = 2};
  const JobRunResult result = run(pair_of(first, second, {group}), {fabric});
  CHECK(step_s(result) == approx(8e-3));
  CHECK(result.graphs[0].critical.compute_s == approx(7e-3));
  CHECK(critical(result, Dimension::dp) == approx(1e-3));
}

double waited_s(const JobRunResult& result, const Fabric& fabric, std::string_view link) {
  for (const auto& [id, seconds] : result.graphs[0].critical_links->links)
    if (fabric.name(id) == link) return seconds;
  return 0;
}

// Rank 0 computes 2 ms and sends 50 MB, 1 ms of its NIC and of the receiver's; rank 1 computes 3 ms
// after it. Half of the message is sent when the receiver's link falls to a quarter: it alone holds
// up the rest, which takes 2 ms, and shares the first 0.5 ms with the sender's. Then the same with
// a link that is down for 1 ms, and latencies of 1 us on each of four cables.
TEST_CASE("the critical path knows the links that it waits for") {
  const Fabric fabric = small_fabric();
  const OpGraph graph = hand_over();
  const JobRunResult quarter =
      run(graph,
          {fabric, "[{kind: link_degraded, link: \"rtsw:1--nic:1\", factor: 0.25, at: 2.5 ms}]"});
  CHECK(step_s(quarter) == approx(7.5e-3));
  CHECK(waited_s(quarter, fabric, "rtsw:1->nic:1") == approx(2.25e-3));
  CHECK(waited_s(quarter, fabric, "nic:0->rtsw:0") == approx(0.25e-3));
  CHECK(quarter.graphs[0].critical_links->links.size() == 2);
  CHECK(quarter.graphs[0].critical_links->latency_s == approx(0).epsilon(1e-12));
  const Fabric far = small_fabric("1 us");
  const JobRunResult cut =
      run(graph, {far, "[{kind: link_down, link: \"rtsw:1--nic:1\", at: 2.5 ms, until: 3.5 ms}]"});
  const GraphResult::LinkWaits& waits = *cut.graphs[0].critical_links;
  CHECK(waits.no_path_s == approx(1e-3));
  CHECK(waits.latency_s == approx(4e-6));
  // What was in flight is sent again.
  CHECK(waited_s(cut, far, "rtsw:1->nic:1") == approx(0.5e-3 + 2e-6));
  CHECK(waited_s(cut, far, "nic:0->rtsw:0") == approx(0.5e-3 + 2e-6));
}

// An all-gather of 80 MB by four ranks moves 60 MB into and out of each NIC: at a tenth of the rate
// 12 ms, for which both directions of the slow NIC are waited for alike.
TEST_CASE("a collective on the critical path waits for its slowest links") {
  const Fabric fabric = small_fabric();
  model::Program program;
  add(program, collective(CollectiveOp::all_gather, 80e6));
  const JobRunResult result =
      run(group_of(program, 4), {fabric, "[{kind: nic_degraded, nic: nic:2, factor: 0.1}]"});
  CHECK(waited_s(result, fabric, "nic:2->rtsw:2") == approx(6e-3));
  CHECK(waited_s(result, fabric, "rtsw:2->nic:2") == approx(6e-3));
  CHECK(step_s(result) == approx(12e-3));
}

// A chain through four ranks: each computes 1 ms and passes 50 MB on, which takes 1 ms. For three
// of four, most of the step is idle; the path is 4 ms of compute and 3 ms of messages.
TEST_CASE("waiting for the messages of others is communication") {
  const Fabric fabric = small_fabric();
  OpGraph graph;
  graph.labels = {"operation"};
  graph.rank_count = 4;
  for (std::uint32_t r = 0; r < 4; ++r) {
    model::Program program;
    std::uint32_t before = 0;
    if (r > 0)
      before = add(program, {.kind = Kind::recv, .dimension = Dimension::pp, .bytes = nic * 1e-3});
    const auto work = r > 0 ? add(program, compute(1e-3), {before}) : add(program, compute(1e-3));
    const std::uint32_t next = r > 0 ? 1 : 0;
    if (r < 3)
      add(program,
          {.kind = Kind::send, .dimension = Dimension::pp, .slot = next, .bytes = nic * 1e-3},
          {work});
    graph.programs.push_back(program);
    graph.actors.push_back({r, static_cast<std::uint32_t>(graph.peers.size()), 0});
    graph.actor_ranks.push_back(r);
    if (r > 0) graph.peers.push_back(r - 1);
    if (r < 3) graph.peers.push_back(r + 1);
  }
  const Status status = graph.finish();
  REQUIRE_MESSAGE(status.has_value(), (status ? "" : status.error().text()));
  const JobRunResult result = run(graph, {fabric});
  CHECK(step_s(result) == approx(7e-3));
  CHECK(result.graphs[0].critical.compute_s == approx(4e-3));
  CHECK(critical(result, Dimension::pp) == approx(3e-3));
  CHECK(result.graphs[0].idle_s > 3e-3);
}

}  // namespace

TEST_CASE("a message between two computations: times add up, and each second has its place") {
  const Fabric fabric = small_fabric("1 us");
  const JobRunResult result = run(hand_over(), {fabric});
  // Two cables up, two down, and what the host adds.
  auto router = route::Router::create(fabric, {}, 1);
  const double latency = router->latency(fabric.gpus()[0], fabric.gpus()[1]).seconds();
  CHECK(step_s(result) == approx(2e-3 + 50e6 / nic + latency + 3e-3).epsilon(1e-12));
  // Rank 0 waits 4 ms at the end; rank 1 waits 2 ms for rank 0, then 1 ms for bytes. Rank 0's own
  // transfer is exposed too: it has nothing else to do.
  CHECK(result.graphs[0].compute_s == approx(2.5e-3));
  CHECK(exposed(result, Dimension::other) == approx(50e6 / nic + latency));
  REQUIRE(result.graphs[0].waits.size() == 1);
  CHECK(result.graphs[0].waits[0].rank == 0);
  CHECK(result.graphs[0].waits[0].seconds == approx(2e-3));
  const auto& bytes = result.graphs[0].bytes[static_cast<std::size_t>(Dimension::other)];
  CHECK(bytes[static_cast<std::size_t>(model::Distance::zone)] == 50e6);
}

TEST_CASE("one's own collective is exposed communication, though a later message is waited for") {
  const Fabric fabric = small_fabric();
  const JobRunResult result = run(exchange_then_wait(), {fabric});
  CHECK(step_s(result) == approx(1e-3 + 1e-3 + 5e-3 + 2e-3));
  CHECK(exposed(result, Dimension::dp) == approx(1e-3));  // of both ranks
  CHECK(result.graphs[0].compute_s == approx((1e-3 + 5e-3 + 1e-3 + 2e-3) / 2));
  // Rank 0 waits for the end, 2 ms, rank 1 for rank 0's second computation, 5 ms.
  CHECK(result.graphs[0].idle_s == approx((2e-3 + 5e-3) / 2));
}

TEST_CASE("a receiver that is late holds its sender back") {
  const Fabric fabric = small_fabric();
  CHECK(step_s(run(hand_over(5e-3), {fabric})) == approx(5e-3 + 1e-3 + 3e-3));
}

TEST_CASE("a collective of a graph takes as long as the same collective alone") {
  const Fabric fabric = small_fabric("1 us");
  for (const CollectiveOp op : {CollectiveOp::all_reduce, CollectiveOp::all_gather,
                                CollectiveOp::reduce_scatter, CollectiveOp::broadcast}) {
    model::Program program;
    add(program, collective(op, 64e6));
    const double in_graph = step_s(run(group_of(program, 4), {fabric}));
    auto traffic = workload::build_traffic(
        fabric, {.op = op, .ranks = {fabric.gpus().begin(), fabric.gpus().end()}, .bytes = 64e6});
    REQUIRE(traffic.has_value());
    Job job{.name = "alone", .traffic = *traffic};
    job.ranks.assign(fabric.gpus().begin(), fabric.gpus().end());
    auto router = route::Router::create(fabric, {.scheme = "spray"}, 1);
    Progress silent("", 1, Progress::Show::never);
    const auto alone = run_jobs({&job, 1}, {}, *router, {}, {}, silent);
    CAPTURE(static_cast<int>(op));
    CHECK(in_graph == approx(alone.jobs[0].iteration_s[0]).epsilon(1e-12));
  }
}

TEST_CASE("an AlltoAll moves (n - 1) / n of its bytes through every NIC") {
  const Fabric fabric = small_fabric();
  model::Program program;
  add(program, collective(CollectiveOp::all_to_all, 80e6));
  const JobRunResult result = run(group_of(program, 4), {fabric});
  CHECK(step_s(result) == approx(60e6 / nic));
}

TEST_CASE("the last to arrive starts a collective, and is the one that is waited for") {
  const Fabric fabric = small_fabric();
  model::Program program;
  const auto c = add(program, compute(1e-3));
  add(program, collective(CollectiveOp::all_gather, 80e6), {c});
  const OpGraph graph = group_of(program, 4);
  const double gather = 60e6 / nic;
  CHECK(step_s(run(graph, {fabric})) == approx(1e-3 + gather));
  const JobRunResult slow = run(graph, {fabric, "[{kind: gpu_slow, gpu: 2, factor: 1.3}]"});
  CHECK(step_s(slow) == approx(1.3e-3 + gather));
  REQUIRE(slow.graphs[0].waits.size() == 1);
  CHECK(slow.graphs[0].waits[0].rank == 2);
  CHECK(slow.graphs[0].waits[0].seconds == approx(3 * 0.3e-3));
}

TEST_CASE("folded communication is exposed, and no slow GPU stretches it") {
  const Fabric fabric = small_fabric();
  model::Program program;
  const auto c = add(program, compute(3e-3));
  program.folded.push_back({c, Dimension::tp, 1e-3});
  const OpGraph graph = group_of(program, 4);
  const JobRunResult healthy = run(graph, {fabric});
  CHECK(exposed(healthy, Dimension::tp) == approx(1e-3));
  CHECK(healthy.graphs[0].compute_s == approx(2e-3));
  CHECK(step_s(run(graph, {fabric, "[{kind: gpu_slow, gpu: 0, factor: 2}]"})) ==
        approx(1e-3 + 2 * 2e-3));
}

TEST_CASE("communication slows the compute beside it, for as long as it lasts") {
  const Fabric fabric = small_fabric();
  model::Program program;
  add(program, compute(4e-3));
  add(program, collective(CollectiveOp::all_gather, 80e6));  // 1.2 ms
  const OpGraph graph = group_of(program, 4);
  CHECK(step_s(run(graph, {fabric})) == approx(4e-3));
  // In 1.2 ms at 4/5 of the speed, 0.96 ms of work are done.
  CHECK(step_s(run(graph, {fabric, "[]", {}, 1.25})) == approx(1.2e-3 + (4e-3 - 0.96e-3)));
}

TEST_CASE("operations of one stream run one at a time, those of stream 0 at once") {
  const Fabric fabric = small_fabric();
  for (std::uint8_t stream = 0; stream < 3; ++stream) {
    model::Program program;
    for (int i = 0; i < 3; ++i) add(program, compute(1e-3, stream));
    const double expected = stream == 0 ? 1e-3 : 3e-3;
    CHECK(step_s(run(group_of(program, 2), {fabric})) == approx(expected));
  }
}

TEST_CASE("iterations repeat exactly; a change between them shows") {
  const Fabric fabric = small_fabric();
  const OpGraph graph = hand_over();
  const auto steps = run(graph, {fabric, "[]", {}, 1, 4}).graphs[0].iteration_s;
  REQUIRE(steps.size() == 4);
  for (const double s : steps) CHECK(s == approx(6e-3).epsilon(1e-12));
  const auto slowed =
      run(graph, {fabric, "[{kind: gpu_slow, gpu: 0, factor: 2, at: 7 ms}]", {}, 1, 4})
          .graphs[0]
          .iteration_s;
  REQUIRE(slowed.size() == 4);
  CHECK(slowed[1] == approx(6e-3));  // began before the change
  CHECK(slowed[2] == approx(8e-3));
}

TEST_CASE("graphs run until all of them are steady") {
  const Fabric fabric = small_fabric();
  const OpGraph graph = hand_over();
  std::vector<GraphJob> jobs(2, {.name = "a", .graph = &graph});
  jobs[0].ranks = {fabric.gpus()[0], fabric.gpus()[1]};
  jobs[1].ranks = {fabric.gpus()[2], fabric.gpus()[3]};
  for (GraphJob& job : jobs) {
    job.stop = GraphJob::Stop::steady;
    job.iterations = 20;
  }
  // The second one is slow until 40 ms: the first, long steady, goes on beside it.
  const auto section =
      parse_yaml("[{kind: gpu_slow, gpu: 2, factor: 3, until: 42 ms}]", "faults.yaml");
  const auto timeline = model::read_faults(fabric, *section);
  REQUIRE(timeline.has_value());
  auto router = route::Router::create(fabric, {.scheme = "spray"}, 1);
  Progress silent("", 1, Progress::Show::never);
  const auto result = run_jobs({}, jobs, *router, timeline->snapshots, {}, silent);
  for (const GraphResult& g : result.graphs) {
    REQUIRE(g.finished);
    CHECK(g.end_s > 50e-3);
    CHECK(g.iteration_s.size() < 20);
    CHECK(g.iteration_s.back() == approx(6e-3));
  }
  CHECK(result.graphs[1].iteration_s.front() == approx(10e-3));
}

TEST_CASE("a lossy cable costs what go-back-N repeats") {
  const Fabric fabric = small_fabric("5 us");
  const OpGraph graph = hand_over();
  const double healthy = step_s(run(graph, {fabric}));
  const JobRunResult lossy =
      run(graph, {fabric, "[{kind: link_lossy, link: nic:0--rtsw:0, loss: 0.001}]"});
  auto router = route::Router::create(fabric, {}, 1);
  const double window =
      nic * 2 * router->latency(fabric.gpus()[0], fabric.gpus()[1]).seconds() / 4096;
  const double share = model::goodput_share(0.001, window);
  CHECK(share < 0.9);
  CHECK(step_s(lossy) - healthy == approx(1e-3 * (1 / share - 1)).epsilon(1e-6));
}

TEST_CASE("without contention a transfer takes its own time, whatever else is under way") {
  const Fabric fabric = small_fabric("1 us");
  model::Program first, second;
  for (std::uint32_t tag = 0; tag < 3; ++tag) {
    add(first, message(Kind::send, 50e6, tag));
    add(second, message(Kind::recv, 50e6, tag));
  }
  const OpGraph graph = pair_of(first, second);
  NetworkOptions alone;
  alone.contention = NetworkOptions::Contention::off;
  auto router = route::Router::create(fabric, {}, 1);
  const double latency = router->latency(fabric.gpus()[0], fabric.gpus()[1]).seconds();
  CHECK(step_s(run(graph, {fabric})) == approx(3e-3 + latency));
  CHECK(step_s(run(graph, {fabric, "[]", alone})) == approx(1e-3 + latency));
}

TEST_CASE("what a dead NIC stops is named") {
  const Fabric fabric = small_fabric();
  const JobRunResult result = run(hand_over(), {fabric, "[{kind: nic_down, nic: nic:1}]"});
  CHECK_FALSE(result.graphs[0].finished);
  REQUIRE(result.unfinished.size() == 1);
  CHECK(result.unfinished[0].find("rank 0") != std::string::npos);
  CHECK(result.unfinished[0].find("no live path") != std::string::npos);
  CHECK(result.graphs[0].stuck.size() == 2);  // the send and the recv
  REQUIRE(result.graphs[0].standstill.has_value());
  CHECK(result.graphs[0].standstill->why == "gpu:0 has no live path to gpu:1 (other)");
  // It goes on where it stood when the NIC comes back.
  const JobRunResult back =
      run(hand_over(), {fabric, "[{kind: nic_down, nic: nic:1, until: 10 ms}]"});
  CHECK(step_s(back) == approx(10e-3 + 1e-3 + 3e-3));
}

TEST_CASE("a link that dies in mid-message: the rest takes the other spine") {
  const Fabric fabric = small_fabric();
  const JobRunResult result =
      run(hand_over(), {fabric, "[{kind: switch_down, switch: ctsw:0, at: 2.5 ms}]"});
  CHECK(step_s(result) == approx(6e-3));  // one spine is enough for one NIC
}

TEST_CASE("a degraded link is as busy as what is left of it, and the pair shown uses it") {
  const Fabric fabric = small_fabric();
  model::Program program;
  add(program, collective(CollectiveOp::all_gather, 80e6));
  const JobRunResult result =
      run(group_of(program, 4), {fabric, "[{kind: nic_degraded, nic: nic:2, factor: 0.1}]"});
  REQUIRE_FALSE(result.hot_links.empty());
  CHECK(result.hot_links[0].load == approx(1));
  CHECK(result.hot_links[0].link.find("nic:2") != std::string::npos);
  REQUIRE(result.hot_links[0].flows.size() == 1);
  const auto& flow = result.hot_links[0].flows[0];
  CHECK((flow.from == "gpu:2" || flow.to == "gpu:2"));
}

TEST_CASE("hot links name the flows on them") {
  const Fabric fabric = small_fabric();
  const JobRunResult result = run(hand_over(), {fabric});
  REQUIRE_FALSE(result.hot_links.empty());
  CHECK(result.hot_links[0].bytes == approx(50e6));
  CHECK(result.hot_links[0].load == approx(1e-3 / 6e-3));
  REQUIRE(result.hot_links[0].flows.size() == 1);
  CHECK(result.hot_links[0].flows[0].job == "job");
  CHECK(result.hot_links[0].flows[0].dimension == Dimension::other);
  CHECK(result.hot_links[0].flows[0].from == "gpu:0");
  CHECK(result.hot_links[0].flows[0].bytes == approx(50e6));
}

// Both calls go round the same ring, which is one route of the network.
TEST_CASE("what two calls send round one ring is told apart") {
  const Fabric fabric = small_fabric();
  model::Program program;
  add(program, collective(CollectiveOp::reduce_scatter, 80e6));
  model::Operation gather = collective(CollectiveOp::all_gather, 40e6);
  gather.slot = 1;
  add(program, gather);
  OpGraph graph;
  graph.labels = {"operation"};
  graph.programs = {program};
  graph.rank_count = 4;
  graph.groups.assign(2, {.ranks = {0, 1, 2, 3}, .actors = 4});
  graph.groups[0].dimension = Dimension::dp;
  graph.groups[1].dimension = Dimension::tp;
  for (std::uint32_t r = 0; r < 4; ++r) {
    graph.actors.push_back({0, 0, 2 * r});
    graph.actor_ranks.push_back(r);
    graph.memberships.insert(graph.memberships.end(), {0, 1});
  }
  REQUIRE(graph.finish().has_value());
  const JobRunResult result = run(graph, {fabric});
  REQUIRE_FALSE(result.hot_links.empty());
  for (const model::HotLink& link : result.hot_links) {
    CAPTURE(link.link);
    REQUIRE(link.flows.size() == 2);
    CHECK(link.flows[0].dimension == Dimension::dp);
    CHECK(link.flows[0].bytes == approx(2 * link.flows[1].bytes));
    CHECK(link.bytes == approx(3 * link.flows[1].bytes));
  }
}

}  // namespace weft::engine::fluid
