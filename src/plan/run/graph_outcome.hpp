// What a run says about jobs with a model or a recorded workload.
#pragma once

#include <span>
#include <vector>

#include "engine/fluid/graph_run.hpp"
#include "model/work/outcome.hpp"
#include "plan/run/jobs.hpp"
#include "plan/run/setup.hpp"

namespace weft::plan {

// The graphs as the engine takes them; `jobs` must outlive them.
std::vector<engine::GraphJob> graph_jobs(const Jobs& jobs, const Setup& setup);

// What else the outcome of a graph depends on, and where its notes go.
struct GraphContext {
  const Setup& setup;
  std::span<const model::HotLink> hot_links;  // of the whole run
  double run_s;                               // how long it was
  std::vector<model::Note>& notes;
};

model::JobOutcome graph_outcome(const PlacedGraph& placed, const engine::GraphResult& result,
                                const GraphContext& context);

// One lane for each role: what its first actor did in the last iteration. A note says what is left
// out.
void add_graph_spans(const PlacedGraph& placed, const engine::GraphResult& result,
                     std::vector<model::Span>& spans, std::vector<model::Note>& notes);

}  // namespace weft::plan
