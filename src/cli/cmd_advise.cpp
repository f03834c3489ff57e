// weft advise: which running job should move, given faults and what a move costs.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/parallel.hpp"
#include "base/text.hpp"
#include "cli/cli.hpp"
#include "cli/commands.hpp"
#include "plan/advise/advise.hpp"

namespace weft::cli {
namespace {

namespace advise = plan::advise;

struct AdviseArgs {
  std::string scenario, horizon = "24 h", move = "15 min";
  std::uint32_t moves = 1;
};

Status run_advise(const Common& common, const AdviseArgs& args) {
  WEFT_TRY(const auto load, common.load_options());
  WEFT_TRY(const auto file, model::load_scenario(args.scenario, load));
  advise::Options options{.moves = args.moves,
                          .run = {.command = common.command,
                                  .progress = common.progress(),
                                  .threads = threads_or_all(common.threads)}};
  WEFT_TRY(options.horizon, parse_duration({args.horizon, {"--horizon", 0, 0}}));
  WEFT_TRY(options.move, parse_duration({args.move, {"--move", 0, 0}}));
  if (options.horizon.ps <= 0)
    return fail(Errc::value, {"--horizon", 0, 0}, "the horizon must be longer than 0 s",
                "write e.g. --horizon 24h");
  WEFT_TRY(const advise::Advice advice, advise::advise(file.variants.front(), options));
  fmt::print("{}", common.json ? advise::to_json(advice) : advise::to_table(advice, options));
  return {};
}

}  // namespace

void add_advise(Commands& commands) {
  const auto [c, args] = commands.add<AdviseArgs>(
      "advise", "Which running job should move, given faults and what a move costs", run_advise);
  c.add_option("scenario", args.scenario, "Scenario with the jobs that run, and faults")
      ->required();
  c.add_option("--horizon", args.horizon, "How long faults and jobs stay as they are")
      ->capture_default_str();
  c.add_option("--move", args.move, "What a moved job loses: work since its checkpoint, restart")
      ->capture_default_str();
  c.add_option("--moves", args.moves, "Moves to advise, one on top of another")
      ->check(CLI::Range(1, 100));
}

}  // namespace weft::cli
