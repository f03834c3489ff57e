#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <filesystem>

#include "base/file.hpp"
#include "base/json_text.hpp"
#include "cli/cli.hpp"
#include "cli/commands.hpp"
#include "plan/infer/infer.hpp"
#include "plan/infer/sizing.hpp"
#include "plan/report/report.hpp"

namespace weft::cli {
namespace {

struct InferArgs {
  std::string scenario, profile, run, requests, svg, page;
  bool size = false, curve = false;
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

template <class Answer>
using Variants = std::vector<std::pair<std::string, Answer>>;

// One document, or the tables under each other.
template <class Answer>
std::string json_of(const Variants<Answer>& all) {
  JsonObject variants;
  for (const auto& [name, answer] : all) variants.add(name, JsonText{plan::to_json(answer)});
  return JsonObject().add("variants", variants).text();
}
template <class Answer>
std::string table_of(const Variants<Answer>& all) {
  std::string out;
  for (const auto& [name, answer] : all) {
    if (all.size() > 1) out += fmt::format("{}# {}\n", name == all.front().first ? "" : "\n", name);
    out += plan::to_table(answer);
  }
  return out;
}
template <class Answer>
void print_variants(const Common& common, const Variants<Answer>& all) {
  fmt::print("{}", common.json ? json_of(all) + "\n" : table_of(all));
}

// `data`: what the page draws, by the id of its element.
template <class Answer>
Status write_page(const InferArgs& args, const Variants<Answer>& all,
                  const std::vector<std::pair<std::string, std::string>>& data) {
  const std::string title =
      args.scenario.empty() ? "requests" : std::filesystem::path(args.scenario).stem().string();
  return write_file(
      args.page, plan::report::page_text(
                     {.title = title, .command = "infer", .table = table_of(all), .data = data}));
}

// Status 2 where a variant has no answer, as for other plans that cannot be made.
Status run_sizes(const Common& common, const InferArgs& args, const model::ScenarioFile& file) {
  std::string short_of;
  Variants<plan::Sizing> answers;
  for (const model::Scenario& scenario : file.variants) {
    WEFT_TRY(plan::Sizing sizing, plan::size_replicas(scenario));
    if (!sizing.answer) short_of += (short_of.empty() ? "" : ", ") + scenario.name;
    answers.emplace_back(scenario.name, std::move(sizing));
  }
  print_variants(common, answers);
  if (short_of.empty()) return {};
  return fail(Errc::infeasible, {args.scenario, 0, 0},
              "no number of replicas keeps the objectives: " + short_of,
              "give more GPUs, or weaker objectives in inference.slo");
}

Status run_curves(const Common& common, const InferArgs& args, const model::ScenarioFile& file) {
  Variants<plan::GoodputCurve> answers;
  std::vector<plan::GoodputCurve> curves;
  for (const model::Scenario& scenario : file.variants) {
    WEFT_TRY(curves.emplace_back(), plan::goodput_curve(scenario));
    answers.emplace_back(scenario.name, curves.back());
  }
  if (!args.svg.empty()) WEFT_TRY_STATUS(write_file(args.svg, plan::to_svg(curves)));
  if (!args.page.empty())
    WEFT_TRY_STATUS(write_page(args, answers, {{"infer-curves", json_of(answers)}}));
  print_variants(common, answers);
  return {};
}

Status run_infer(const Common& common, const InferArgs& args) {
  WEFT_TRY(const model::ScenarioFile file, read_infer_scenario(common, args));
  if (args.size) return run_sizes(common, args, file);
  if (args.curve) return run_curves(common, args, file);
  Variants<plan::InferReport> reports;
  for (const model::Scenario& scenario : file.variants) {
    WEFT_TRY(plan::InferReport report, plan::infer(scenario));
    reports.emplace_back(scenario.name, std::move(report));
  }
  if (!common.json && !common.quiet)
    for (const auto& [name, report] : reports)
      for (const std::string& note : report.notes)
        fmt::print(stderr, "weft: note: {}{}\n", reports.size() > 1 ? name + ": " : "", note);
  if (!args.page.empty()) {
    JsonObject quantiles;
    for (const auto& [name, report] : reports)
      quantiles.add(name, JsonText{plan::quantiles_json(report)});
    WEFT_TRY_STATUS(write_page(
        args, reports,
        {{"infer-data", json_of(reports)}, {"infer-quantiles", std::move(quantiles).text()}}));
  }
  print_variants(common, reports);
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
  auto* const size = c.add_flag("--size", args.size, "Find the fewest replicas that keep the slo");
  auto* const curve = c.add_flag("--curve", args.curve, "Goodput against the rate of requests");
  curve->excludes(size);
  c.add_option("--svg", args.svg, "Drawing of the curve to write")->needs(curve);
  c.add_option("--page", args.page, "HTML file: distributions and objectives, or the curve")
      ->excludes(size);
}

}  // namespace weft::cli
