#include "operate/repair/what_if.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "engine/fluid/flow_run.hpp"
#include "engine/fluid/job_run.hpp"
#include "operate/repair/reserve.hpp"
#include "plan/run/graph_outcome.hpp"
#include "route/router.hpp"

namespace weft::operate::repair {
namespace {

using engine::StateChange;
using model::Fabric;
using model::LinkId;
using model::NodeId;

constexpr Bytes bound_bytes = 64_MiB;

Result<route::Router> ideal_router(const plan::Setup& setup, std::uint64_t seed) {
  route::RoutingConfig config = setup.routing;
  config.scheme = "optimal";
  config.qps = 1;
  auto router = route::Router::create(setup.fabric, config, seed);
  if (router) return router;
  config.scheme = "e_ecmp";
  config.qps = 16;
  return route::Router::create(setup.fabric, config, seed);
}

// Each NIC to the one half the list away.
model::FlowSet across(std::vector<NodeId> nics, std::uint32_t flows_max) {
  const std::size_t stride = (nics.size() + flows_max - 1) / std::max<std::size_t>(flows_max, 1);
  model::FlowSet set;
  if (nics.size() < 2) return set;
  for (std::size_t i = 0; i < nics.size(); i += std::max<std::size_t>(stride, 1))
    set.flows.push_back(
        {.src = nics[i], .dst = nics[(i + nics.size() / 2) % nics.size()], .size = bound_bytes});
  return set;
}

std::vector<NodeId> nics_of(const Fabric& fabric, std::span<const NodeId> gpus) {
  std::vector<NodeId> out;
  for (const NodeId gpu : gpus)
    if (const NodeId nic = fabric.nic_of(gpu); nic.valid()) out.push_back(nic);
  std::ranges::sort(out);
  const auto twice = std::ranges::unique(out);
  out.erase(twice.begin(), twice.end());
  return out;
}

// The time until the last flow has ended; 0 when one never does.
double makespan(const model::FlowSet& set, route::Router& router,
                std::span<const StateChange> changes, const plan::Setup& setup) {
  if (set.flows.empty()) return 0;
  const auto result = engine::fluid::run_flows(set, router, changes, setup.fluid.options);
  const bool is_done =
      std::ranges::all_of(result.flows, [](const auto& flow) { return flow.finished; });
  return is_done ? result.makespan_s : 0;
}

}  // namespace

model::State state_without(const Fabric& fabric, std::span<const Entity> out) {
  Gone gone(fabric);
  for (const Entity& e : out) gone.add(e);
  model::State state;
  for (const NodeId node : fabric.nodes())
    if (gone.node(node)) state.set(node, {.health = model::Health::down});
  for (const LinkId link : fabric.links())
    if (gone.cable(model::cable_of(link))) state.set(link, {.health = model::Health::down});
  return state;
}

Forecast Impact::forecast() const {
  Forecast out{.jobs = static_cast<std::uint32_t>(jobs.size())};
  for (const JobImpact& job : jobs) {
    if (job.is_stalled) ++out.stalled;
    if (job.slowdown <= out.slowdown_max) continue;
    out.slowdown_max = job.slowdown;
    out.worst = job.name;
  }
  return out;
}

WhatIf::WhatIf(const plan::Setup& setup, const plan::Jobs& jobs, std::uint64_t seed)
    : WhatIf(setup, jobs, seed, Options{}) {}

WhatIf::WhatIf(const plan::Setup& setup, const plan::Jobs& jobs, std::uint64_t seed,
               Options options)
    : setup_(setup), jobs_(jobs), seed_(seed), options_(options) {}

std::size_t WhatIf::rank_count() const {
  std::size_t out = 0;
  for (const plan::PlacedJob& job : jobs_.collectives) out += job.job.ranks.size();
  for (const plan::PlacedGraph& graph : jobs_.graphs) out += graph.ranks.size();
  return out;
}

Result<WhatIf::Run> WhatIf::simulate(const model::State& state, const Marks& marks) const {
  route::RoutingConfig routing = setup_.routing;
  routing.te_marks = marks;
  WEFT_TRY(route::Router router, route::Router::create(setup_.fabric, routing, seed_));
  std::vector<engine::Job> jobs;
  for (const plan::PlacedJob& placed : jobs_.collectives) {
    jobs.push_back(placed.job);
    jobs.back().iterations = 1;
    jobs.back().start = {};
    jobs.back().late.clear();
  }
  std::vector<engine::GraphJob> graphs = plan::graph_jobs(jobs_, setup_);
  for (engine::GraphJob& graph : graphs) {
    graph.iterations = 1;
    graph.stop = engine::GraphJob::Stop::counted;
    graph.start = {};
  }
  const std::vector<StateChange> changes{{Time{}, state}};
  Progress silent("what if", 1, Progress::Show::never);
  const auto result =
      engine::fluid::run_jobs(jobs, graphs, router, changes, setup_.fluid.options, silent);
  Run out{.link_bytes = result.link_bytes, .makespan_s = result.makespan_s};
  const auto add = [&](const std::string& name, const auto& job) {
    out.names.push_back(name);
    out.seconds.push_back(job.finished && !job.iteration_s.empty() ? job.iteration_s.front() : 0);
  };
  for (std::size_t i = 0; i < jobs.size(); ++i) add(jobs[i].name, result.jobs[i]);
  for (std::size_t i = 0; i < graphs.size(); ++i) add(graphs[i].name, result.graphs[i]);
  return out;
}

Result<std::vector<double>> WhatIf::loads(const model::State& state, const Marks& marks) const {
  const Fabric& fabric = setup_.fabric;
  std::vector<double> out(fabric.link_count(), 0.0);
  if (rank_count() == 0 || rank_count() > options_.ranks_max) return out;
  WEFT_TRY(const Run run, simulate(state, marks));
  if (run.makespan_s <= 0) return out;
  for (const LinkId link : fabric.links()) {
    if (link.index() >= run.link_bytes.size()) break;
    const double could = fabric.rate(link).bytes_per_s() * run.makespan_s;
    if (could > 0) out[link.index()] = std::min(1.0, run.link_bytes[link.index()] / could);
  }
  return out;
}

Result<WhatIf::Run> WhatIf::bound(const model::State& state) const {
  WEFT_TRY(route::Router router, ideal_router(setup_, seed_));
  const Fabric& fabric = setup_.fabric;
  const std::vector<StateChange> changes{{Time{}, state}};
  Run out;
  const auto add = [&](const std::string& name, std::vector<NodeId> nics) {
    out.names.push_back(name);
    out.seconds.push_back(
        makespan(across(std::move(nics), options_.flows_max), router, changes, setup_));
  };
  for (const plan::PlacedJob& job : jobs_.collectives)
    add(job.job.name, nics_of(fabric, job.job.ranks));
  for (const plan::PlacedGraph& graph : jobs_.graphs) add(graph.name, nics_of(fabric, graph.ranks));
  if (out.names.empty()) add("all", {fabric.nics().begin(), fabric.nics().end()});
  return out;
}

Result<Impact> WhatIf::predict(std::span<const Entity> out, std::span<const Entity> drain) const {
  const auto start = std::chrono::steady_clock::now();
  const std::size_t ranks = rank_count();
  Impact impact;
  if (ranks == 0 || ranks > options_.ranks_max) impact.method = Impact::Method::bounded;
  const auto run = [&](const model::State& state) {
    return impact.method == Impact::Method::bounded ? bound(state) : simulate(state);
  };
  std::vector<Entity> both(out.begin(), out.end());
  both.insert(both.end(), drain.begin(), drain.end());
  WEFT_TRY(const Run before, run(state_without(setup_.fabric, out)));
  WEFT_TRY(const Run after, run(state_without(setup_.fabric, both)));
  for (std::size_t i = 0; i < before.names.size(); ++i) {
    JobImpact job{before.names[i], before.seconds[i], after.seconds[i]};
    job.is_stalled = job.before_s > 0 && job.after_s <= 0;
    if (job.before_s > 0 && job.after_s > 0) job.slowdown = job.after_s / job.before_s;
    impact.jobs.push_back(std::move(job));
  }
  impact.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return impact;
}

}  // namespace weft::operate::repair
