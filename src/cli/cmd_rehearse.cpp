#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "app/rehearse/learn.hpp"
#include "app/rehearse/rehearse.hpp"
#include "app/rehearse/seeds.hpp"
#include "app/store/open_store.hpp"
#include "base/plural.hpp"
#include "cli/cli.hpp"
#include "cli/commands.hpp"

namespace weft::cli {
namespace {

struct RehearseArgs {
  std::string fabric, policy, model;
  std::string baseline_policy, baseline_model;  // of what it is compared with; "": as the above
  std::vector<std::string> compare;             // two policies
  std::string cost, learn;
  std::uint32_t days = 30;
  std::optional<std::uint32_t> seeds;
};

// Two policies on a zone of 252 racks take a minute of two cores then.
constexpr std::uint32_t days_max = 366, seeds_max = 1'000, seeds_to_compare = 5;
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

// Rates by what the service of a store has repaired so far.
Status learn(const Common& common, const RehearseArgs& args) {
  WEFT_TRY(const auto store, app::open_existing_store(args.learn));
  WEFT_TRY(const model::Fabric fabric, load_fabric(common, args.fabric));
  std::vector<port::AuditEntry> audit;
  constexpr std::size_t page = 10'000;
  for (std::uint64_t next = 1;; next = audit.back().seq + 1) {
    WEFT_TRY(auto more, store->audit(next, "", page));
    if (more.empty()) break;
    audit.insert(audit.end(), std::make_move_iterator(more.begin()),
                 std::make_move_iterator(more.end()));
  }
  if (audit.empty() || audit.front().t == audit.back().t)
    return fail(Errc::value, {args.learn, 0, 0}, "the store's audit log covers no time",
                "learn from a service that has run for a while");
  WEFT_TRY(const auto rows, operate::repair::ledger_rows(audit));
  const auto rates = app::learn_rates(fabric, rows, audit.front().t, audit.back().t);
  if (rates.unknown > 0)
    fmt::print(
        stderr,
        "weft: note: {} of parts that the fabric does not have; check that {} is the store of "
        "a service of this fabric\n",
        counted(rates.unknown, "repair"), args.learn);
  fmt::print("{}", app::to_yaml(rates));
  return {};
}

Status run(const Common& common, RehearseArgs args) {
  if (!args.learn.empty()) return learn(common, args);
  const bool decides = !args.compare.empty();
  if (decides) args.baseline_policy = args.compare[0], args.policy = args.compare[1];
  const std::uint32_t seeds = args.seeds.value_or(decides ? seeds_to_compare : 1);
  if (seeds == 0 || seeds > seeds_max)
    return fail(Errc::value, {"--seeds", 0, 0},
                fmt::format("{} seeds; must be 1 to {}", seeds, seeds_max));
  app::CostWeights weights;
  if (!args.cost.empty()) {
    WEFT_TRY(weights, app::read_cost_weights(args.cost));
  }
  WEFT_TRY(const app::RehearseOptions options,
           read_options(common, args.days, args.model, args.policy));
  WEFT_TRY(const std::optional<app::RehearseOptions> baseline, read_baseline(common, args));
  WEFT_TRY(const model::Fabric fabric, load_fabric(common, args.fabric));
  const std::uint32_t threads =
      common.threads > 0 ? common.threads : std::max(1U, std::thread::hardware_concurrency());
  const double days = static_cast<double>(args.days) * seeds * (baseline ? 2 : 1);
  Progress progress("rehearse", days, common.progress());
  WEFT_TRY(const app::RehearseSet set,
           app::rehearse_seeds(fabric, options, baseline, {seeds, threads},
                               [&](double done) { progress.update(done); }));
  progress.finish();
  if (decides && !common.json)
    fmt::print("{} days, seeds {} to {}: both have the same faults and the same luck\n\n{}",
               args.days, options.seed, options.seed + seeds - 1,
               app::decision_text(set, weights, args.compare[0], args.compare[1]));
  else if (seeds == 1 && !baseline)
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
  auto* const compare =
      command.add_option("--compare", args.compare, "Two policies A B: which to choose; 5 seeds");
  compare->expected(2)->excludes("--policy");
  command
      .add_option("--cost", args.cost,
                  "With --compare: bad_minute=1,visit=20,cable_hour=0.1, what each is worth")
      ->needs(compare);
  command
      .add_option("--learn", args.learn,
                  "Store of weft serve: print a failure model with its rates, and end")
      ->excludes("--policy")
      ->excludes("--model")
      ->excludes("--days")
      ->excludes("--seeds")
      ->excludes(compare);
  command
      .add_option("--baseline-policy", args.baseline_policy,
                  "Compare with this policy, seed by seed; \"default\" is the built-in one")
      ->excludes(compare);
  command.add_option("--baseline-model", args.baseline_model,
                     "Compare with this model, seed by seed; \"default\" is the built-in one");
}

}  // namespace weft::cli
