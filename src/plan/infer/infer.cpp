#include "plan/infer/infer.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>

#include "base/percentile.hpp"
#include "plan/infer/inference_config.hpp"
#include "plan/infer/network.hpp"
#include "plan/run/front_end.hpp"
#include "plan/run/graph_outcome.hpp"

namespace weft::plan {
namespace {

using namespace workload;

Spread spread_of(std::vector<double> values) {
  std::ranges::sort(values);
  const auto at = [&](double percent) {
    return percentile(std::span(std::as_const(values)), percent);
  };
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  Spread out{sum / static_cast<double>(values.size()), at(50), at(90), at(99), {values.front()}};
  for (int percent = 1; percent <= 100; ++percent) out.quantiles.push_back(at(percent));
  return out;
}

template <class Of>
Spread spread_of(const ServingRun& run, const Of& of) {
  std::vector<double> values;
  values.reserve(run.requests.size());
  for (const RequestTimes& one : run.requests)
    if (one.ended) values.push_back(of(one));
  if (values.empty()) return {INFINITY, INFINITY, INFINITY, INFINITY, {}};
  return spread_of(std::move(values));
}

// The same figures of the run that was recorded.
ServingRun recorded(const ServingRun& run, const std::vector<MeasuredRequest>& measured) {
  ServingRun out;
  out.requests = run.requests;
  for (std::size_t i = 0; i < measured.size(); ++i) {
    out.requests[i].first_token = measured[i].first_token;
    out.requests[i].last_token = measured[i].last_token;
  }
  return out;
}

std::vector<Latency> latencies_of(const ServingRun& run,
                                  const std::vector<MeasuredRequest>& measured) {
  const auto ttft = [](const RequestTimes& one) { return one.ttft().seconds(); };
  const auto tpot = [](const RequestTimes& one) { return one.tpot_s(); };
  const auto e2e = [](const RequestTimes& one) { return one.e2e().seconds(); };
  std::vector<Latency> out{
      {"ttft", spread_of(run, ttft), {}},
      {"queue", spread_of(run, [](const RequestTimes& one) { return one.queue().seconds(); }), {}},
      {"prefill",
       spread_of(run, [](const RequestTimes& one) { return one.prefill().seconds(); }),
       {}},
      {"transfer",
       spread_of(run, [](const RequestTimes& one) { return one.transfer().seconds(); }),
       {}},
      {"tpot", spread_of(run, tpot), {}},
      {"e2e", spread_of(run, e2e), {}}};
  if (measured.empty()) return out;
  const ServingRun theirs = recorded(run, measured);
  out[0].measured = spread_of(theirs, ttft);
  out[4].measured = spread_of(theirs, tpot);
  out[5].measured = spread_of(theirs, e2e);
  return out;
}

// The objective of every class of the trace, or none.
std::vector<const Objective*> objective_of_class(const InferenceConfig& config) {
  std::vector<const Objective*> out;
  for (const std::string& name : config.trace.classes) {
    const Objective* best = nullptr;
    for (const Objective& one : config.objectives)
      if (one.request_class == name || (one.request_class.empty() && best == nullptr)) best = &one;
    out.push_back(best);
  }
  return out;
}

bool keeps(const RequestTimes& one, const Objective& objective) {
  return one.ended && (!objective.ttft || one.ttft() <= *objective.ttft) &&
         (!objective.tpot || one.tpot_s() <= objective.tpot->seconds());
}

// At the percentile, of all requests of the objective; infinite where that one never ended.
double at_percentile(std::vector<double>& values, double percent) {
  if (values.empty()) return 0;
  const std::size_t rank = nearest_rank(values.size(), percent);
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(rank));
  return values[rank];
}

Attainment attainment_of(const ServingRun& run, const InferenceConfig& config,
                         const std::vector<const Objective*>& of_class,
                         const Objective& objective) {
  Attainment out{.request_class = objective.request_class, .percentile = objective.percentile};
  std::vector<double> ttft, tpot;
  for (std::size_t i = 0; i < run.requests.size(); ++i) {
    if (of_class[config.trace.requests[i].class_index] != &objective) continue;
    const RequestTimes& one = run.requests[i];
    ++out.requests;
    out.met += keeps(one, objective) ? 1 : 0;
    ttft.push_back(one.ended ? one.ttft().seconds() : INFINITY);
    tpot.push_back(one.ended ? one.tpot_s() : INFINITY);
  }
  if (objective.ttft) {
    out.ttft_bar = objective.ttft->seconds();
    out.ttft_s = at_percentile(ttft, objective.percentile);
  }
  if (objective.tpot) {
    out.tpot_bar = objective.tpot->seconds();
    out.tpot_s = at_percentile(tpot, objective.percentile);
  }
  return out;
}

// Requests a second that keep their objective; those that have none do when they end.
double goodput_of(const ServingRun& run, const InferenceConfig& config,
                  const std::vector<const Objective*>& of_class) {
  std::uint64_t met = 0;
  for (std::size_t i = 0; i < run.requests.size(); ++i) {
    const Objective* const objective = of_class[config.trace.requests[i].class_index];
    const RequestTimes& one = run.requests[i];
    met += (objective != nullptr ? keeps(one, *objective) : one.ended) ? 1 : 0;
  }
  return met == 0 ? 0 : static_cast<double>(met) / run.end.seconds();
}

void add_objectives(const ServingRun& run, const InferenceConfig& config, InferReport& out) {
  if (config.objectives.empty()) return;
  const std::vector<const Objective*> of_class = objective_of_class(config);
  out.goodput = goodput_of(run, config, of_class);
  for (const Objective& one : config.objectives)
    out.objectives.push_back(attainment_of(run, config, of_class, one));
}

// What runs on the fabric together. `serving`: none, to see the jobs alone.
Result<engine::RunResult> run_on_fabric(const ServingNetwork& network, std::uint64_t seed,
                                        std::span<const engine::ServingJob> serving) {
  const Setup& setup = *network.setup;
  WEFT_TRY(route::Router router, route::Router::create(setup.fabric, setup.routing, seed));
  std::vector<engine::Job> jobs;
  for (const PlacedJob& placed : network.jobs.collectives) jobs.push_back(placed.job);
  std::vector<engine::GraphJob> graphs = graph_jobs(network.jobs, setup);
  WEFT_TRY_STATUS(add_front_ends(network.jobs, router, graphs));
  for (std::size_t g = 0; g < graphs.size(); ++g) {
    if (serving.empty() || network.jobs.graphs[g].repeat > 0) continue;
    graphs[g].stop = engine::GraphJob::Stop::served;
    graphs[g].iterations = UINT32_MAX;
  }
  return setup.run({jobs, graphs, serving}, router, {"infer", Progress::Show::never});
}

// Its steps with and without the replicas beside it.
std::vector<JobBeside> jobs_beside(const ServingNetwork& network, const engine::RunResult& served,
                                   const engine::RunResult& alone) {
  std::vector<JobBeside> out;
  const auto add = [&](const std::string& name, const std::vector<double>& steps,
                       const std::vector<double>& steps_alone) {
    out.push_back({name, steps, {}});
    if (!steps_alone.empty()) out.back().alone_s = steps_alone.back();
  };
  for (const Jobs::Entry entry : network.jobs.order) {
    const std::size_t i = entry.index;
    if (entry.kind == Jobs::Entry::Kind::graph)
      add(network.jobs.graphs[i].name, served.graphs[i].iteration_s, alone.graphs[i].iteration_s);
    else
      add(network.jobs.collectives[i].job.name, served.jobs[i].iteration_s,
          alone.jobs[i].iteration_s);
  }
  return out;
}

struct Served {
  ServingRun run;
  std::vector<JobBeside> jobs;
  std::string why_unfinished;
  std::vector<std::string> notes;
};

Result<Served> serve_on(const ServingNetwork& network, const InferenceConfig& config,
                        const StepTimes& times, std::uint64_t seed) {
  Served out;
  Cluster cluster = config.cluster;
  cluster.slowdown = network.slowdown;
  if (network.setup == nullptr || (cluster.decode_replicas == 0 && network.jobs.order.empty())) {
    WEFT_TRY(out.run, serve(config.trace.requests, times, cluster, network.latency));
    return out;
  }
  const engine::ServingJob job{.name = "inference",
                               .requests = &config.trace.requests,
                               .times = &times,
                               .cluster = cluster,
                               .replicas = network.replicas};
  WEFT_TRY(engine::RunResult served, run_on_fabric(network, seed, {&job, 1}));
  if (!network.jobs.order.empty()) {
    WEFT_TRY(const engine::RunResult alone, run_on_fabric(network, seed, {}));
    out.jobs = jobs_beside(network, served, alone);
  }
  for (const std::string& note : network.setup->notes) out.notes.push_back(note);
  for (const model::Note& note : served.notes) out.notes.push_back(note.text);
  if (served.serving[0].standstill) out.why_unfinished = served.serving[0].standstill->why;
  out.run = std::move(served.serving[0].run);
  return out;
}

}  // namespace

bool InferReport::holds() const {
  return unfinished == 0 && std::ranges::all_of(objectives, &Attainment::holds);
}

double InferReport::kept() const {
  std::uint64_t met = 0, of = 0;
  for (const Attainment& one : objectives) {
    met += one.met;
    of += one.requests;
  }
  return of == 0 ? 1 : static_cast<double>(met) / static_cast<double>(of);
}

Result<InferReport> infer(const model::Scenario& scenario) {
  WEFT_TRY(const InferenceConfig config, read_inference(scenario));
  return infer(scenario, config);
}

Result<InferReport> infer(const model::Scenario& scenario, const InferenceConfig& config) {
  WEFT_TRY(const ServingNetwork network, lay_network(scenario, config));
  const Cluster& cluster = config.cluster;
  const StepTimes times(config.profile, config.model.layers, cluster.limits, network.communication);
  WEFT_TRY(Served served, serve_on(network, config, times, scenario.seed));
  const ServingRun& run = served.run;
  InferReport out{
      .latencies = latencies_of(run, config.trace.measured),
      .requests = run.requests.size(),
      .replicas = cluster.replicas,
      .decode_replicas = cluster.decode_replicas,
      .end_s = run.end.seconds(),
      .kv_bytes_moved = run.kv_bytes_moved,
      .gpus = (cluster.replicas + cluster.decode_replicas) * config.tp * cluster.limits.stages,
      .goodput = {},
      .objectives = {},
      .cost_per_million_output_tokens = {},
      .unfinished = run.requests.size() - run.ended,
      .why_unfinished = std::move(served.why_unfinished),
      .jobs = std::move(served.jobs),
      .notes = config.notes};
  out.notes.insert(out.notes.end(), served.notes.begin(), served.notes.end());
  for (const RequestTimes& one : run.requests) {
    if (!one.ended) continue;
    out.input_tokens += one.input;
    out.output_tokens += one.output;
  }
  double busy_s = 0;
  for (const ReplicaCounts& one : run.replicas) {
    out.steps += one.steps;
    out.preemptions += one.preemptions;
    out.cached_tokens += one.cached_tokens;
    busy_s += one.busy.seconds();
  }
  if (out.end_s > 0) out.busy = busy_s / out.end_s / static_cast<double>(run.replicas.size());
  add_objectives(run, config, out);
  if (config.gpu_hour && out.output_tokens > 0)
    out.cost_per_million_output_tokens = *config.gpu_hour * out.gpus * (out.end_s / 3600) /
                                         static_cast<double>(out.output_tokens) * 1e6;
  return out;
}

}  // namespace weft::plan
