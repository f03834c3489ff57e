#include "engine/packet_jobs/estimate.hpp"

#include <doctest/doctest.h>

#include <numeric>

#include "base/config.hpp"
#include "base/test_approx.hpp"
#include "engine/packet_jobs/run.hpp"
#include "model/fabric/faults.hpp"
#include "model/formats/test_fabric.hpp"

namespace weft::engine::packet {
namespace {

using model::Operation;
using workload::Op;

constexpr std::uint32_t hosts = 8;

model::Fabric lone_hosts() {
  return model::testing::make_fabric(
      "{generator: ai_zone, racks: 8, hosts_per_rack: 1, gpus_per_host: 1, spines: 4}");
}

Job job_of(const model::Fabric& fabric, Op op, const std::string& algorithm, double bytes) {
  workload::Request request{.op = op, .algorithm = algorithm, .bytes = bytes, .channels = 1};
  request.ranks.assign(fabric.gpus().begin(), fabric.gpus().end());
  auto traffic = workload::build_traffic(fabric, request);
  REQUIRE_MESSAGE(traffic.has_value(), (traffic ? "" : traffic.error().text()));
  Job job{.name = algorithm, .traffic = *std::move(traffic), .ranks = request.ranks};
  job.iterations = 2;
  job.start = Time{} + 1000_us;
  return job;
}

PacketEngine engine_with(double share) {
  PacketEngine engine;
  engine.options.pfc.on = true;
  engine.estimate = share;
  return engine;
}

Result<RunResult> run(const model::Fabric& fabric, const Work& work, const PacketEngine& engine,
                      std::span<const StateChange> changes = {}) {
  auto router = route::Router::create(fabric, {}, 1);
  REQUIRE(router.has_value());
  return engine.run(work, *router, changes, {});
}

double sum(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

TEST_CASE("estimate: what grows with the bytes comes out, what comes once does too") {
  const auto part = [](double share, double bend) {
    RunResult run;
    run.jobs.push_back({.iteration_s = {2e-3 + share, 3e-3 + 2 * share},
                        .stages = {{"ring", 0, 1e-3, 2e-3 + share + bend}},
                        .roofline_s = 0.9,
                        .end_s = 5e-3 + 3 * share,
                        .finished = true});
    run.graphs.push_back(
        {.iteration_s = {share + bend * share * share}, .finished = true, .idle_s = share / 4});
    run.link_bytes = {0, 100 + 1e9 * share};
    run.makespan_s = 5e-3 + 3 * share;
    return run;
  };
  const auto whole = [&](double bend) {
    return extrapolate(
        {.share = 0.25, .runs = {part(0.25, bend), part(0.125, bend), part(0.0625, bend)}});
  };
  const RunResult straight = whole(0);
  CHECK(straight.jobs[0].iteration_s[0] == approx(1.002));
  CHECK(straight.jobs[0].iteration_s[1] == approx(2.003));
  CHECK(straight.jobs[0].stages[0].end_s == approx(1.002));
  CHECK(straight.jobs[0].stages[0].start_s == approx(1e-3));
  CHECK(straight.jobs[0].end_s == approx(3.005));
  CHECK(straight.jobs[0].roofline_s == 0.9);
  CHECK(straight.graphs[0].idle_s == approx(0.25));
  CHECK(straight.link_bytes[0] == 0);
  CHECK(straight.link_bytes[1] == approx(1e9 + 100));
  CHECK(straight.estimate.value().spread < 1e-9);
  // Below the roofline it cannot be.
  RunResult low = part(0.25, 0), half = part(0.125, 0);
  low.jobs[0].roofline_s = 1.5;
  const RunResult raised = extrapolate({.share = 0.25, .runs = {low, half, part(0.0625, 0)}});
  CHECK(raised.jobs[0].iteration_s[0] == approx(1.5));
  CHECK(raised.jobs[0].end_s == approx(3.005 + 1.5 - 1.002));
  CHECK(raised.makespan_s == raised.jobs[0].end_s);
  // A curve: 1 + 1 as a whole; through the larger two 1.34375, through the smaller two 1.1796875.
  const RunResult bent = whole(1);
  CHECK(bent.graphs[0].iteration_s[0] == approx(1.34375));
  CHECK(bent.estimate->spread == approx(0.1640625 / 1.34375));
}

TEST_CASE("estimate: a part has the turns of its bytes, and its algorithm") {
  const model::Fabric fabric = lone_hosts();
  const Job ring = job_of(fabric, Op::all_reduce, "ring", 8e6);
  const Job part = scaled(0.5, ring);
  CHECK(ring.traffic.stages.at(0).chains.at(0).steps == 14);
  CHECK(part.traffic.stages.at(0).chains.at(0).steps == 7);
  CHECK(part.traffic.stages[0].chains[0].edges[0].bytes ==
        approx(ring.traffic.stages[0].chains[0].edges[0].bytes / 2));
  CHECK(part.start == Time{} + 500_us);
  CHECK(scaled(0.01, ring).traffic.stages[0].chains[0].steps == 1);
}

// On cables of their own, and by exchanges and trees, whose parts have smaller messages.
TEST_CASE("estimate: collectives take what the whole run takes") {
  const model::Fabric fabric = lone_hosts();
  const struct {
    Op op;
    std::string algorithm;
    double tolerance;
  } kinds[] = {{Op::all_reduce, "ring", 0.01},
               {Op::all_gather, "ring", 0.01},
               {Op::all_reduce, "tree", 0.03},
               {Op::all_to_all, "pairwise", 0.03}};
  for (const auto& kind : kinds) {
    CAPTURE(kind.algorithm);
    const Job job = job_of(fabric, kind.op, kind.algorithm, 64e6);
    const auto whole = run(fabric, {{&job, 1}, {}}, engine_with(1));
    const auto estimate = run(fabric, {{&job, 1}, {}}, engine_with(0.25));
    REQUIRE_MESSAGE(estimate.has_value(), (estimate ? "" : estimate.error().text()));
    CHECK(estimate->jobs.at(0).finished);
    for (std::size_t i = 0; i < job.iterations; ++i)
      CHECK(estimate->jobs[0].iteration_s.at(i) ==
            approx(whole->jobs.at(0).iteration_s.at(i)).epsilon(kind.tolerance));
    CHECK(estimate->jobs[0].end_s == approx(whole->jobs[0].end_s).epsilon(kind.tolerance));
    CHECK(estimate->jobs[0].roofline_s == whole->jobs[0].roofline_s);
    CHECK(estimate->jobs[0].stages.size() == whole->jobs[0].stages.size());
    CHECK(sum(estimate->link_bytes) == approx(sum(whole->link_bytes)).epsilon(kind.tolerance));
    CHECK(estimate->packet->hops < whole->packet->hops / 3);
    CHECK(!whole->estimate);
    CHECK(estimate->estimate->share == 0.25);
    CHECK(estimate->estimate->spread < 0.05);
    CHECK(estimate->notes.front().text.find("25 %, 12.5 % and 6.25 %") != std::string::npos);
  }
}

// Six layers: compute, hidden or not, and an all-gather beside the next one's.
TEST_CASE("estimate: a step's compute is exact, and its parts add up") {
  const model::Fabric fabric = lone_hosts();
  model::OpGraph graph;
  graph.rank_count = hosts;
  graph.label("op");
  graph.programs.emplace_back();
  model::RankGroup all{.dimension = model::Dimension::dp, .rows = 1, .ranks = {}, .actors = hosts};
  std::uint32_t gathered = 0;
  for (std::uint32_t layer = 0; layer < 6; ++layer) {
    const Operation compute{.stream = 1, .seconds = layer % 2 == 0 ? 2e-3 : 100e-6};
    const std::uint32_t computed =
        model::add_operation(graph.programs[0], compute,
                             layer == 0 ? std::span<std::uint32_t>() : std::span(&gathered, 1));
    gathered = model::add_operation(graph.programs[0],
                                    {.kind = Operation::Kind::collective,
                                     .dimension = model::Dimension::dp,
                                     .collective = model::CollectiveOp::all_gather,
                                     .stream = 2,
                                     .bytes = 32e6},
                                    {&computed, 1});
  }
  for (std::uint32_t a = 0; a < hosts; ++a) {
    graph.actors.push_back({0, 0, a});
    graph.actor_ranks.push_back(a);
    graph.memberships.push_back(0);
    all.ranks.push_back(a);
  }
  graph.groups.push_back(all);
  const Status finished = graph.finish();
  REQUIRE_MESSAGE(finished.has_value(), (finished ? "" : finished.error().text()));
  GraphJob job{.name = "g", .graph = &graph};
  job.ranks.assign(fabric.gpus().begin(), fabric.gpus().end());
  const auto whole = run(fabric, {{}, {&job, 1}}, engine_with(1));
  const auto estimate = run(fabric, {{}, {&job, 1}}, engine_with(0.25));
  REQUIRE_MESSAGE(estimate.has_value(), (estimate ? "" : estimate.error().text()));
  const GraphResult &a = whole->graphs.at(0), &b = estimate->graphs.at(0);
  CHECK(b.iteration_s.at(0) == approx(a.iteration_s.at(0)).epsilon(0.01));
  CHECK(b.compute_s == approx(6.3e-3).epsilon(1e-6));
  CHECK(b.compute_s + b.idle_s + sum(b.exposed_s) == approx(b.iteration_s[0]).epsilon(1e-9));
  CHECK(b.bytes == a.bytes);
  CHECK(b.spans.size() == a.spans.size());
  CHECK(estimate->hot_links.size() == whole->hot_links.size());
  CHECK(estimate->hot_links.at(0).load == approx(whole->hot_links.at(0).load).epsilon(0.02));
}

TEST_CASE("estimate: short parts are warned of, and what does not end remains so") {
  const model::Fabric fabric = lone_hosts();
  const Job job = job_of(fabric, Op::all_reduce, "ring", 1e6);
  const auto shortened = run(fabric, {{&job, 1}, {}}, engine_with(0.1));
  REQUIRE(shortened.has_value());
  CHECK(shortened->notes.at(1).severity == model::Note::Severity::warning);
  CHECK(shortened->notes.at(1).text.find("a larger engine.estimate") != std::string::npos);
  auto yaml = parse_yaml("[{kind: nic_down, nic: 'nic:3'}]", "test.yaml");
  REQUIRE(yaml.has_value());
  const auto timeline = model::read_faults(fabric, *yaml);
  REQUIRE_MESSAGE(timeline.has_value(), (timeline ? "" : timeline.error().text()));
  const StateChange dead{Time{}, timeline->initial()};
  const auto stalled = run(fabric, {{&job, 1}, {}}, engine_with(0.1), {&dead, 1});
  REQUIRE(stalled.has_value());
  CHECK(!stalled->jobs.at(0).finished);
  CHECK(stalled->jobs[0].standstill.value().why.find("no live path") != std::string::npos);
  CHECK(stalled->unfinished.at(0).starts_with("job ring, iteration 1"));
  CHECK(stalled->notes.at(1).text.find("not everything ends") != std::string::npos);
}

}  // namespace
}  // namespace weft::engine::packet
