// P-41: pipeline bubble (PP - 1) / (V * M) of Narayanan et al., SC 2021, 2.2.2, which Llama Team,
// "The Llama 3 Herd of Models", 2024, 3.3.2, uses as well. From it follow, for (PP, V, M):
// (16, 1, 32) 0.469, (16, 8, 16) 0.117, (4, 2, 10) 0.150. Ours: idle time over working time of a
// step's operation graph with free communication, within the rounding of these three digits, and
// equal to the closed form. The last one has micro-batches that the stages do not divide: ours are
// two groups of five.
#include "base/test_approx.hpp"
#include "kit.hpp"
#include "workload/schedule/pipeline.hpp"
#include "workload/schedule/step_graph.hpp"
#include "workload/schedule/test_executor.hpp"

namespace weft::paper {
namespace {

double simulated_bubble(const workload::PipelineShape& shape) {
  model::StepCost cost;
  cost.pp = shape.stages;
  cost.virtual_stages = shape.virtual_stages;
  cost.microbatches = shape.microbatches;
  cost.chunks.resize(std::size_t{cost.pp} * cost.virtual_stages);
  for (model::ChunkCost& chunk : cost.chunks) {
    chunk.forward.compute_s = 1;
    chunk.backward.compute_s = 2;
  }
  cost.optimizer_s.assign(cost.pp, 0);
  const auto graph = workload::build_step_graph(cost, {});
  if (!graph) FAIL(graph.error().text());
  const double work = 3.0 * cost.virtual_stages * cost.microbatches;
  return workload::test::IdealNetwork(*graph, 1).run().seconds / work - 1;
}

TEST_CASE("P-41: pipeline bubbles") {
  struct Row {
    workload::PipelineShape shape;
    double published;
  };
  for (const auto& [shape, published] :
       {Row{{16, 1, 32}, 0.469}, Row{{16, 8, 16}, 0.117}, Row{{4, 2, 10}, 0.150}}) {
    const double ours = simulated_bubble(shape);
    CHECK(std::abs(ours - published) <= 0.0005);
    CHECK(ours == approx(workload::pipeline_bubble(shape)).epsilon(1e-12));
  }
}

}  // namespace
}  // namespace weft::paper
