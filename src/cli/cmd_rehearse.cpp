#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>
#include <string_view>
#include <thread>

#include "app/rehearse/rehearse.hpp"
#include "app/rehearse/seeds.hpp"
#include "cli/cli.hpp"
#include "cli/commands.hpp"

namespace weft::cli {
namespace {

struct RehearseArgs {
  std::string fabric, policy, model;
  std::string baseline_policy, baseline_model;  // of what it is compared with; "": as the above
  std::uint32_t days = 30, seeds = 1;
};

constexpr std::uint32_t days_max = 366, seeds_max = 1'000;
constexpr std::string_view built_in = "default";  // in place of a file

Result<Config> load_or_default(const std::string& file) {
  if (file.empty() || file == built_in) return Config::map();
  return load_yaml(file);
}

Result<app::RehearseOptions> read_options(const Common& common, std::uint32_t days,
                                          const std::string& model_file,
                                          const std::string& policy_file) {
  if (days == 0 || days > days_max)
    return fail(Errc::value, {"--days", 0, 0},
                fmt::format("{} days; must be 1 to {}", days, days_max));
  app::RehearseOptions out{.days = days, .seed = common.seed.value_or(1)};
  WEFT_TRY(const Config model, load_or_default(model_file));
  WEFT_TRY(const Config policy, load_or_default(policy_file));
  WEFT_TRY(out.model, app::read_rehearse_model(model));
  WEFT_TRY(out.policy, operate::repair::read_policy(policy));
  return out;
}

Result<std::optional<app::RehearseOptions>> read_baseline(const Common& common,
                                                          const RehearseArgs& args) {
  if (args.baseline_policy.empty() && args.baseline_model.empty())
    return std::optional<app::RehearseOptions>();
  const auto or_own = [](const std::string& file, const std::string& own) {
    return file.empty() ? own : file;
  };
  WEFT_TRY(const app::RehearseOptions out,
           read_options(common, args.days, or_own(args.baseline_model, args.model),
                        or_own(args.baseline_policy, args.policy)));
  return std::optional(out);
}

Status run(const Common& common, const RehearseArgs& args) {
  if (args.seeds == 0 || args.seeds > seeds_max)
    return fail(Errc::value, {"--seeds", 0, 0},
                fmt::format("{} seeds; must be 1 to {}", args.seeds, seeds_max));
  WEFT_TRY(const app::RehearseOptions options,
           read_options(common, args.days, args.model, args.policy));
  WEFT_TRY(const std::optional<app::RehearseOptions> baseline, read_baseline(common, args));
  WEFT_TRY(const model::Fabric fabric, load_fabric(common, args.fabric));
  const std::uint32_t threads =
      common.threads > 0 ? common.threads : std::max(1U, std::thread::hardware_concurrency());
  const double days = static_cast<double>(args.days) * args.seeds * (baseline ? 2 : 1);
  Progress progress("rehearse", days, common.progress());
  WEFT_TRY(const app::RehearseSet set,
           app::rehearse_seeds(fabric, options, baseline, {args.seeds, threads},
                               [&](double done) { progress.update(done); }));
  progress.finish();
  if (args.seeds == 1 && !baseline)
    fmt::print("{}",
               common.json ? to_json(set.reports.front()) + "\n" : to_table(set.reports.front()));
  else
    fmt::print("{}", common.json ? to_json(set) : to_table(set));
  return {};
}

int rehearse_command(const Common& common, const RehearseArgs& args) {
  const Status status = run(common, args);
  return status ? done : report(status.error());
}

}  // namespace

void add_rehearse(Commands& commands) {
  const auto [command, args] = commands.add<RehearseArgs>(
      "rehearse", "Simulate weeks of network operations in seconds", rehearse_command);
  command.add_option("fabric", args.fabric, "Scenario or fabric file")->required();
  command.add_option("--days", args.days, "Duration");
  command.add_option("--policy", args.policy, "Repair policy, merged over the default");
  command.add_option("--model", args.model, "Failure model, merged over the default");
  command.add_option("--seeds", args.seeds,
                     "Number of seeds, starting at --seed: mean and interval");
  command.add_option("--baseline-policy", args.baseline_policy,
                     "Compare with this policy, seed by seed; \"default\" is the built-in one");
  command.add_option("--baseline-model", args.baseline_model,
                     "Compare with this model, seed by seed; \"default\" is the built-in one");
}

}  // namespace weft::cli
