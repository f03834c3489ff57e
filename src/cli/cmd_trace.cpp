#include <fmt/format.h>

#include <filesystem>

#include "cli/cli.hpp"
#include "plan/run/recorded.hpp"
#include "plan/run/run.hpp"

namespace weft::cli {
namespace {

Config scalar_of(const std::string& text) { return Config::scalar(text, {"", 0, 0}); }

Config job_of(const TraceArgs& args) {
  Config job = Config::map();
  job.at_or_add("name") = scalar_of(std::filesystem::path(args.files.front()).filename().string());
  Config files = Config::list();
  for (const std::string& path : args.files)
    files.items.push_back(scalar_of(std::filesystem::absolute(path).string()));
  job.at_or_add("workload") = std::move(files);
  if (!args.groups.empty())
    job.at_or_add("groups") = scalar_of(std::filesystem::absolute(args.groups).string());
  if (!args.system.empty())
    job.at_or_add("system") = scalar_of(std::filesystem::absolute(args.system).string());
  if (args.ranks > 0) job.at_or_add("trace_ranks") = scalar_of(std::to_string(args.ranks));
  if (!args.overhead.empty()) job.at_or_add("overhead") = scalar_of(args.overhead);
  job.at_or_add("place") = scalar_of(args.place);
  return job;
}

// An AI Zone with a GPU for each rank of the job: racks of two 8-GPU hosts under 18 spines.
Result<Config> zone_for(const Config& job) {
  Errors errors;
  Reader reader(job, "job", errors);
  const auto recorded = plan::read_recorded_workload(reader);
  if (!recorded) return std::unexpected(combine(std::move(errors)));
  constexpr std::uint32_t gpus_per_rack = 16;
  const std::uint32_t racks = (recorded->graph.rank_count + gpus_per_rack - 1) / gpus_per_rack;
  Config fabric = Config::map();
  fabric.at_or_add("generator") = scalar_of("ai_zone");
  fabric.at_or_add("racks") = scalar_of(std::to_string(std::max(racks, 2u)));
  return fabric;
}

// The trace as the one job of a scenario, on the given fabric file or on one made for it.
Result<model::ScenarioFile> scenario_of(const Common& common, const TraceArgs& args) {
  Config root = Config::map();
  Config jobs = Config::list();
  jobs.items.push_back(job_of(args));
  if (args.fabric.empty()) {
    WEFT_TRY(root.at_or_add("fabric"), zone_for(jobs.items.front()));
  } else {
    WEFT_TRY(const auto options, common.load_options(fabric_file_keys()));
    WEFT_TRY(model::ScenarioFile file, model::load_scenario(args.fabric, options));
    root = file.variants.front().root;
  }
  root.at_or_add("jobs") = std::move(jobs);
  if (args.contention == "off") {
    Config& engine = root.at_or_add("engine");
    if (engine.kind != Config::Kind::map) {
      const std::string name = engine.kind == Config::Kind::scalar ? engine.text : "fluid";
      engine = Config::map();
      engine.at_or_add("name") = scalar_of(name);
    }
    engine.at_or_add("contention") = scalar_of("false");
  }
  WEFT_TRY(auto options, common.load_options());
  if (!args.fabric.empty()) options.set.clear();  // applied above
  return model::parse_scenario(to_yaml(root), "weft trace", options);
}

}  // namespace

int trace_command(const Common& common, const TraceArgs& args) {
  const auto file = scenario_of(common, args);
  if (!file) return report(file.error());
  return run_and_report(common, *file, args.out);
}

}  // namespace weft::cli
