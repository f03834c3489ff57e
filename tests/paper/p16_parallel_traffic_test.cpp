// P-16: what GPT-3 175B with TP 8, PP 8, DP 512 sends: DP 5.5 GB, PP 6 MB, TP 560 MB (Qian et al.,
// "Alibaba HPN", SIGCOMM 2024, table of traffic). Check: 175e9 / 64 x 2 B = 5.47 GB, 12,288 x 2,048
// x 2 B / 8 = 6.29 MB. Tolerance: DP 0.5 %, PP none, TP 10 %: the paper does not say how it counts;
// one collective of 50.3 MB for each of a stage's 12 layers is 604 MB.
#include <doctest/doctest.h>

#include "base/test_approx.hpp"
#include "workload/parallel/step_cost.hpp"

namespace weft::paper {
namespace {

using model::CollectiveOp;
using model::CommWork;
using model::Dimension;

model::StepCost gpt3_cost() {
  const auto model = workload::model_by_name({"gpt3-175b", {}}).value();
  const auto gpu = workload::gpu_by_name({"h100", {}}).value();
  auto cost = workload::step_cost(
      model, {.tp = 8, .pp = 8, .dp = 512, .batch = 4096, .sequence = 2048}, gpu);
  if (!cost) FAIL(cost.error().text());
  return *std::move(cost);
}

TEST_CASE("P-16: DP 5.47 GB, PP 6.29 MB") {
  const model::StepCost cost = gpt3_cost();
  CHECK(cost.activation_bytes == 12288.0 * 2048 * 2 / 8);
  double gathered = 0;
  for (const model::ChunkCost& chunk : cost.chunks)
    for (const CommWork& work : chunk.gather) gathered += work.bytes;
  // Embeddings stand on both ends and are tied: 0.6e9 more than the parameters' 174.6e9.
  CHECK(gathered / 8 == approx(5.47e9).epsilon(0.005));
}

TEST_CASE("P-16: TP about 560 MB") {
  const model::StepCost cost = gpt3_cost();
  double bytes = 0;
  for (const CommWork& work : cost.chunk(3, 0).forward.comms)
    if (work.dimension == Dimension::tp && work.op == CollectiveOp::reduce_scatter)
      bytes += work.bytes * work.calls;
  CHECK(bytes / 2 == approx(560e6).epsilon(0.1));  // attention's, or the feed-forward's
}

}  // namespace
}  // namespace weft::paper
