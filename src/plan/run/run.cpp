#include "plan/run/run.hpp"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>

#include "base/hash.hpp"
#include "base/parallel.hpp"
#include "base/plural.hpp"
#include "model/fabric/faults.hpp"
#include "model/formats/build_fabric.hpp"
#include "plan/explain/explain.hpp"
#include "plan/explain/fabric_map.hpp"
#include "plan/run/front_end.hpp"
#include "plan/run/graph_outcome.hpp"
#include "plan/run/jobs.hpp"
#include "plan/run/reduce.hpp"
#include "plan/run/setup.hpp"

namespace weft::plan {
namespace {

using model::Fabric;

double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// A variant that has been read without error.
struct Prepared {
  const model::Scenario* scenario = nullptr;
  std::shared_ptr<const Setup> setup;  // shared: variants with one fabric section build it once
  Jobs jobs;
};

std::string thousands(std::size_t n) {
  std::string digits = std::to_string(n);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

model::FabricSummary summarise(const Fabric& fabric, const Config& section) {
  const plan::FabricFacts facts = plan::explain(fabric);
  model::FabricSummary out;
  const Config* generator = section.find("generator");
  out.text = fmt::format("{}, {} {} in {} {}",
                         generator != nullptr ? generator->text : "fabric from a file",
                         thousands(facts.gpus), plural(facts.gpus, "GPU"), thousands(facts.racks),
                         plural(facts.racks, "rack"));
  for (const auto& role : facts.roles) out.roles.push_back({role.name, role.count});
  for (const auto& tier : facts.switch_tiers)
    if (tier.worst.under > 0)
      out.oversubscription.push_back(
          fmt::format("{} {:.4g} : 1 (down : up)", tier.role, tier.worst.value()));
  return out;
}

model::JobOutcome job_outcome(const PlacedJob& placed, const engine::JobResult& result) {
  model::JobOutcome out{.name = placed.job.name,
                        .op = std::string(workload::to_text(placed.op)),
                        .algorithm = placed.job.traffic.algorithm,
                        .placement = placed.placement};
  out.gpus = placed.job.ranks.size();
  out.bytes_per_rank = placed.bytes;
  out.iterations = result.iteration_s.size();
  out.roofline_s = result.roofline_s;
  const double bus = workload::busbw_factor(placed.op, out.gpus) / 1e9;
  if (out.roofline_s > 0) out.roofline_busbw_gbyte_s = placed.bytes / out.roofline_s * bus;
  if (result.standstill)
    out.unfinished = {result.standstill->since_s,
                      fmt::format("iteration {} of {}: {}", out.iterations + 1,
                                  placed.job.iterations, result.standstill->why)};
  if (!result.finished) return out;
  double sum = 0;
  for (const double s : result.iteration_s) sum += s;
  out.time_mean_s = sum / static_cast<double>(result.iteration_s.size());
  const auto [least, most] = std::ranges::minmax(result.iteration_s);
  out.time_min_s = least;
  out.time_max_s = most;
  if (out.time_mean_s <= 0) return out;
  out.algbw_gbyte_s = placed.bytes / out.time_mean_s / 1e9;
  out.busbw_gbyte_s = placed.bytes / out.time_mean_s * bus;
  if (out.roofline_s > 0) out.ratio = out.time_mean_s / out.roofline_s;
  return out;
}

void add_spans(const PlacedJob& placed, const engine::JobResult& result,
               std::vector<model::Span>& spans) {
  double start = placed.job.start.seconds();
  for (std::size_t i = 0; i < result.iteration_s.size() && i < engine::span_count_max; ++i) {
    spans.push_back({.name = fmt::format("{} #{}", placed.job.name, i + 1),
                     .category = "job",
                     .track = placed.job.name,
                     .start_s = start,
                     .duration_s = result.iteration_s[i],
                     .args = {{"algorithm", placed.job.traffic.algorithm}}});
    start += result.iteration_s[i];
  }
  for (const auto& stage : result.stages)
    spans.push_back({.name = stage.name,
                     .category = "stage",
                     .track = placed.job.name,
                     .start_s = stage.start_s,
                     .duration_s = stage.end_s - stage.start_s,
                     .args = {{"iteration", std::to_string(stage.iteration + 1)}}});
}

model::Completion completion_of(const engine::RunResult& result) {
  model::Completion out;
  out.finished = result.transfer_times.count();
  out.unfinished = result.unfinished.size();
  if (out.finished == 0) return out;
  out.mean_s = result.transfer_times.mean();
  for (int percent = 1; percent <= 100; ++percent)
    out.quantiles.push_back({percent / 100.0, result.transfer_times.quantile(percent / 100.0)});
  return out;
}

void add_notes(const Setup& setup, const engine::RunResult& result,
               std::vector<model::Note>& notes) {
  using enum model::Note::Severity;
  for (const std::string& line : setup.fabric.notes()) notes.push_back({info, line});
  for (const std::string& line : setup.notes) notes.push_back({info, line});
  for (const std::string& line : result.unfinished) notes.push_back({warning, line});
  for (const auto& graph : result.graphs) {
    for (const std::string& line : graph.notes) notes.push_back({info, line});
    for (const std::string& line : graph.stuck) notes.push_back({warning, line});
  }
}

// Faults of the network are nothing to transfers that do not meet it.
bool has_network_faults(const Setup& setup) {
  return std::ranges::any_of(setup.changes, [](const auto& change) {
    const auto& nodes = change.state.troubled_nodes();
    return !change.state.troubled_links().empty() ||
           std::ranges::any_of(nodes, [](const auto& node) {
             return node.second.health != model::Health::up || node.second.rate_factor < 1;
           });
  });
}

bool has_slow_gpus(const Setup& setup) {
  return std::ranges::any_of(setup.changes, [](const auto& change) {
    return std::ranges::any_of(change.state.troubled_nodes(),
                               [](const auto& node) { return node.second.slowdown > 1; });
  });
}

// Of a run, one of which the map shows: a step of three then has eleven or more.
constexpr std::size_t map_intervals_max = 64;

// By link, shares of what it can carry in so many seconds.
std::vector<double> shares_of(const Fabric& fabric, std::span<const double> bytes, double seconds) {
  std::vector<double> out(bytes.begin(), bytes.end());
  for (const model::LinkId link : fabric.links()) {
    const double most = fabric.rate(link).bytes_per_s() * seconds;
    out[link.index()] = most > 0 ? out[link.index()] / most : 0;
  }
  return out;
}

// The fabric with its loads and the faults of the moment when most are there.
std::string map_of(const Setup& setup, const engine::RunResult& result) {
  const Fabric& fabric = setup.fabric;
  MapLoads loads{.in_run = shares_of(fabric, result.link_bytes, result.makespan_s)};
  loads.in_interval = loads.in_run;
  if (const auto& busy = result.busiest) {
    loads.in_interval = shares_of(fabric, busy->link_bytes, busy->to_s - busy->from_s);
    loads.from_s = busy->from_s;
    loads.to_s = busy->to_s;
  }
  model::State worst;
  const auto troubles = [](const model::State& state) {
    return state.troubled_links().size() + state.troubled_nodes().size();
  };
  for (const auto& change : setup.changes)
    if (troubles(change.state) > troubles(worst)) worst = change.state;
  constexpr std::size_t groups_max = 24;  // of a layer: also on a narrow page
  return to_json(fabric_map(fabric, worst, {}, groups_max, loads));
}

Result<model::VariantOutcome> run_variant(const Prepared& prepared, const engine::Watch& watch,
                                          const RunOptions& options) {
  const Setup& setup = *prepared.setup;
  const Fabric& fabric = setup.fabric;
  WEFT_TRY(route::Router router,
           route::Router::create(fabric, setup.routing, prepared.scenario->seed));
  std::vector<engine::Job> jobs;
  for (const PlacedJob& placed : prepared.jobs.collectives) jobs.push_back(placed.job);
  model::VariantOutcome out{.name = prepared.scenario->name, .scheme = setup.routing.scheme};
  auto graphs = graph_jobs(prepared.jobs, setup);
  WEFT_TRY_STATUS(add_front_ends(prepared.jobs, router, graphs));
  WEFT_TRY(engine::RunResult result, setup.run({jobs, graphs}, router, watch));
  out.notes = std::move(result.notes);
  out.packet = std::move(result.packet);
  out.failures = std::move(result.failures);
  out.estimate = result.estimate;
  out.qps = setup.routing.qps;
  out.faults = setup.fault_lines;
  for (const Jobs::Entry entry : prepared.jobs.order) {
    if (entry.kind == Jobs::Entry::Kind::graph) {
      const PlacedGraph& placed = prepared.jobs.graphs[entry.index];
      const GraphContext context{setup, result.hot_links, result.makespan_s, out.notes};
      out.jobs.push_back(graph_outcome(placed, result.graphs[entry.index], context));
      add_graph_spans(placed, result.graphs[entry.index], out.spans, out.notes);
      for (const std::string& note : placed.notes)
        out.notes.push_back({model::Note::Severity::info, note});
    } else {
      const PlacedJob& placed = prepared.jobs.collectives[entry.index];
      out.jobs.push_back(job_outcome(placed, result.jobs[entry.index]));
      for (const std::string& note : placed.notes)
        out.notes.push_back({model::Note::Severity::warning, note});
      add_spans(placed, result.jobs[entry.index], out.spans);
    }
  }
  for (const model::Span& span : setup.fault_spans) out.spans.push_back(span);
  const model::State first = !setup.changes.empty() && setup.changes.front().at.ps <= 0
                                 ? setup.changes.front().state
                                 : model::State{};
  router.set_state(first);
  const model::LiveView live(fabric, first);
  std::vector<bool> usable = usable_links(jobs, router);
  mark_used(result.link_bytes, usable);
  out.tiers = tier_loads(fabric, result.link_bytes, usable, result.makespan_s);
  out.heat_maps = heat_maps(fabric, result.link_bytes, live.bytes_per_s, result.makespan_s);
  out.completion = completion_of(result);
  if (options.maps) out.fabric_map = map_of(setup, result);
  if (prepared.scenario->section("inference").kind != Config::Kind::null)
    out.notes.push_back({model::Note::Severity::info, "inference: is read by weft infer alone"});
  add_notes(setup, result, out.notes);
  if (setup.fluid.options.contention == engine::fluid::NetworkOptions::Contention::off &&
      has_network_faults(setup))
    out.notes.push_back({model::Note::Severity::warning,
                         "contention is off: link, NIC and switch faults and hosts that are down "
                         "have no effect; only slow GPUs and hosts do"});
  if (prepared.jobs.graphs.empty() && has_slow_gpus(setup))
    out.notes.push_back(
        {model::Note::Severity::info,
         "slow GPUs and hosts have no effect: collectives on their own do not compute"});
  out.digest = result.digest;
  out.scenario_text = to_yaml(prepared.scenario->root);
  Digest digest;
  digest.add(std::string_view(out.scenario_text));
  out.scenario_digest = digest.hex();
  return out;
}

// What is wrong in one of several variants says in which, and how a fabric of another kind is
// given where a key of the fabric above does not fit it.
Error in_variant(Error error, const model::ScenarioFile& file, const model::Scenario& variant) {
  if (file.variants.size() == 1) return error;
  const auto is_there = [&](const Config::Field& field) {
    return field.where.text() == error.where.text();
  };
  error.what = fmt::format("variant \"{}\": {}", variant.name, error.what);
  if (&variant != &file.variants.front() && error.code == Errc::unknown &&
      std::ranges::any_of(file.variants.front().section("fabric").fields, is_there))
    error.hint += "; \"fabric: !replace {...}\" leaves out the keys of the fabric above";
  for (Error& more : error.more) more = in_variant(std::move(more), file, variant);
  return error;
}

Result<std::vector<Prepared>> prepare_all(const model::ScenarioFile& file) {
  std::vector<Prepared> out;
  std::map<std::string, std::shared_ptr<const Setup>> setups;
  for (const model::Scenario& scenario : file.variants) {
    Config without_jobs = scenario.root;
    std::erase_if(without_jobs.fields, [](const auto& field) { return field.key == "jobs"; });
    const std::string key = to_yaml(without_jobs);
    auto& setup = setups[key];
    if (setup == nullptr) {
      auto built = read_setup(scenario);
      if (!built) return std::unexpected(in_variant(std::move(built.error()), file, scenario));
      setup = std::make_shared<const Setup>(*std::move(built));
    }
    if (scenario.section("jobs").kind == Config::Kind::null)
      return fail(Errc::parse, scenario.root.where, "the scenario has no jobs",
                  "add \"jobs:\" with at least one job");
    auto jobs = read_jobs(*setup, scenario.section("jobs"), scenario.seed);
    if (!jobs) return std::unexpected(in_variant(std::move(jobs.error()), file, scenario));
    out.push_back({&scenario, setup, *std::move(jobs)});
  }
  return out;
}

// In file order; the first error of that order. Progress is that of a variant, or of all where
// several run at a time.
Result<std::vector<model::VariantOutcome>> run_variants(std::span<const Prepared> all,
                                                        const RunOptions& options) {
  const bool packets = std::ranges::any_of(all, [](const Prepared& prepared) {
    return prepared.setup->engine_name == EngineName::packet;
  });
  const std::uint32_t threads = packets || all.size() == 1 ? 1 : options.threads;
  Progress together("variants", static_cast<double>(all.size()),
                    threads > 1 ? options.progress : Progress::Show::never);
  std::vector<Result<model::VariantOutcome>> results(all.size());
  std::mutex mutex;
  std::size_t ended = 0;
  parallel_for(all.size(), threads, [&](std::size_t i) {
    const engine::Watch watch{
        .name = fmt::format("{} ({} of {})", all[i].scenario->name, i + 1, all.size()),
        .show = threads > 1 ? Progress::Show::never : options.progress,
        .load_windows = options.maps ? map_intervals_max : 0,
        .limits = options.link_waits && i == 0};
    results[i] = run_variant(all[i], watch, options);
    const std::lock_guard lock(mutex);
    together.update(static_cast<double>(++ended));
  });
  std::vector<model::VariantOutcome> out;
  for (Result<model::VariantOutcome>& result : results) {
    WEFT_TRY(out.emplace_back(), std::move(result));
  }
  return out;
}

// "fluid", "packet", or both in the order of their first variant.
std::string engines_of(std::span<const Prepared> all) {
  std::string text;
  for (const Prepared& prepared : all) {
    const std::string_view name = prepared.setup->engine_text();
    if (text.find(name) == std::string::npos)
      text += fmt::format("{}{}", text.empty() ? "" : ", ", name);
  }
  return text;
}

}  // namespace

Result<model::Outcome> run_scenario(const model::ScenarioFile& file, const RunOptions& options) {
  const double cpu_start = cpu_seconds();
  const auto wall_start = std::chrono::steady_clock::now();
  WEFT_TRY(const std::vector<Prepared> prepared, prepare_all(file));
  const model::Scenario& base = file.variants.front();
  model::Outcome out{.scenario = base.file, .file = base.file};
  if (const Config* name = base.root.find("name")) out.scenario = name->text;
  out.version = WEFT_VERSION;
  out.engine = engines_of(prepared);
  out.command = options.command;
  out.seed = base.seed;
  WEFT_TRY(out.variants, run_variants(prepared, options));
  std::map<const Setup*, model::FabricSummary> fabrics;
  for (std::size_t v = 0; v < prepared.size(); ++v) {
    const auto [known, is_new] = fabrics.try_emplace(prepared[v].setup.get());
    if (is_new)
      known->second = summarise(prepared[v].setup->fabric, prepared[v].scenario->section("fabric"));
    out.variants[v].fabric = known->second;
  }
  out.cpu_s = cpu_seconds() - cpu_start;
  out.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - wall_start).count();
  return out;
}

bool has_lossless_drops(const model::Outcome& outcome) {
  return std::ranges::any_of(outcome.variants, [](const auto& v) {
    return v.packet.has_value() && !v.packet->lossless_drops.empty();
  });
}

bool has_unfinished(const model::Outcome& outcome) {
  return std::ranges::any_of(outcome.variants, [](const model::VariantOutcome& variant) {
    return variant.completion.unfinished > 0 ||
           std::ranges::any_of(variant.jobs, [](const model::JobOutcome& job) {
             return job.unfinished.has_value();
           });
  });
}

}  // namespace weft::plan
