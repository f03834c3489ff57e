#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>

#include "base/json_text.hpp"
#include "cli/cli.hpp"
#include "cli/commands.hpp"
#include "plan/infer/infer.hpp"

namespace weft::cli {
namespace {

struct InferArgs {
  std::string scenario, profile, run, requests;
};

// Options are keys of the section, above what the scenario says.
Result<model::ScenarioFile> read_infer_scenario(const Common& common, const InferArgs& args) {
  WEFT_TRY(const model::LoadOptions options, common.load_options());
  WEFT_TRY(model::ScenarioFile file,
           args.scenario.empty() ? model::parse_scenario("inference: {}\n", "<options>", options)
                                 : model::load_scenario(args.scenario, options));
  struct Given {
    const char *key, *option;
    const std::string& value;
  };
  const std::array<Given, 3> given{{{"profile", "--profile", args.profile},
                                    {"run", "--run", args.run},
                                    {"requests", "--requests", args.requests}}};
  for (model::Scenario& scenario : file.variants)
    for (const auto& [key, option, value] : given)
      if (!value.empty())
        WEFT_TRY_STATUS(
            scenario.set(std::string("inference.") + key, Config::scalar(value, {option, 0, 0})));
  return file;
}

Status run_infer(const Common& common, const InferArgs& args) {
  WEFT_TRY(const model::ScenarioFile file, read_infer_scenario(common, args));
  std::vector<std::pair<std::string, plan::InferReport>> reports;
  for (const model::Scenario& scenario : file.variants) {
    WEFT_TRY(plan::InferReport report, plan::infer(scenario));
    reports.emplace_back(scenario.name, std::move(report));
  }
  if (common.json) {
    JsonObject variants;
    for (const auto& [name, report] : reports) variants.add(name, JsonText{plan::to_json(report)});
    fmt::print("{}\n", JsonObject().add("variants", variants).text());
    return {};
  }
  for (const auto& [name, report] : reports) {
    if (!common.quiet)
      for (const std::string& note : report.notes) fmt::print(stderr, "weft: note: {}\n", note);
    if (reports.size() > 1) fmt::print("{}# {}\n", name == reports.front().first ? "" : "\n", name);
    fmt::print("{}", plan::to_table(report));
  }
  return {};
}

}  // namespace

void add_infer(Commands& commands) {
  const auto [c, args] = commands.add<InferArgs>(
      "infer", "Latencies and throughput of replicas that serve a model", run_infer);
  c.add_option("scenario", args.scenario, "YAML file with inference:");
  c.add_option("--profile", args.profile, "Prefix of the kernel profile's CSV files");
  c.add_option("--run", args.run, "JSON record of a vLLM run: engine settings and model shape");
  c.add_option("--requests", args.requests, "Trace: JSON lines of a vLLM run, or Azure's CSV");
}

}  // namespace weft::cli
