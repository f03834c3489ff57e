#include "cli/cmd_rehearse.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/cli.hpp"
#include "cli/rehearse.hpp"

namespace weft::cli {
namespace {

constexpr std::uint32_t days_max = 366;

Result<RehearseOptions> read_options(const Common& common, const RehearseArgs& args) {
  if (args.days == 0 || args.days > days_max)
    return fail(Errc::value, {"--days", 0, 0},
                fmt::format("{} days; 1 to {} are possible", args.days, days_max));
  RehearseOptions out{.days = args.days, .seed = common.seed.value_or(1)};
  Config model = Config::map(), policy = Config::map();
  if (!args.model.empty()) {
    WEFT_TRY(model, load_yaml(args.model));
  }
  if (!args.policy.empty()) {
    WEFT_TRY(policy, load_yaml(args.policy));
  }
  WEFT_TRY(out.model, read_rehearse_model(model));
  WEFT_TRY(out.policy, operate::repair::read_policy(policy));
  return out;
}

Status run(const Common& common, const RehearseArgs& args) {
  WEFT_TRY(const RehearseOptions options, read_options(common, args));
  WEFT_TRY(const model::Fabric fabric, load_fabric(common, args.fabric));
  Progress progress("rehearse", args.days, common.progress());
  WEFT_TRY(const RehearseReport report,
           rehearse(fabric, options, [&](double days) { progress.update(days); }));
  progress.finish();
  fmt::print("{}", common.json ? to_json(report) : to_table(report));
  return {};
}

}  // namespace

void add_rehearse(CLI::App& command, RehearseArgs& args) {
  command.add_option("fabric", args.fabric, "Scenario or fabric file")->required();
  command.add_option("--days", args.days, "How long");
  command.add_option("--policy", args.policy, "What repair may do, laid over the default");
  command.add_option("--model", args.model, "What fails how often, laid over the default");
}

int rehearse_command(const Common& common, const RehearseArgs& args) {
  const Status status = run(common, args);
  return status ? done : report(status.error());
}

}  // namespace weft::cli
