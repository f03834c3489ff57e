#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>

#include "base/file.hpp"
#include "base/parallel.hpp"
#include "cli/cli.hpp"
#include "cli/commands.hpp"
#include "plan/report/report.hpp"
#include "plan/scale/scale_text.hpp"

namespace weft::cli {
namespace {

namespace scale = plan::scale;

struct ScaleArgs {
  std::string path, start_up = "15 min", from, svg, csv, page;
  std::vector<std::string> policies;
  std::vector<double> at{0.5, 1.5, 4};
  double capacity = 0;
  scale::Service service;
};

constexpr std::int64_t stabilisation_ns = 300 * ns_per_s;  // the HPA's default

// The first step at or after --from; without it, a week behind the start, or a third of the series.
Result<std::size_t> scored_from(const ScaleArgs& args, const observe::forecast::Series& series) {
  const std::size_t week =
      static_cast<std::size_t>(std::int64_t{7} * 24 * ns_per_hour / series.step_ns);
  if (args.from.empty()) return std::min(week, series.values.size() / 3);
  WEFT_TRY(const Timestamp at, parse_timestamp({args.from, {"--from", 0, 0}}));
  if (at > series.start) {
    const auto step =
        static_cast<std::size_t>((at.ns - series.start.ns + series.step_ns - 1) / series.step_ns);
    if (step < series.values.size()) return step;
    return fail(Errc::value, {"--from", 0, 0}, "the series ends before that",
                "name an earlier time");
  }
  return 0;
}

Result<std::vector<scale::Policy>> policies_of(const ScaleArgs& args) {
  std::vector<scale::Policy> out;
  for (const std::string& text : args.policies) {
    WEFT_TRY(const scale::Policy policy, scale::parse_policy({text, {"--policies", 0, 0}}));
    out.push_back(policy);
  }
  if (!out.empty()) return out;
  for (const auto kind : {scale::PolicyKind::reactive, scale::PolicyKind::predictive,
                          scale::PolicyKind::hybrid, scale::PolicyKind::oracle})
    std::ranges::copy(scale::curve_of(kind), std::back_inserter(out));
  return out;
}

Status run_scale(const Common& common, const ScaleArgs& args) {
  WEFT_TRY(std::string text, read_file(args.path));
  if (text.starts_with("\x1f\x8b")) {
    WEFT_TRY(text, gunzip(text, args.path));
  }
  WEFT_TRY(const observe::forecast::Series series,
           observe::forecast::read_series(text, args.path, observe::forecast::SeriesKind::demand));
  const scale::Demand demand = scale::demand_of(series);
  WEFT_TRY(const std::int64_t start_up, read_span_ns(args.start_up, "--start-up"));
  scale::Service service = args.service;
  service.step_hours = static_cast<double>(series.step_ns) / static_cast<double>(ns_per_hour);
  service.start_up = static_cast<std::size_t>(
      std::max<std::int64_t>(1, (start_up + series.step_ns - 1) / series.step_ns));
  service.stabilisation =
      static_cast<std::size_t>(std::max<std::int64_t>(1, stabilisation_ns / series.step_ns));
  if (service.least > service.most)
    return fail(Errc::value, {"--min", 0, 0}, "--min is above --max", "swap them");
  WEFT_TRY(const std::size_t from, scored_from(args, series));
  WEFT_TRY(const std::vector<scale::Policy> policies, policies_of(args));
  scale::Study study{.series = series,
                     .demand = demand,
                     .from = from,
                     .service = service,
                     .outcomes = scale::simulate_all(demand, from, service, policies,
                                                     threads_or_all(common.threads)),
                     .at = args.at};
  if (!args.svg.empty()) WEFT_TRY_STATUS(write_file(args.svg, scale::to_svg(study)));
  if (!args.csv.empty()) WEFT_TRY_STATUS(write_file(args.csv, scale::to_csv(study)));
  const std::string json = scale::to_json(study), table = scale::to_table(study);
  fmt::print("{}", common.json ? json : table);
  if (args.page.empty()) return {};
  return write_file(args.page,
                    plan::report::page_text(
                        {.title = std::filesystem::path(args.path).stem().string(),
                         .command = "scale",
                         .table = table,
                         .data = {{"scale-data", json}, {"scale-columns", columns_json(study)}}}));
}

}  // namespace

void add_scale(Commands& commands) {
  const auto [c, args] = commands.add<ScaleArgs>(
      "scale", "Which auto-scaler would have served this demand, at what cost?", run_scale);
  c.add_option("series", args.path, "CSV with time, value and, optionally, event; also gzipped")
      ->required();
  c.add_option("--capacity", args.service.capacity, "Demand of a step that one replica can serve")
      ->required()
      ->check(CLI::PositiveNumber);
  c.add_option("--start-up", args.start_up, "From asking for a replica to its serving");
  c.add_option("--limit", args.service.limit, "Utilisation above which demand counts as violated")
      ->check(CLI::Range(0.01, 1.0));
  c.add_option("--from", args.from, "Time from which policies are scored; before it they learn");
  c.add_option("--policies", args.policies,
               "E.g. reactive:0.6,predictive:0.99,hybrid:0.99,oracle; else curves of all")
      ->delimiter(',');
  c.add_option("--at", args.at, "Percent of violations at which policies are compared")
      ->delimiter(',')
      ->check(CLI::Range(0.0001, 99.0));
  c.add_option("--min", args.service.least, "Fewest replicas")->check(CLI::Range(1, 1'000'000));
  c.add_option("--max", args.service.most, "Most replicas: the budget")
      ->check(CLI::Range(1, 1'000'000));
  c.add_option("--svg", args.svg, "Drawing to write: demand, capacity and violations by time");
  c.add_option("--page", args.page, "HTML file: cost against violations, and the days");
  c.add_option("--csv", args.csv, "Replicas by step and policy, to write");
}

}  // namespace weft::cli
