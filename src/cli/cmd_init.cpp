#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>

#include "base/file.hpp"
#include "cli/cli.hpp"
#include "cli/commands.hpp"
#include "plan/init/init.hpp"
#include "workload/parallel/model_spec.hpp"

namespace weft::cli {
namespace {

namespace init = plan::init;

struct InitArgs {
  std::string path;
  init::Wish wish;
  bool force = false;
};

// One question; an empty answer takes the default. False at the end of the input.
bool ask(const std::string& question, std::string& answer) {
  fmt::print(stderr, "{} [{}]: ", question, answer);
  std::string line;
  if (!std::getline(std::cin, line)) return false;
  if (const std::string_view given = trim(line); !given.empty()) answer = given;
  return true;
}

Status ask_all(init::Wish& wish) {
  std::string fabrics;
  for (const init::FabricChoice& choice : init::fabric_choices())
    fabrics += fmt::format("  {:<15} {}\n", choice.name, choice.what);
  std::string gpus = "512";
  const bool answered =
      ask("How many GPUs?", gpus) &&
      ask(fmt::format("Which? ({})", fmt::join(init::gpu_choices(), ", ")), wish.gpu) &&
      ask(fmt::format("Which model? ({})", fmt::join(workload::model_names(), ", ")), wish.model) &&
      ask(fmt::format("Which fabric?\n{}", fabrics), wish.fabric);
  if (!answered)
    return fail(Errc::value, {"weft init", 0, 0}, "the answers ended",
                "answer all questions, or pass --gpus, --gpu, --model and --fabric");
  WEFT_TRY(const std::int64_t count, parse_count({gpus, {"GPUs", 0, 0}}));
  wish.gpus = static_cast<std::uint64_t>(count);
  return {};
}

Status run_init(const Common& common, const InitArgs& args) {
  init::Wish wish = args.wish;
  if (wish.gpus == 0) {
    if (isatty(STDIN_FILENO) == 0)
      return fail(Errc::value, {"weft init", 0, 0}, "the number of GPUs is missing",
                  "pass --gpus N, or run it on a terminal, where it asks");
    WEFT_TRY_STATUS(ask_all(wish));
  }
  WEFT_TRY(const std::string text, init::first_scenario(wish));
  if (args.path.empty() || args.path == "-") {
    fmt::print("{}", text);
    return {};
  }
  if (std::filesystem::exists(args.path) && !args.force)
    return fail(Errc::infeasible, {args.path, 0, 0}, "the file is there already",
                "name another one, or pass --force to write over it");
  WEFT_TRY_STATUS(write_file(args.path, text));
  if (!common.quiet) fmt::print("wrote {}; now: weft run {} --out report\n", args.path, args.path);
  return {};
}

}  // namespace

void add_init(Commands& commands) {
  const auto [c, args] =
      commands.add<InitArgs>("init", "Write a first scenario, from four answers", run_init);
  c.add_option("file", args.path, "Scenario to write; without it, to the standard output");
  c.add_option("--gpus", args.wish.gpus, "How many; without it, all is asked")
      ->check(CLI::Range(1, 1'000'000));
  c.add_option("--gpu", args.wish.gpu, "Product, e.g. h100, b200, gb200");
  c.add_option("--model", args.wish.model, "Preset, e.g. llama3-70b");
  c.add_option("--fabric", args.wish.fabric, "Generator, e.g. ai_zone, hpn, rail_optimized");
  c.add_flag("--force", args.force, "Write over a file that is there");
}

}  // namespace weft::cli
