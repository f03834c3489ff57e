// weft edge: which metro users' requests end at, and where what they ask for is computed.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/file.hpp"
#include "cli/cli.hpp"
#include "cli/commands.hpp"
#include "plan/edge/measure.hpp"

namespace weft::cli {
namespace {

namespace edge = plan::edge;

constexpr int not_served = 1;  // exit status

struct EdgeArgs {
  std::string file, down, csv, svg, gap = "0.01";
  std::size_t rows = 20;
};

Result<std::uint32_t> find_metro(const edge::Problem& problem, const std::string& name) {
  std::vector<std::string> names;
  for (std::uint32_t m = 0; m < problem.metros.size(); ++m) {
    if (problem.metros[m].name == name) return m;
    names.push_back(problem.metros[m].name);
  }
  return fail(Errc::unknown, {"--down", 0, 0},
              fmt::format("there is no metro {}{}", quote(name), did_you_mean(name, names)),
              "name one of the file's metros");
}

// Whether everything is served.
Result<bool> plan_and_print(const Common& common, const EdgeArgs& args) {
  WEFT_TRY(const double percent, parse_number({args.gap, {"--gap", 0, 0}}));
  if (!(percent >= 1e-4 && percent <= 50))
    return fail(Errc::value, {"--gap", 0, 0}, "a gap below 0.0001 % or above 50 %",
                "pass e.g. --gap 0.1, in percent");
  const edge::PlanOptions options{.gap = percent / 100};
  WEFT_TRY(const std::string text, read_file(args.file));
  WEFT_TRY(const edge::Problem problem, edge::read_problem(text, args.file));
  std::optional<edge::Failure> failure;
  std::optional<std::uint32_t> down;
  if (!args.down.empty()) {
    WEFT_TRY(down, find_metro(problem, args.down));
  }
  const edge::Plan plan = edge::plan_edge(problem, options);
  if (down) failure = edge::without_metro(problem, plan, *down, options);
  const edge::Failure* const failed = failure ? &*failure : nullptr;
  if (!args.csv.empty())
    WEFT_TRY_STATUS(write_file(args.csv, edge::ways_csv(problem, failed ? failed->plan : plan)));
  if (!args.svg.empty()) {
    WEFT_TRY(const std::string svg, edge::to_svg(problem, plan, failed));
    WEFT_TRY_STATUS(write_file(args.svg, svg));
  }
  fmt::print("{}", common.json ? edge::to_json(problem, plan, failed)
                               : edge::to_table(problem, plan, failed, args.rows));
  return plan.unserved.empty() && (failed == nullptr || failed->plan.unserved.empty());
}

int run_edge(const Common& common, const EdgeArgs& args) {
  const Result<bool> is_served = plan_and_print(common, args);
  if (!is_served) return report(is_served.error());
  return *is_served ? done : not_served;
}

}  // namespace

void add_edge(Commands& commands) {
  const auto [c, args] = commands.add<EdgeArgs>(
      "edge", "Where users' requests end, what is cached and where it is computed", run_edge);
  c.add_option("file", args.file, "YAML file with areas:, services:, metros: and data_centres:")
      ->required();
  c.add_option("--down", args.down, "A metro that fails: where its requests go then");
  c.add_option("--csv", args.csv, "CSV file for the shares; with --down those after the failure");
  c.add_option("--svg", args.svg, "Map of sites, requests and uplinks; with --down as it is then");
  c.add_option("--gap", args.gap, "Percent from the optimum at which to stop");
  c.add_option("--rows", args.rows, "Rows of each table");
}

}  // namespace weft::cli
