#include "workload/schedule/step_graph.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>

#include "base/rng.hpp"
#include "base/test_approx.hpp"
#include "base/test_effort.hpp"
#include "workload/schedule/pipeline.hpp"
#include "workload/schedule/test_executor.hpp"

namespace weft::workload {
namespace {

using model::CollectiveOp;
using model::CommWork;
using model::Dimension;
using model::Operation;
using model::OpGraph;
using model::StepCost;
using Actors = StepGraphOptions::Actors;
using Kind = Operation::Kind;
using Replicas = StepGraphOptions::Replicas;

// Every chunk takes 1 s forward and 2 s backward, and nothing else takes time.
StepCost uniform(std::uint32_t pp, std::uint32_t v, std::uint32_t m) {
  StepCost cost;
  cost.pp = pp;
  cost.virtual_stages = v;
  cost.microbatches = m;
  cost.chunks.resize(std::size_t{pp} * v);
  for (model::ChunkCost& chunk : cost.chunks) {
    chunk.forward.compute_s = 1;
    chunk.backward.compute_s = 2;
  }
  cost.optimizer_s.assign(pp, 0);
  return cost;
}

OpGraph built(const StepCost& cost, const StepGraphOptions& options = {}) {
  auto graph = build_step_graph(cost, options);
  if (!graph) FAIL(graph.error().text());
  return *std::move(graph);
}

test::IdealRun run(const OpGraph& graph, double rate = 1) {
  return test::IdealNetwork(graph, rate).run();
}

double seconds(const StepCost& cost, const StepGraphOptions& options = {}) {
  const test::IdealRun done = run(built(cost, options));
  CHECK(done.ended == done.total);
  return done.seconds;
}

std::vector<std::uint32_t> of_kind(const model::Program& program, Kind kind) {
  std::vector<std::uint32_t> found;
  for (std::uint32_t o = 0; o < program.operations.size(); ++o)
    if (program.operations[o].kind == kind) found.push_back(o);
  return found;
}
std::span<const std::uint32_t> after(const model::Program& program, std::uint32_t o) {
  const Operation& op = program.operations[o];
  return std::span(program.after).subspan(op.after_first, op.after_count);
}

TEST_CASE("pipelines end, idle as the closed form says, and send each activation once") {
  const std::uint32_t stride = test_is_quick ? 4 : 1;
  for (std::uint32_t pp = 1; pp <= 6; ++pp)
    for (std::uint32_t v = 1; v <= 4; ++v)
      for (std::uint32_t m = 1; m <= 13; m += stride) {
        CAPTURE(pp);
        CAPTURE(v);
        CAPTURE(m);
        StepCost cost = uniform(pp, v, m);
        const double work = 3.0 * v * m;
        REQUIRE(seconds(cost) / work - 1 == approx(pipeline_bubble({pp, v, m})));
        // With messages that take time, nothing blocks either.
        cost.activation_bytes = 7;
        const OpGraph graph = built(cost);
        const test::IdealRun done = run(graph);
        REQUIRE(done.ended == done.total);
        REQUIRE(done.seconds >= work);
        std::size_t sends = 0;
        for (const model::Program& program : graph.programs)
          for (const std::uint32_t o : of_kind(program, Kind::send)) {
            REQUIRE(program.operations[o].bytes == 7);
            ++sends;
          }
        REQUIRE(sends == (pp == 1 ? 0 : 2 * (std::size_t{pp} * v - 1) * m));
      }
}

//  stage 0: F0 > F1 > ...      A message of t seconds delays the other stage by t, both ways.
//            \    ^
//  stage 1:   F0 > B0
TEST_CASE("messages take their time") {
  StepCost cost = uniform(2, 1, 1);
  cost.activation_bytes = 10;
  CHECK(seconds(cost) == 1 + 10 + 1 + 2 + 10 + 2);
}

TEST_CASE("uneven chunks, such as 126 layers on 16 stages") {
  StepCost cost = uniform(16, 1, 16);
  for (std::size_t s = 0; s < 16; ++s) {
    const double layers = s == 0 || s == 15 ? 7 : 8;
    cost.chunks[s].forward.compute_s = layers;
    cost.chunks[s].backward.compute_s = 2 * layers;
  }
  // The critical path runs along stage 14: it idles while stage 15 takes 21 s for the first
  // micro-batch, but for a forward of 8 s, and for the last one, but for a backward of 16 s.
  const double stage_14 = 16 * 24 + (21 - 8) + (21 - 16);
  CHECK(seconds(cost) == 7 + 13 * 8 + stage_14 + 13 * 16 + 14);
}

TEST_CASE("the third message waits for the unit that frees its buffer") {
  const OpGraph graph = built(uniform(2, 1, 6));
  const model::Program& last = graph.programs[1];
  const auto recvs = of_kind(last, Kind::recv);
  REQUIRE(recvs.size() == 6);
  for (std::size_t k = 0; k < recvs.size(); ++k) {
    const auto waits = after(last, recvs[k]);
    if (k < 2) {
      CHECK(waits.empty());
      continue;
    }
    REQUIRE(waits.size() == 1);
    CHECK(last.operations[waits[0]].kind == Kind::compute);
    CHECK(graph.labels[last.operations[waits[0]].label] == "forward " + std::to_string(k - 2));
  }
}

// A unit computes for c and communicates for x, a share o of it beside the compute.
TEST_CASE("communication beside and behind the compute of a unit") {
  StepCost cost = uniform(1, 1, 1);
  cost.cp = 2;
  for (const double overlap : {0.0, 0.25, 1.0}) {
    for (const double bytes : {0.5, 8.0}) {
      cost.chunks[0].forward.comms = {{.dimension = Dimension::cp,
                                       .op = CollectiveOp::all_gather,
                                       .bytes = bytes / 4,
                                       .calls = 4,
                                       .overlap = overlap}};
      CHECK(seconds(cost) == std::max(1.0, overlap * bytes) + (1 - overlap) * bytes + 2);
    }
  }
}

TEST_CASE("calls alike are one collective, others follow each other") {
  StepCost cost = uniform(1, 1, 1);
  cost.cp = 2;
  cost.ep = 2;
  cost.chunks[0].forward.comms = {
      {.dimension = Dimension::cp, .op = CollectiveOp::all_gather, .bytes = 1, .calls = 2},
      {.dimension = Dimension::ep, .op = CollectiveOp::all_to_all, .bytes = 5},
      {.dimension = Dimension::cp, .op = CollectiveOp::reduce_scatter, .bytes = 3},
      {.dimension = Dimension::cp, .op = CollectiveOp::all_gather, .bytes = 4},
      {.dimension = Dimension::tp, .bytes = 9},  // of one rank
      {.dimension = Dimension::dp, .bytes = 0}};
  const OpGraph graph = built(cost);
  const model::Program& program = graph.programs[0];
  const auto calls = of_kind(program, Kind::collective);
  REQUIRE(calls.size() == 3);
  CHECK(program.operations[calls[0]].bytes == 6);
  CHECK(program.operations[calls[1]].dimension == Dimension::ep);
  CHECK(program.operations[calls[2]].collective == CollectiveOp::reduce_scatter);
  CHECK(run(graph).seconds == 1 + 6 + 5 + 3 + 2);
  CHECK(graph.groups.size() == 2);
}

TEST_CASE("communication folded into a unit") {
  StepCost cost = uniform(1, 1, 2);
  cost.chunks[0].backward.inner = {{Dimension::tp, 0.5}, {Dimension::cp, 0}, {Dimension::ep, 1}};
  const OpGraph graph = built(cost);
  CHECK(run(graph).seconds == 2 * (3 + 1.5));
  REQUIRE(graph.programs[0].folded.size() == 4);
  const model::Folded& folded = graph.programs[0].folded[3];
  CHECK(folded.dimension == Dimension::ep);
  CHECK(folded.seconds == 1);
  CHECK(graph.programs[0].operations[folded.operation].seconds == 3.5);
}

// Two chunks of one micro-batch on one stage, all gathers and reductions of 10 s; units of 1 and
// 2 s: gather 0 > gather 1 > F1 > B1 > reduce 1 > reduce 0; F0 and B0 hide behind.
TEST_CASE("gathers run ahead of their chunks, reductions beside later backwards") {
  StepCost cost = uniform(1, 2, 1);
  cost.dp = 2;
  for (model::ChunkCost& chunk : cost.chunks) {
    chunk.gather = {{.dimension = Dimension::dp, .op = CollectiveOp::all_gather, .bytes = 10}};
    chunk.reduce = {{.dimension = Dimension::dp, .op = CollectiveOp::reduce_scatter, .bytes = 10}};
  }
  cost.optimizer_s = {4};
  CHECK(seconds(cost) == 10 + 10 + 1 + 2 + 10 + 10 + 4);
  cost.gather = StepCost::Timing::serial;  // F0 no longer hides
  CHECK(seconds(cost) == 10 + 10 + 1 + 1 + 2 + 10 + 10 + 4);
  cost.reduce = StepCost::Timing::serial;  // nor does B0
  CHECK(seconds(cost) == 10 + 10 + 1 + 1 + 2 + 2 + 10 + 10 + 4);
  // Half of each beside its unit: F0 starts with half of gather 0, and half of reduce 1 with B1.
  cost.gather = cost.reduce = StepCost::Timing::overlapped;
  for (model::ChunkCost& chunk : cost.chunks) chunk.gather[0].overlap = 0.5;
  CHECK(seconds(cost) == 10 + 5 + 5 + 2 + 10 + 10 + 4);
  for (model::ChunkCost& chunk : cost.chunks) chunk.reduce[0].overlap = 0.5;
  CHECK(seconds(cost) == 10 + 5 + 5 + 5 + 5 + 10 + 4);
  // A chunk without parameters waits for no gather of others.
  cost = uniform(1, 2, 1);
  cost.dp = 2;
  cost.chunks[0].gather = {{.dimension = Dimension::dp, .bytes = 3}};
  CHECK(seconds(cost) == 3 + 6);
}

TEST_CASE("embeddings meet at the ends of the pipeline, the norm everywhere") {
  StepCost cost = uniform(3, 1, 3);
  cost.tp = 2;
  cost.cp = 2;
  cost.dp = 2;
  cost.embedding_bytes = 5;
  cost.norm_bytes = 1;
  cost.optimizer_s = {4, 6, 5};
  const OpGraph graph = built(cost);
  // Stage 2 ends two backwards before stage 0.
  CHECK(run(graph).seconds == 3 * 3 + 2 * 3 + 5 + 1 + 6);
  CHECK(graph.groups.size() == 4 + 1);
  const model::RankGroup& ends = graph.groups[0];
  CHECK(ends.dimension == Dimension::pp);
  CHECK(ends.rows == 2);
  CHECK(ends.ranks == std::vector<std::uint32_t>{0, 8, 1, 9});
  CHECK(ends.actors == 2);
  CHECK(graph.groups[4].ranks.size() == 24);
  CHECK(graph.groups[4].actors == 12);
  CHECK(seconds([&] {
          cost.embedding_bytes = cost.norm_bytes = 0;
          return cost;
        }()) == 3 * 3 + 2 * 3 + 4);
}

// TP 2, CP 2, PP 2, DP 2: ranks 0 to 15, actors of 2 ranks.
TEST_CASE("groups of tensor groups") {
  StepCost cost = uniform(2, 1, 2);
  cost.tp = cost.cp = cost.dp = 2;
  cost.ep = 4;
  const CommWork ep{.dimension = Dimension::ep, .op = CollectiveOp::all_to_all, .bytes = 1};
  const CommWork cp{.dimension = Dimension::cp, .bytes = 1};
  cost.chunks[0].forward.comms = {ep, cp};
  cost.chunks[0].reduce = {
      {.dimension = Dimension::dp, .bytes = 1, .members = CommWork::Members::replicas},
      {.dimension = Dimension::dp, .bytes = 1, .members = CommWork::Members::expert_data}};
  cost.chunks[1].reduce = {{.dimension = Dimension::dp, .bytes = 1}};
  OpGraph graph = built(cost);
  using Ranks = std::vector<std::uint32_t>;
  REQUIRE(graph.groups.size() == 2 + 2 + 2 + 1 + 2);  // dp of stage 1, all others of stage 0
  CHECK(graph.groups[0].ranks == Ranks{0, 2, 1, 3});
  CHECK(graph.groups[0].rows == 2);
  CHECK(graph.groups[2].ranks == Ranks{4, 12, 5, 13});
  CHECK(graph.groups[2].actors == 2);
  CHECK(graph.groups[4].ranks == Ranks{0, 1, 2, 3});
  CHECK(graph.groups[4].actors == 2);
  CHECK(graph.groups[6].ranks == Ranks{0, 2, 8, 10, 1, 3, 9, 11});
  CHECK(graph.groups[6].rows == 2);
  CHECK(graph.groups[6].actors == 4);
  CHECK(graph.groups[7].ranks == Ranks{0, 8, 1, 9});
  CHECK(graph.groups[7].rows == 2);

  graph = built(cost, {.replicas = Replicas::first});
  CHECK(graph.actors.size() == 4);
  CHECK(graph.rank_count == 16);
  const auto all =
      std::ranges::find(graph.groups, 8u, [](const auto& g) { return g.ranks.size(); });
  REQUIRE(all != graph.groups.end());
  CHECK(all->ranks == Ranks{0, 2, 8, 10, 1, 3, 9, 11});
  CHECK(all->actors == 2);

  graph = built(cost, {.actors = Actors::rank});
  CHECK(graph.actors.size() == 16);
  for (std::uint32_t a = 0; a < 16; ++a) CHECK(graph.ranks_of(a)[0] == a);
  CHECK(graph.groups[0].ranks == Ranks{0, 2});

  // Expert groups of 2 lie within an actor; those of 8 take all.
  cost.ep = 2;
  graph = built(cost);
  CHECK(graph.groups[4].ranks == Ranks{0, 1});
  CHECK(graph.groups[4].actors == 1);
  cost.ep = 8;
  CHECK(built(cost).groups[4].actors == 4);

  // Of 3 ranks on actors of 2: pairs of groups that share an actor wait together.
  cost.cp = 3;
  cost.ep = 3;
  graph = built(cost);
  const auto joined = std::ranges::find(graph.groups, Dimension::ep, &model::RankGroup::dimension);
  REQUIRE(joined != graph.groups.end());
  CHECK(joined->ranks == Ranks{0, 1, 2, 3, 4, 5});
  CHECK(joined->rows == 2);
  CHECK(joined->actors == 3);
}

// Replicas in ascending order of ranks, also where dp is the innermost axis.
TEST_CASE("other orders of ranks") {
  StepCost cost = uniform(1, 1, 1);
  cost.cp = cost.dp = 2;
  cost.order = {model::Axis::dp, model::Axis::tp, model::Axis::cp, model::Axis::pp};
  cost.chunks[0].reduce = {
      {.dimension = Dimension::dp, .bytes = 1, .members = CommWork::Members::replicas}};
  CHECK(built(cost).groups[0].ranks == std::vector<std::uint32_t>{0, 1, 2, 3});
}

TEST_CASE("labels are bounded by the units of one stage") {
  const OpGraph graph = built(uniform(4, 2, 8));
  CHECK(graph.labels.size() == 2 * 2 * 8 + 2 * 2 + 3);
  CHECK(graph.labels[0] == "forward 0 chunk 0");
  CHECK(graph.labels[31] == "backward 7 chunk 1");
  CHECK(built(uniform(4, 1, 8)).labels[15] == "backward 7");
  CHECK(graph.programs[3].role == "pp 3");
}

void check_fails(const StepCost& cost, Errc code, std::string_view text) {
  const auto graph = build_step_graph(cost, {});
  REQUIRE_FALSE(graph.has_value());
  CHECK(graph.error().code == code);
  CHECK_MESSAGE(graph.error().text().find(text) != std::string::npos, graph.error().text());
}

TEST_CASE("costs that contradict themselves") {
  const auto with = [](auto&& change) {
    StepCost cost = uniform(2, 2, 2);
    cost.tp = 2;
    change(cost);
    return cost;
  };
  const double infinity = std::numeric_limits<double>::infinity();
  using S = StepCost;
  check_fails(with([](S& c) { c.dp = 0; }), Errc::value, "size 0");
  check_fails(with([](S& c) { c.virtual_stages = 3; }), Errc::value, "4 chunks");
  check_fails(with([](S& c) { c.virtual_stages = 0, c.chunks.clear(); }), Errc::value, "without");
  check_fails(with([](S& c) { c.microbatches = 0; }), Errc::value, "without");
  check_fails(with([](S& c) { c.microbatches = UINT32_MAX; }), Errc::infeasible, "x 2 passes");
  check_fails(with([](S& c) { c.dp = c.cp = UINT32_MAX; }), Errc::infeasible, "TP 2 x CP");
  check_fails(with([](S& c) { c.ep = 4; }), Errc::value, "EP 4 does not divide");
  check_fails(with([](S& c) { c.order[0] = model::Axis::dp; }), Errc::value, "lists an axis twice");
  check_fails(with([](S& c) { c.optimizer_s.pop_back(); }), Errc::value, "optimizer");
  check_fails(with([](S& c) { c.optimizer_s[0] = -1; }), Errc::value, "optimizer");
  check_fails(with([&](S& c) { c.activation_bytes = infinity; }), Errc::value, "inf bytes");
  check_fails(with([](S& c) { c.chunks[3].backward.compute_s = -1; }), Errc::value, "-1 s");
  check_fails(with([](S& c) { c.chunks[0].forward.inner = {{Dimension::tp, -2}}; }), Errc::value,
              "-2 s");
  const auto with_work = [&](const CommWork& work) {
    return with([&](S& c) { c.chunks[1].gather = {work}; });
  };
  check_fails(with_work({.overlap = 1.5}), Errc::value, "1.5");
  check_fails(with_work({.bytes = -1}), Errc::value, "-1 bytes");
  check_fails(with_work({.dimension = Dimension::pp}), Errc::value, "not pp");
  check_fails(with_work({.members = CommWork::Members::expert_data}), Errc::value, "not tp");
  check_fails(with_work({.dimension = Dimension::tp, .bytes = 1}), Errc::unsupported, "fold");
  check_fails(with([](S& c) {
                c.cp = 2;
                c.chunks[1].gather = {{.dimension = Dimension::cp, .bytes = 1e308, .calls = 9}};
              }),
              Errc::value, "finite");
}

class RandomCost {
 public:
  explicit RandomCost(std::uint64_t seed) : rng_(Rng(seed).stream("step")) {}

  StepCost make() {
    StepCost cost = uniform(upto(5), upto(3), upto(9));
    cost.tp = upto(3);
    cost.cp = upto(3);
    cost.dp = upto(3);
    const std::uint32_t ranks = cost.tp * cost.cp * cost.dp;
    do cost.ep = upto(ranks);
    while (ranks % cost.ep != 0);
    rng_.shuffle(std::span<model::Axis>(cost.order));
    for (model::ChunkCost& chunk : cost.chunks) {
      chunk.forward = unit();
      chunk.backward = unit();
      chunk.gather = works({Dimension::dp});
      chunk.reduce = works({Dimension::dp});
    }
    for (double& s : cost.optimizer_s) s = rng_.uniform();
    cost.activation_bytes = upto(3) - 1;
    cost.embedding_bytes = upto(2) - 1;
    cost.norm_bytes = upto(2) - 1;
    if (upto(2) == 1) cost.gather = StepCost::Timing::serial;
    if (upto(2) == 1) cost.reduce = StepCost::Timing::serial;
    return cost;
  }

 private:
  std::uint32_t upto(std::uint32_t n) { return 1 + static_cast<std::uint32_t>(rng_.below(n)); }

  std::vector<CommWork> works(std::vector<Dimension> dimensions) {
    std::vector<CommWork> works(upto(4) - 1);
    for (CommWork& work : works) {
      work.dimension = dimensions[rng_.below(dimensions.size())];
      work.op = upto(2) == 1 ? CollectiveOp::all_gather : CollectiveOp::all_to_all;
      work.bytes = rng_.uniform();
      work.calls = upto(3) - 1;
      work.overlap = upto(2) == 1 ? rng_.uniform() : upto(2) - 1;
      if (work.dimension == Dimension::dp)
        work.members = static_cast<CommWork::Members>(upto(3) - 1);
    }
    return works;
  }

  model::UnitCost unit() {
    return {rng_.uniform(),
            works({Dimension::cp, Dimension::ep, Dimension::dp}),
            {{Dimension::tp, rng_.uniform()}}};
  }

  Rng rng_;
};

// The ideal network treats all replicas and ranks alike, so leaving some out changes nothing.
TEST_CASE("random steps end, take as long as their compute, and the same in every form") {
  for (std::uint64_t seed = 0; seed < test_effort(1000); ++seed) {
    CAPTURE(seed);
    const StepCost cost = RandomCost(seed).make();
    const OpGraph graph = built(cost);
    const test::IdealRun done = run(graph);
    REQUIRE(done.ended == done.total);
    for (const model::Program& program : graph.programs) {
      double compute = 0;
      for (const Operation& op : program.operations) compute += op.seconds;
      REQUIRE(done.seconds >= compute * (1 - 1e-12));
    }
    for (const StepGraphOptions options :
         {StepGraphOptions{.replicas = Replicas::first}, StepGraphOptions{.actors = Actors::rank},
          StepGraphOptions{.actors = Actors::rank, .replicas = Replicas::first}})
      REQUIRE(seconds(cost, options) == approx(done.seconds).epsilon(1e-12));
  }
}

TEST_CASE("all bytes of a step are in its graph") {
  const auto bytes_of = [](const std::vector<CommWork>& works, Dimension dimension) {
    double bytes = 0;
    for (const CommWork& work : works)
      if (work.dimension == dimension) bytes += work.bytes * work.calls;
    return bytes;
  };
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const StepCost cost = RandomCost(seed).make();
    const OpGraph graph = built(cost);
    for (std::uint32_t s = 0; s < cost.pp; ++s) {
      double cp = 0, ep = 0;
      for (std::uint32_t v = 0; v < cost.virtual_stages; ++v)
        for (const auto* unit : {&cost.chunk(s, v).forward, &cost.chunk(s, v).backward}) {
          cp += cost.cp == 1 ? 0 : cost.microbatches * bytes_of(unit->comms, Dimension::cp);
          ep += cost.ep == 1 ? 0 : cost.microbatches * bytes_of(unit->comms, Dimension::ep);
        }
      for (const Operation& op : graph.programs[s].operations) {
        if (op.kind != Kind::collective) continue;
        cp -= op.dimension == Dimension::cp ? op.bytes : 0;
        ep -= op.dimension == Dimension::ep ? op.bytes : 0;
      }
      REQUIRE(std::abs(cp) < 1e-9);
      REQUIRE(std::abs(ep) < 1e-9);
    }
  }
}

}  // namespace
}  // namespace weft::workload
