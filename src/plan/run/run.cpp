#include "plan/run/run.hpp"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>

#include "base/hash.hpp"
#include "engine/fluid/job_run.hpp"
#include "model/explain.hpp"
#include "model/faults.hpp"
#include "model/generate.hpp"
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
  std::vector<PlacedJob> jobs;
};

std::string thousands(std::size_t n) {
  std::string digits = std::to_string(n);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

model::FabricSummary summarise(const Fabric& fabric, const Config& section) {
  const model::FabricFacts facts = model::explain(fabric);
  model::FabricSummary out;
  const Config* generator = section.find("generator");
  out.text = fmt::format("{}, {} GPUs in {} racks",
                         generator != nullptr ? generator->text : "fabric given by file",
                         thousands(facts.gpus), thousands(facts.racks));
  for (const auto& role : facts.roles) out.roles.push_back({role.name, role.count});
  for (const auto& tier : facts.switch_tiers)
    if (tier.worst.under > 0)
      out.oversubscription.push_back(
          fmt::format("{} {:.4g} : 1 (down : up)", tier.role, tier.worst.value()));
  return out;
}

model::JobOutcome job_outcome(const PlacedJob& placed, const engine::fluid::JobResult& result) {
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
  if (result.iteration_s.empty()) return out;
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

void add_spans(const PlacedJob& placed, const engine::fluid::JobResult& result,
               std::vector<model::Span>& spans) {
  double start = placed.job.start.seconds();
  for (std::size_t i = 0; i < result.iteration_s.size() && i < engine::fluid::span_count_max; ++i) {
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

model::Completion completion_of(const engine::fluid::JobRunResult& result) {
  model::Completion out;
  out.finished = result.transfer_times.count();
  out.unfinished = result.unfinished.size();
  if (out.finished == 0) return out;
  out.mean_s = result.transfer_times.mean();
  for (int percent = 1; percent <= 100; ++percent)
    out.quantiles.push_back({percent / 100.0, result.transfer_times.quantile(percent / 100.0)});
  return out;
}

void add_notes(const Setup& setup, const engine::fluid::JobRunResult& result,
               std::vector<model::Note>& notes) {
  using enum model::Note::Severity;
  for (const std::string& line : setup.notes) notes.push_back({info, line});
  for (const std::string& line : result.unfinished) notes.push_back({warning, line});
  if (setup.engine.solver.tolerance > 0)
    notes.push_back({info, fmt::format("levels that move by less than {:g} are left as they are; "
                                       "worst rate error seen: {:.2e}",
                                       setup.engine.solver.tolerance, result.rate_error)});
}

Result<model::VariantOutcome> run_variant(const Prepared& prepared, Progress& progress) {
  const Setup& setup = *prepared.setup;
  const Fabric& fabric = setup.fabric;
  WEFT_TRY(route::Router router,
           route::Router::create(fabric, setup.routing, prepared.scenario->seed));
  std::vector<engine::fluid::Job> jobs;
  for (const PlacedJob& placed : prepared.jobs) jobs.push_back(placed.job);
  const engine::fluid::JobRunResult result =
      engine::fluid::run_jobs(jobs, router, setup.changes, setup.engine, progress);

  model::VariantOutcome out{.name = prepared.scenario->name, .scheme = setup.routing.scheme};
  out.qps = setup.routing.qps;
  out.faults = setup.fault_lines;
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    out.jobs.push_back(job_outcome(prepared.jobs[j], result.jobs[j]));
    add_spans(prepared.jobs[j], result.jobs[j], out.spans);
  }
  for (const model::Span& span : setup.fault_spans) out.spans.push_back(span);
  const model::State first = !setup.changes.empty() && setup.changes.front().at.ps <= 0
                                 ? setup.changes.front().state
                                 : model::State{};
  router.set_state(first);
  const model::LiveView live(fabric, first);
  out.tiers = tier_loads(fabric, result.link_bytes, usable_links(jobs, router), result.makespan_s);
  out.heat_maps = heat_maps(fabric, result.link_bytes, live.bytes_per_s, result.makespan_s);
  out.completion = completion_of(result);
  add_notes(setup, result, out.notes);
  out.digest = result.digest;
  out.scenario_text = to_yaml(prepared.scenario->root);
  Digest digest;
  digest.add(std::string_view(out.scenario_text));
  out.scenario_digest = digest.hex();
  return out;
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
      WEFT_TRY(Setup built, read_setup(scenario));
      setup = std::make_shared<const Setup>(std::move(built));
    }
    if (scenario.section("jobs").kind == Config::Kind::null)
      return fail(Errc::parse, scenario.root.where, "the scenario has no jobs",
                  "add \"jobs:\" with at least one job");
    WEFT_TRY(std::vector<PlacedJob> jobs, read_jobs(setup->fabric, scenario.section("jobs"),
                                                    scenario.seed, setup->step_overhead));
    out.push_back({&scenario, setup, std::move(jobs)});
  }
  return out;
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
  out.engine = "fluid";
  out.command = options.command;
  out.seed = base.seed;
  out.fabric = summarise(prepared.front().setup->fabric, base.section("fabric"));
  double iterations = 0;
  for (const Prepared& variant : prepared)
    for (const PlacedJob& job : variant.jobs) iterations += job.job.iterations;
  for (const Prepared& variant : prepared) {
    Progress progress(fmt::format("{} ({} of {})", variant.scenario->name, out.variants.size() + 1,
                                  prepared.size()),
                      iterations / static_cast<double>(prepared.size()), options.progress);
    WEFT_TRY(model::VariantOutcome outcome, run_variant(variant, progress));
    out.variants.push_back(std::move(outcome));
  }
  out.cpu_s = cpu_seconds() - cpu_start;
  out.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - wall_start).count();
  return out;
}

bool has_unfinished(const model::Outcome& outcome) {
  return std::ranges::any_of(outcome.variants,
                             [](const auto& v) { return v.completion.unfinished > 0; });
}

}  // namespace weft::plan
