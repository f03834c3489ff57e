#include "workload/parallel/step_cost.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "base/test_approx.hpp"
#include "workload/parallel/estimate.hpp"
#include "workload/parallel/test_kit.hpp"

namespace weft::workload {
namespace {

using model::CollectiveOp;
using model::CommWork;
using model::Dimension;
using model::StepCost;
using testing::h100;
using testing::preset;

StepCost cost_of(const TransformerSpec& spec, const TrainingPlan& plan) {
  auto cost = step_cost(spec, plan, h100());
  if (!cost) FAIL(cost.error().text());
  return *std::move(cost);
}

double bytes(const std::vector<CommWork>& list, Dimension dimension, CollectiveOp op) {
  double sum = 0;
  for (const CommWork& work : list)
    if (work.dimension == dimension && work.op == op) sum += work.calls * work.bytes;
  return sum;
}

const TrainingPlan llama_plan{
    .tp = 8, .pp = 16, .vp = 8, .dp = 128, .batch = 2048, .sequence = 8192};

// Derived: a layer has 3.19e9 parameters, 0.80 GB in bf16 and 1.59 GB of FP32 gradients on 8 ranks;
// a stage sends 8,192 x 16,384 x 2 / 8 = 33.5 MB a GPU; a collective has 268 MB.
TEST_CASE("traffic of Llama 3 405B") {
  const StepCost cost = cost_of(preset("llama3-405b"), llama_plan);
  CHECK(cost.activation_bytes == 8192.0 * 16384 * 2 / 8);
  CHECK(cost.microbatches == 16);
  CHECK(cost.virtual_stages == 8);
  REQUIRE(cost.chunks.size() == 128);
  const model::ChunkCost& chunk = cost.chunk(3, 4);  // one layer
  CHECK(bytes(chunk.gather, Dimension::dp, CollectiveOp::all_gather) ==
        approx(0.797e9).epsilon(0.002));
  CHECK(bytes(chunk.reduce, Dimension::dp, CollectiveOp::reduce_scatter) ==
        approx(1.594e9).epsilon(0.002));
  REQUIRE(chunk.forward.comms.size() == 2);
  CHECK(chunk.forward.comms[0].bytes == 8192.0 * 16384 * 2);
  CHECK(chunk.forward.comms[0].calls == 2);
  CHECK(bytes(chunk.backward.comms, Dimension::tp, CollectiveOp::all_gather) ==
        4 * chunk.forward.comms[0].bytes);
  CHECK(cost.embedding_bytes == 0);
  CHECK(cost.optimizer_s.size() == 16);
}

TEST_CASE("the first chunk embeds, the last one has the head") {
  const StepCost cost = cost_of(preset("llama3-405b"), llama_plan);
  const model::ChunkCost& first = cost.chunk(0, 0);
  const model::ChunkCost& last = cost.chunk(15, 7);
  const double whole = 8192.0 * 16384 * 2;
  CHECK(bytes(first.forward.comms, Dimension::tp, CollectiveOp::reduce_scatter) == whole);
  CHECK(bytes(first.forward.comms, Dimension::tp, CollectiveOp::all_gather) == 0);
  CHECK(bytes(last.forward.comms, Dimension::tp, CollectiveOp::all_gather) == whole);
  CHECK(bytes(last.forward.comms, Dimension::tp, CollectiveOp::reduce_scatter) == 0);
  CHECK(last.forward.compute_s > first.forward.compute_s);
}

TEST_CASE("each ZeRO stage has its collectives in their place") {
  const TransformerSpec spec = preset("llama3-8b");
  TrainingPlan plan{.tp = 2, .pp = 2, .dp = 8, .batch = 32, .sequence = 8192};
  const auto chunk = [&](ZeroStage zero) {
    plan.zero = zero;
    return cost_of(spec, plan).chunk(0, 0);
  };
  const double held = 4 *
                      bytes(chunk(ZeroStage::optimizer).gather, Dimension::dp,
                            CollectiveOp::all_gather) /
                      2;  // 4 B of each parameter
  const model::ChunkCost none = chunk(ZeroStage::none);
  CHECK(none.gather.empty());
  CHECK(bytes(none.reduce, Dimension::dp, CollectiveOp::all_reduce) == approx(held));
  const model::ChunkCost optimizer = chunk(ZeroStage::optimizer);
  CHECK(bytes(optimizer.reduce, Dimension::dp, CollectiveOp::reduce_scatter) == approx(held));
  const model::ChunkCost gradients = chunk(ZeroStage::gradients);
  CHECK(gradients.reduce.empty());
  CHECK(bytes(gradients.gather, Dimension::dp, CollectiveOp::all_gather) == approx(held / 2));
  CHECK(bytes(gradients.backward.comms, Dimension::dp, CollectiveOp::reduce_scatter) ==
        approx(held));
  const model::ChunkCost parameters = chunk(ZeroStage::parameters);
  CHECK(parameters.gather.empty());
  CHECK(bytes(parameters.forward.comms, Dimension::dp, CollectiveOp::all_gather) ==
        approx(held / 2));
  CHECK(bytes(parameters.backward.comms, Dimension::dp, CollectiveOp::all_gather) ==
        approx(held / 2));
  // fp8: one byte of a parameter, two of a gradient.
  plan.precision = Precision::fp8;
  CHECK(bytes(chunk(ZeroStage::optimizer).gather, Dimension::dp, CollectiveOp::all_gather) ==
        approx(held / 4));
  CHECK(bytes(chunk(ZeroStage::optimizer).reduce, Dimension::dp, CollectiveOp::reduce_scatter) ==
        approx(held / 2));
}

// 1 / 2 of the layers on a stage; cp does not cut parameters. One group of CP DP ranks, as for
// DP 32.
TEST_CASE("gradients and parameters move among all replicas, along dp and cp together") {
  const TransformerSpec spec = preset("llama3-8b");
  TrainingPlan plan{.cp = 4, .pp = 2, .dp = 8, .batch = 32, .sequence = 8192};
  const TrainingPlan flat{.pp = 2, .dp = 32, .batch = 64, .sequence = 2048};
  for (const ZeroStage zero : {ZeroStage::none, ZeroStage::optimizer}) {
    plan.zero = zero;
    const model::ChunkCost chunk = cost_of(spec, plan).chunk(0, 0);
    REQUIRE(chunk.reduce.size() == 1);
    CHECK(chunk.reduce[0].members == CommWork::Members::replicas);
    CHECK(chunk.reduce[0].dimension == Dimension::dp);
    CHECK(chunk.reduce[0].bytes == cost_of(spec, flat).chunk(0, 0).reduce.at(0).bytes);
    CHECK(chunk.gather.size() == (zero == ZeroStage::none ? 0 : 1));
  }
  // A plan with cp alone has them, too.
  const TrainingPlan no_dp{.tp = 2, .cp = 4, .batch = 8, .sequence = 8192};
  CHECK(cost_of(spec, no_dp).chunk(0, 1).reduce.size() == 1);
  // Keys and values of 8 heads of 128 for the whole sequence.
  const auto forward = cost_of(spec, plan).chunk(0, 0).forward.comms;
  CHECK(bytes(forward, Dimension::cp, CollectiveOp::all_gather) == 16 * 2.0 * 8192 * 2 * 8 * 128);
}

TEST_CASE("experts are exchanged, and reduced among those who hold the same") {
  const TransformerSpec spec = preset("qwen3-235b-a22b");
  TrainingPlan plan{.tp = 2,
                    .pp = 8,
                    .vp = 4,
                    .dp = 16,
                    .ep = 32,
                    .batch = 2048,
                    .sequence = 4096,
                    .precision = Precision::fp8};
  const StepCost cost = cost_of(spec, plan);
  const model::ChunkCost& chunk = cost.chunk(2, 1);  // three layers
  // Each rank's half of 4,096 tokens goes out in 8 copies of 4,096 x 2 B, and comes back.
  CHECK(bytes(chunk.forward.comms, Dimension::ep, CollectiveOp::all_to_all) ==
        3 * 2 * 2048.0 * 8 * 4096 * 2);
  CHECK(bytes(chunk.backward.comms, Dimension::ep, CollectiveOp::all_to_all) ==
        3 * 2 * 2048.0 * 8 * 4096 * 2);
  const auto experts = [](const model::ChunkCost& of) {
    double sum = 0;
    for (const CommWork& work : of.reduce)
      if (work.members == CommWork::Members::expert_data) sum += work.bytes;
    return sum;
  };
  CHECK(experts(chunk) == 0);  // TP CP DP = EP: nobody else holds them
  plan.ep = 16;
  CHECK(experts(cost_of(spec, plan).chunk(2, 1)) == approx(2 * 3 * spec.expert_parameters(5) / 16));
}

TEST_CASE("one stage is cut by layers") {
  const StepCost cost = cost_of(preset("megatron-1.7b"), {.dp = 48, .batch = 192});
  CHECK(cost.virtual_stages == 24);
  CHECK(cost.chunks.size() == 24);
  CHECK(cost.activation_bytes == 0);
  CHECK(cost.chunk(0, 1).gather.at(0).overlap == 0);
  // Cut by the plan, all but one layer's part overlaps.
  const StepCost cut = cost_of(preset("megatron-1.7b"), {.vp = 4, .dp = 48, .batch = 192});
  CHECK(cut.virtual_stages == 4);
  CHECK(cut.chunk(0, 1).gather.at(0).overlap == approx(5.0 / 6));
}

TEST_CASE("one GPU communicates nothing") {
  const StepCost cost = cost_of(preset("megatron-1.7b"), {.batch = 2});
  CHECK(cost.norm_bytes == 0);
  for (const model::ChunkCost& chunk : cost.chunks) {
    CHECK(chunk.forward.comms.empty());
    CHECK(chunk.backward.comms.empty());
    CHECK(chunk.gather.empty());
    CHECK(chunk.reduce.empty());
  }
}

TEST_CASE("tied embeddings are summed between the ends") {
  const TransformerSpec spec = preset("gpt3-175b");
  const StepCost cost = cost_of(spec, {.tp = 8, .pp = 8, .dp = 8, .batch = 512, .sequence = 2048});
  CHECK(cost.embedding_bytes == approx(4 * spec.embedding_parameters() / 8));
}

TEST_CASE("recommendation models exchange embeddings and reduce dense layers") {
  const auto spec = std::get<RecommendationSpec>(model_by_name({"dlrm", {}}).value());
  const auto cost =
      step_cost(spec, {.dp = 64, .batch = 65536, .sequence = 1, .micro_batch = 1024}, h100());
  REQUIRE(cost.has_value());
  const model::ChunkCost& chunk = cost->chunk(0, 0);
  CHECK(bytes(chunk.forward.comms, Dimension::ep, CollectiveOp::all_to_all) ==
        4.0 * 1024 * 26 * 128);
  CHECK(bytes(chunk.reduce, Dimension::dp, CollectiveOp::all_reduce) ==
        4 * spec.dense_parameters());
  CHECK(cost->ep == 64);
}

TEST_CASE("impossible plans are refused") {
  const auto bad = step_cost(preset("llama3-405b"), {.tp = 7, .pp = 200}, h100());
  REQUIRE(!bad.has_value());
  CHECK(bad.error().more.size() >= 2);
  CHECK(!step_cost(preset("llama3-8b"), {.tp = 0}, h100()).has_value());
}

const LinkSpeeds fast{.nvlink_bytes_per_s = 1e18,
                      .network_bytes_per_s = 1e18,
                      .nvlink_latency_s = 0,
                      .nvlink_hop_s = 0,
                      .network_latency_s = 0};

// Without communication: M t + (PP - 1) / V t where all stages take t.
TEST_CASE("the estimate's pipeline is the closed form") {
  StepCost cost;
  cost.pp = 4;
  cost.virtual_stages = 2;
  cost.microbatches = 12;
  cost.chunks.resize(8);
  for (model::ChunkCost& chunk : cost.chunks) {
    chunk.forward.compute_s = 1;
    chunk.backward.compute_s = 2;
  }
  cost.optimizer_s.assign(4, 0.5);
  const StepEstimate out = estimate_step(cost, fast);
  CHECK(out.compute_s == 12 * 6);
  CHECK(out.bubble_s == 3.0 / 2 * 6);
  CHECK(out.step_s == approx(12 * 6 + 3.0 / 2 * 6 + 0.5));
}

TEST_CASE("an estimate is never below its compute, and falls with faster links") {
  const LinkSpeeds slow{.nvlink_bytes_per_s = 50e9, .network_bytes_per_s = 5e9};
  for (const char* name : {"llama3-70b", "qwen3-235b-a22b"}) {
    const TrainingPlan plan{.tp = 4,
                            .cp = 2,
                            .pp = 4,
                            .vp = 2,
                            .dp = 8,
                            .ep = preset(name).experts > 0 ? 8U : 1U,
                            .batch = 128,
                            .sequence = 4096};
    GpuSpec roomy = h100();
    roomy.memory_bytes = 1e15;
    const auto cost = step_cost(preset(name), plan, roomy);
    REQUIRE(cost.has_value());
    const double best = estimate_step(*cost, fast).step_s;
    const double usual = estimate_step(*cost, {}).step_s;
    CHECK(best > estimate_step(*cost, fast).compute_s);
    CHECK(usual > best);
    CHECK(estimate_step(*cost, slow).step_s > usual);
  }
}

// Two hosts of 8, S bytes: the ring crosses the network once per NIC of the group.
TEST_CASE("seconds of one call") {
  StepCost cost;
  cost.tp = 2;
  cost.dp = 8;
  const LinkSpeeds links{.nvlink_bytes_per_s = 400e9,
                         .network_bytes_per_s = 50e9,
                         .nvlink_latency_s = 0,
                         .nvlink_hop_s = 0,
                         .network_latency_s = 0};
  const auto seconds = [&](Dimension dimension, CollectiveOp op) {
    return call_seconds(cost, {.dimension = dimension, .op = op, .bytes = 8e9}, links);
  };
  CHECK(seconds(Dimension::tp, CollectiveOp::all_gather) == approx(4e9 / 400e9));
  // 8 ranks on two hosts, 4 NICs each: 7 GB over 200 GB/s; twice for an all-reduce.
  CHECK(seconds(Dimension::dp, CollectiveOp::all_gather) == approx(7e9 / 200e9));
  CHECK(seconds(Dimension::dp, CollectiveOp::all_reduce) == approx(14e9 / 200e9));
  // With cp, replicas are 16 ranks on four hosts; along dp alone four NICs would become two.
  cost.cp = 2;
  const CommWork replicas{.dimension = Dimension::dp,
                          .op = CollectiveOp::all_gather,
                          .bytes = 16e9,
                          .members = CommWork::Members::replicas};
  CHECK(call_seconds(cost, replicas, links) == approx(15e9 / 200e9));
  CHECK(seconds(Dimension::dp, CollectiveOp::all_gather) == approx(7e9 / 100e9));
  cost.cp = 1;
  // Half of what is exchanged leaves the host, through one NIC per rank.
  cost.tp = 1;
  cost.dp = 16;
  cost.ep = 16;
  CHECK(seconds(Dimension::ep, CollectiveOp::all_to_all) == approx(4e9 / 50e9));
  CHECK(seconds(Dimension::tp, CollectiveOp::all_gather) == 0);
}

// What one thing changes of a step of Qwen3-235B, in closed form.
TEST_CASE("mixtures: what each setting of the plan does to the step") {
  TrainingPlan base{.tp = 2, .pp = 8, .vp = 4, .dp = 16, .ep = 32, .batch = 2048};
  mixture_defaults(base);
  const auto seconds = [](const TrainingPlan& plan) {
    return estimate_step(cost_of(preset("qwen3-235b-a22b"), plan), {}).step_s;
  };
  const auto ratio = [&](auto change) {
    TrainingPlan plan = base;
    change(plan);
    return seconds(plan) / seconds(base);
  };
  CHECK(ratio([](TrainingPlan& p) { p.dispatcher = Dispatcher::deepep; }) < 0.9);
  CHECK(ratio([](TrainingPlan& p) { p.overlap.ep = Overlap::exchange_on; }) < 0.9);
  CHECK(ratio([](TrainingPlan& p) { p.cuda_graphs = CudaGraphs::on; }) < 1);
  CHECK(ratio([](TrainingPlan& p) { p.software = Software::of_2024; }) > 1);
  CHECK(ratio([](TrainingPlan& p) { p.recompute = Recompute::none; }) < 1);
  CHECK(ratio([](TrainingPlan& p) { p.recompute.add(Recompute::moe); }) > 1.1);
  CHECK(ratio([](TrainingPlan& p) { p.recompute.add(Recompute::core_attn); }) > 1);
  CHECK(ratio([](TrainingPlan& p) {
          p.order = {model::Axis::tp, model::Axis::cp, model::Axis::pp, model::Axis::dp};
        }) > 1);
}

TEST_CASE("whole experts computed again exchange their tokens again") {
  TrainingPlan plan{.dp = 16, .ep = 16, .batch = 16, .recompute = Recompute::none};
  const auto calls = [&] {
    const StepCost cost = cost_of(preset("qwen3-30b-a3b"), plan);
    double sum = 0;
    for (const CommWork& work : cost.chunk(0, 3).backward.comms)
      sum += work.dimension == Dimension::ep ? work.calls : 0;
    return sum;
  };
  CHECK(calls() == 2);
  plan.recompute.add(Recompute::moe);
  CHECK(calls() == 4);
  plan.recompute = Recompute::full;
  CHECK(calls() == 4);
}

TEST_CASE("launches slow small micro-batches down, not large ones") {
  const GpuSpec slow = h100();
  GpuSpec fast = h100();
  fast.host = {.alltoall_s = 0, .recompute_s = 0};
  const auto ratio = [&](std::uint32_t micro_batch) {
    const TrainingPlan plan{
        .dp = 16, .ep = 16, .batch = 512, .micro_batch = micro_batch, .recompute = Recompute::full};
    const auto step = [&](const GpuSpec& gpu) {
      return estimate_step(step_cost(preset("qwen3-30b-a3b"), plan, gpu).value(), {}).step_s;
    };
    return step(slow) / step(fast);
  };
  CHECK(ratio(1) > 1.05);
  CHECK(ratio(8) < 1.01);
  CHECK(ratio(8) > 1);
}

}  // namespace
}  // namespace weft::workload
