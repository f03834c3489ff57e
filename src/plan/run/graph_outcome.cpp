#include "plan/run/graph_outcome.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "plan/run/front_end.hpp"

namespace weft::plan {
namespace {

using engine::GraphJob;
using engine::GraphResult;

// A step that begins with everybody together, alone on an unchanging fabric, is like the one
// before; otherwise steps are run until they are alike, and the last one counts.
constexpr std::uint32_t steps_most = 20;

bool is_steady(const Jobs& jobs, const Setup& setup) {
  const bool alone = jobs.order.size() == 1;
  const bool unchanging =
      std::ranges::all_of(setup.changes, [](const auto& change) { return change.at.ps <= 0; });
  const bool fetches = std::ranges::any_of(
      jobs.graphs, [](const PlacedGraph& placed) { return placed.ingest.bytes.count > 0; });
  return alone && unchanging && !fetches;
}

void add_steps(const GraphResult& result, model::JobOutcome& out) {
  const std::vector<double>& steps = result.iteration_s;
  out.iterations = steps.size();
  if (out.unfinished || steps.empty()) return;
  double sum = 0;
  for (const double s : steps) sum += s;
  out.time_mean_s = sum / static_cast<double>(steps.size());
  out.time_min_s = *std::ranges::min_element(steps);
  out.time_max_s = *std::ranges::max_element(steps);
}

model::LinkWaits link_waits_of(const GraphResult::LinkWaits& waits, const model::Fabric& fabric) {
  constexpr std::size_t links_shown = 5;
  model::LinkWaits out{.links = {},
                       .latency_s = waits.latency_s,
                       .library_s = waits.library_s,
                       .no_path_s = waits.no_path_s,
                       .folded_s = waits.folded_s};
  for (const auto& [link, seconds] : waits.links) {
    if (out.links.size() < links_shown) {
      out.links.push_back({fabric.name(link), seconds});
    } else {
      out.other_links_s += seconds;
      ++out.other_links;
    }
  }
  return out;
}

void add_times(const PlacedGraph& placed, const GraphResult& result, const model::Fabric& fabric,
               model::TrainingOutcome& out) {
  out.step_times_s = result.iteration_s;
  if (!result.finished || result.iteration_s.empty()) return;
  out.step_time_s = result.iteration_s.back();
  out.compute_s = result.compute_s;
  out.idle_s = result.idle_s;
  out.exposed_s = result.exposed_s;
  out.critical = result.critical;
  if (result.critical_links) out.link_waits = link_waits_of(*result.critical_links, fabric);
  if (result.compute_s > 0) out.bubble = result.idle_s / result.compute_s;
  const double iterations = static_cast<double>(result.iteration_s.size());
  for (std::size_t d = 0; d < out.bytes.size(); ++d)
    for (std::size_t k = 0; k < out.bytes[d].size(); ++k)
      out.bytes[d][k] += result.bytes[d][k] / iterations;
  const auto rank_text = [&](std::uint32_t rank) {
    return fmt::format("rank {} ({})", rank, fabric.name(placed.ranks[rank]));
  };
  for (const GraphResult::Wait& wait : result.waits)
    out.waits.push_back({rank_text(wait.rank), wait.dimension, wait.seconds});
  for (const GraphResult::Straggler& straggler : result.stragglers)
    out.stragglers.push_back({rank_text(straggler.rank), straggler.factor});
  out.roofline_s = result.busiest_compute_s;
  out.roofline_resource = "compute of " + rank_text(result.busiest_rank);
}

// The table shows one step: whoever reads it has to know when others were different.
void note_unequal_steps(const std::string& job, const std::vector<double>& steps,
                        std::vector<model::Note>& notes) {
  constexpr double equal = 0.01;
  constexpr std::size_t shown = 8;
  if (steps.empty()) return;
  const auto [least, most] = std::ranges::minmax(steps);
  if (most - least <= equal * most) return;
  std::string list;
  for (std::size_t i = 0; i < std::min(shown, steps.size()); ++i)
    list += fmt::format("{}{:.4g}", i == 0 ? "" : ", ", steps[i]);
  notes.push_back({model::Note::Severity::warning,
                   fmt::format("{}: steps took {}{} s; the last one is shown", job, list,
                               steps.size() > shown ? ", ..." : "")});
}

// A link that is busier than the busiest GPU: its bytes of this job need so long at least.
void add_link_roofline(const std::string& job, double run_s, std::size_t steps,
                       model::TrainingOutcome& out) {
  for (const model::HotLink& hot : out.hottest_links) {
    double bytes = 0;
    for (const model::HotLink::Flow& flow : hot.flows)
      if (flow.job == job) bytes += flow.bytes;
    if (hot.bytes <= 0) continue;
    const double seconds = hot.load * run_s * bytes / hot.bytes / static_cast<double>(steps);
    if (seconds <= out.roofline_s) continue;
    out.roofline_s = seconds;
    out.roofline_resource = hot.link;
  }
}

}  // namespace

std::vector<engine::GraphJob> graph_jobs(const Jobs& jobs, const Setup& setup) {
  std::vector<engine::GraphJob> out;
  for (const PlacedGraph& placed : jobs.graphs) {
    engine::GraphJob job{.name = placed.name, .graph = placed.graph.get()};
    job.ranks = placed.ranks;
    const bool until_steady = placed.repeat == 0 && !is_steady(jobs, setup);
    job.stop = until_steady ? GraphJob::Stop::steady : GraphJob::Stop::counted;
    job.iterations = until_steady ? steps_most : std::max(placed.repeat, 1u);
    job.start = placed.start;
    job.step_overhead = setup.step_overhead;
    job.overlap_slowdown = placed.overlap_slowdown;
    job.compute_factor = placed.compute_factor;
    job.algorithms = placed.algorithms;
    job.library = placed.library;
    out.push_back(std::move(job));
  }
  return out;
}

model::JobOutcome graph_outcome(const PlacedGraph& placed, const GraphResult& result,
                                const GraphContext& context) {
  const Setup& setup = context.setup;
  const std::span<const model::HotLink> hot_links = context.hot_links;
  model::JobOutcome out{.name = placed.name,
                        .op = placed.training ? "training" : "trace",
                        .algorithm = "",
                        .placement = placed.placement};
  out.gpus = placed.ranks.size();
  out.bytes_per_rank = model::no_number;
  if (result.standstill)
    out.unfinished = {result.standstill->since_s,
                      fmt::format("step {}{}: {}", result.iteration_s.size() + 1,
                                  placed.repeat > 0 ? fmt::format(" of {}", placed.repeat) : "",
                                  result.standstill->why)};
  add_steps(result, out);
  model::TrainingOutcome training = placed.known;
  add_times(placed, result, setup.fabric, training);
  training.hottest_links.assign(hot_links.begin(), hot_links.end());
  if (result.finished) {
    note_unequal_steps(placed.name, result.iteration_s, context.notes);
    add_link_roofline(placed.name, context.run_s,
                      result.iteration_s.size() + result.discarded_iterations, training);
  }
  if (placed.training) add_rates(*placed.training, training);
  if (result.front_end && result.finished)
    add_front_end_times(placed.name, *result.front_end, training, context.notes);
  out.roofline_s = training.roofline_s;
  if (out.roofline_s > 0) out.ratio = training.step_time_s / out.roofline_s;
  out.training = std::move(training);
  return out;
}

void add_graph_spans(const PlacedGraph& placed, const GraphResult& result,
                     std::vector<model::Span>& spans, std::vector<model::Note>& notes) {
  if (result.front_end && result.front_end->spans_left_out > 0)
    notes.push_back(
        {model::Note::Severity::info,
         fmt::format("job {}: the trace shows the first {} of {} fetches and "
                     "checkpoints of the front end",
                     placed.name, result.front_end->spans.size(),
                     result.front_end->spans.size() + result.front_end->spans_left_out)});
  if (result.front_end)
    for (const engine::FrontEndResult::Span& span : result.front_end->spans)
      spans.push_back({.name = span.name,
                       .category = "front end",
                       .track = fmt::format("{} / front end", placed.name),
                       .start_s = span.start_s,
                       .duration_s = span.end_s - span.start_s,
                       .args = {}});
  if (result.spans.size() == engine::graph_span_count_max)
    notes.push_back({model::Note::Severity::info,
                     fmt::format("job {}: the trace shows the first {} operations of a step, one "
                                 "rank of each role",
                                 placed.name, result.spans.size())});
  const model::OpGraph& graph = *placed.graph;
  for (const GraphResult::Span& span : result.spans) {
    const model::Program& program = graph.programs[span.program];
    const model::Operation& operation = program.operations[span.operation];
    const bool compute = operation.kind == model::Operation::Kind::compute;
    spans.push_back({.name = graph.labels[operation.label],
                     .category = compute ? std::string("compute")
                                         : std::string(model::to_text(operation.dimension)),
                     .track = fmt::format("{} / {}", placed.name, program.role),
                     .start_s = span.start_s,
                     .duration_s = span.end_s - span.start_s,
                     .args = {}});
  }
}

}  // namespace weft::plan
