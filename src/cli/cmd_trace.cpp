#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>

#include "cli/cli.hpp"
#include "cli/commands.hpp"
#include "plan/run/recorded.hpp"
#include "plan/run/run.hpp"

namespace weft::cli {
namespace {

struct TraceArgs {
  std::vector<std::string> files;
  std::string fabric, groups, system, out, overhead;
  std::string place = "topology", contention = "on";
  std::uint32_t ranks = 0;  // 0: as recorded
  bool why = false;
  std::vector<std::string> recorded;
};

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
    WEFT_TRY(const auto options, common.load_options(collective_file_keys()));
    WEFT_TRY(model::ScenarioFile file, model::load_scenario(args.fabric, options));
    root = file.variants.front().root;
  }
  root.at_or_add("jobs") = std::move(jobs);
  WEFT_TRY(auto options, common.load_options());
  if (!args.fabric.empty()) options.set.clear();  // applied above
  if (args.contention == "off") options.set.emplace_back("engine.contention", "false");
  return model::parse_scenario(to_yaml(root), "weft trace", options);
}

int trace_command(const Common& common, const TraceArgs& args) {
  const auto file = scenario_of(common, args);
  if (!file) return report(file.error());
  if (args.why && !args.out.empty())
    return report({Errc::value,
                   {"--why", 0, 0},
                   "it writes no report",
                   "leave out --out, or use it in a run without --why",
                   {}});
  if (args.why) return why_and_report(common, file->variants.front());
  return run_and_report(common, *file, args.out, args.recorded);
}

}  // namespace

void add_trace(Commands& commands) {
  const auto [c, args] = commands.add<TraceArgs>(
      "trace", "Simulate a recorded workload: SimAI/AICB, Chakra or GOAL", trace_command);
  c.add_option("files", args.files, "One file, or the Chakra files of all ranks")->required();
  c.add_option("--fabric", args.fabric,
               "Scenario or fabric file; default: an AI Zone with one GPU per rank");
  c.add_option("--ranks", args.ranks, "Scale to this number of ranks")
      ->check(CLI::Range(1, 1'000'000));
  c.add_option("--groups", args.groups, "Chakra: JSON file with process groups");
  c.add_option("--system", args.system, "ASTRA-sim system JSON: algorithms, compute rates");
  c.add_option("--place", args.place,
               "topology, rack_order, fragmented, random, scattered, fitted");
  c.add_option("--contention", args.contention, "on, or off: transfers do not share links")
      ->check(CLI::IsMember({"on", "off"}));
  c.add_option("--overhead", args.overhead, "GOAL: CPU time of each send and recv");
  c.add_option("--recorded", args.recorded,
               "Trace of PyTorch's profiler, of a rank each, to show beside the prediction");
  c.add_flag("--why", args.why, "What it waits for and what would help, as weft why");
  c.add_option("-o,--out", args.out, "Directory for report.json, report.html and trace");
}

}  // namespace weft::cli
