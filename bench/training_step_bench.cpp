// A training step of 2,048 GPUs on an AI Zone, every link modelled.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <string>

#include "base/check.hpp"
#include "base/progress.hpp"
#include "engine/fluid/job_run.hpp"
#include "plan/run/graph_outcome.hpp"

namespace weft::plan {
namespace {

model::Scenario scenario_of(const std::string& routing) {
  const std::string text =
      "fabric: {generator: ai_zone, racks: 128}\n"
      "routing: " +
      routing +
      "\njobs:\n"
      "  - {name: llama3, model: llama3-70b, parallel: {tp: 8, pp: 4, dp: 64}, batch: 1024,\n"
      "     place: rack_order}\n";
  auto file = model::parse_scenario(text, "bench", {});
  WEFT_CHECK(file.has_value());
  return std::move(file->variants.front());
}

// Messages between neighbours of the pipeline in one step, those of each rank counted.
std::int64_t sends_of(const model::OpGraph& graph) {
  std::int64_t sends = 0;
  for (const model::Actor& actor : graph.actors)
    sends += std::ranges::count(graph.programs[actor.program].operations,
                                model::Operation::Kind::send, &model::Operation::kind);
  return sends * graph.ranks_per_actor;
}

// The engine alone: fabric and graph are built once. A step is 64 pipelines of 4 stages and 16
// micro-batches, and data-parallel rings of 64 ranks.
void training_step(benchmark::State& state, const std::string& routing) {
  const model::Scenario scenario = scenario_of(routing);
  const auto setup = read_setup(scenario);
  WEFT_CHECK(setup.has_value());
  const auto jobs = read_jobs(*setup, scenario.section("jobs"), scenario.seed);
  WEFT_CHECK(jobs.has_value());
  const auto graphs = graph_jobs(*jobs, *setup);
  double step_s = 0;
  for (auto _ : state) {
    auto router = route::Router::create(setup->fabric, setup->routing, scenario.seed);
    WEFT_CHECK(router.has_value());
    Progress progress("bench", 1, Progress::Show::never);
    const auto result = engine::fluid::run_jobs({}, graphs, *router, setup->changes,
                                                setup->fluid.options, progress);
    WEFT_CHECK(result.graphs.front().finished);
    step_s = result.graphs.front().iteration_s.back();
  }
  const std::int64_t sends = sends_of(*graphs.front().graph);
  state.counters["step_s"] = step_s;
  state.counters["sends"] = static_cast<double>(sends);
  state.counters["sends/s"] =
      benchmark::Counter(static_cast<double>(sends), benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK_CAPTURE(training_step, ecmp, "{scheme: ecmp}")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(training_step, e_ecmp_16, "{scheme: e_ecmp, qps: 16}")
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(training_step, spray, "{scheme: spray}")->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace weft::plan
