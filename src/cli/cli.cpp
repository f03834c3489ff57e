#include "cli/cli.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <span>
#include <system_error>
#include <utility>

#include "base/text.hpp"
#include "cli/commands.hpp"
#include "cli/help.hpp"
#include "os/log.hpp"
#include "plan/run/setup.hpp"

namespace weft::cli {
namespace {

// The command as typed, less what does not change a result: reports must not depend on it.
std::string command_text(int argc, char** argv) {
  const std::vector<std::string> with_value{"--out", "-o", "--threads", "--csv"};
  const std::vector<std::string> alone{"--json", "--quiet", "-q"};
  const auto is_one_of = [](const std::vector<std::string>& names, const std::string& arg) {
    return std::ranges::any_of(
        names, [&](const std::string& name) { return arg == name || arg.starts_with(name + "="); });
  };
  std::string out = "weft";
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    if (is_one_of(alone, arg)) continue;
    if (is_one_of(with_value, arg)) {
      if (arg.find('=') == std::string::npos) ++i;
      continue;
    }
    out += " " + arg;
  }
  return out;
}

// CLI11 would take "-1" for the largest seed, and cut what is larger.
std::uint64_t seed_of(const std::string& text) {
  const auto seed = parse_count({text, {}});
  if (!seed) throw CLI::ValidationError("--seed", seed.error().text());
  return static_cast<std::uint64_t>(*seed);
}

struct Command {
  std::string_view name;
  void (*add)(Commands& commands);
};

// In the order of --help.
constexpr Command all_commands[] = {{"run", add_run},
                                    {"explain", add_explain},
                                    {"flows", add_flows},
                                    {"perf", add_perf},
                                    {"trace", add_trace},
                                    {"sweep", add_sweep},
                                    {"merge", add_merge},
                                    {"failures", add_failures},
                                    {"place", add_place},
                                    {"infer", add_infer},
                                    {"export", add_export},
                                    {"agent", add_agent},
                                    {"colltrace", add_colltrace},
                                    {"lab", add_lab},
                                    {"localise", add_localise},
                                    {"gnmi", add_gnmi},
                                    {"discover", add_discover},
                                    {"poll", add_poll},
                                    {"traps", add_traps},
                                    {"rehearse", add_rehearse},
                                    {"send", add_send},
                                    {"snapshot", add_snapshot},
                                    {"serve", add_serve},
                                    {"sli", add_sli},
                                    {"respond", add_respond},
                                    {"probe", add_probe},
                                    {"storm", add_storm},
                                    {"triage", add_triage},
                                    {"spares", add_spares},
                                    {"straggler", add_straggler},
                                    {"validate", add_validate},
                                    {"life", add_life},
                                    {"why", add_why},
                                    {"replay", add_replay},
                                    {"regions", add_regions},
                                    {"advise", add_advise},
                                    {"te", add_te},
                                    {"bulk", add_bulk},
                                    {"faults", add_faults},
                                    {"forecast", add_forecast},
                                    {"scale", add_scale},
                                    {"autoscale", add_autoscale},
                                    {"case", add_case},
                                    {"drains", add_drains},
                                    {"init", add_init},
                                    {"examples", add_examples},
                                    {"up", add_up},
                                    {"tenants", add_tenants},
                                    {"edge", add_edge},
                                    {"zones", add_zones},
                                    {"store", add_store},
                                    {"help", add_help}};

// The command that is called, which spares a short one half of its time: 50 others declare nothing.
// All of them where the first word names none, and for help.
std::span<const Command> commands_to_declare(int argc, char** argv) {
  const std::string_view first = argc > 1 ? argv[1] : "";
  const Command* called = std::ranges::find(all_commands, first, &Command::name);
  if (called == std::end(all_commands) || called->add == add_help) return all_commands;
  return {called, 1};
}

// `command`: by name; a sub-command behind its command, where others of that command read one.
bool reads_no_scenario(std::string_view command) {
  constexpr std::array<std::string_view, 37> commands{
      "autoscale",     "bulk",        "case",        "completion", "drains",       "edge",
      "examples",      "faults",      "forecast",    "help",       "init",         "lab addresses",
      "lab doctor",    "lab down",    "lab drain",   "lab exec",   "lab fault",    "lab faults",
      "lab heal",      "lab status",  "lab undrain", "man",        "merge",        "regions",
      "respond",       "scale",       "send",        "snapshot",   "store backup", "store info",
      "store restore", "storm score", "straggler",   "tenants",    "validate run", "version",
      "zones"};
  return std::ranges::find(commands, command) != commands.end();
}

// Whose output has a format of its own.
bool prints_no_json(std::string_view command) {
  constexpr std::array<std::string_view, 4> commands{"completion", "export", "init", "man"};
  return std::ranges::find(commands, command) != commands.end();
}

// "store backup": the command that was called, with its sub-commands.
std::string called_command(const CLI::App& app) {
  std::string out;
  for (const CLI::App* at = &app; !at->get_subcommands().empty();) {
    at = at->get_subcommands().front();
    out += (out.empty() ? "" : " ") + at->get_name();
  }
  return out;
}

// Options that name a file to be written; the last ones in some commands only.
constexpr std::array<std::string_view, 18> outputs{
    "--out",     "--page",    "--svg",     "--csv",           "--health",  "--ideal",
    "--learn",   "--marks",   "--prices",  "--write-demands", "--copies",  "--write-transfers",
    "--openslo", "--metrics", "--mapping", "--plan",          "--records", "--truth"};

// Two options, or arguments, that name the same file, however they spell it; one of them writes it.
Status refuse_overwriting(const CLI::App& app) {
  struct Named {
    std::string option, path;
  };
  std::vector<Named> files;
  const auto collect = [&](const auto& self, const CLI::App& command) -> void {
    for (const CLI::Option* option : command.get_options())
      for (const std::string& path : option->results()) {
        std::error_code none;
        if (std::filesystem::is_regular_file(path, none))
          files.push_back({option->get_name(), path});
      }
    for (const CLI::App* next : command.get_subcommands()) self(self, *next);
  };
  collect(collect, app);
  std::ranges::stable_sort(files, {}, [](const Named& file) {
    return std::ranges::find(outputs, file.option) - outputs.begin();
  });
  for (const Named& out : files) {
    if (std::ranges::find(outputs, out.option) == outputs.end()) break;
    for (const Named& in : files) {
      std::error_code none;
      if (in.option == out.option || !std::filesystem::equivalent(in.path, out.path, none))
        continue;
      return fail(
          Errc::value, {out.option, 0, 0},
          fmt::format("it would write over {}, which {} names too", quote(out.path), in.option),
          "name another file");
    }
  }
  return {};
}

std::string usage_error(const CLI::App& app, const CLI::ParseError& error) {
  std::string what = error.what();
  const std::vector<std::string> rest = app.remaining();
  if (app.get_subcommands().empty() && !rest.empty()) {
    std::vector<std::string> names;
    for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
    what = fmt::format("unknown command \"{}\"{}", rest.front(), did_you_mean(rest.front(), names));
  }
  return what + "; run weft with --help for more information";
}

int output_lost() {
  fmt::print(stderr, "weft: error: cannot write to standard output; is the disk full?\n");
  return work_failed;
}

}  // namespace

void Commands::add_log_level(CLI::App& command) {
  const auto names = names_of(LogLevel());
  command
      .add_option_function<std::string>(
          "--log-level",
          [names](const std::string& name) {
            set_log_level(static_cast<LogLevel>(std::ranges::find(names, name) - names.begin()));
          },
          "What is said on standard error: error, warning or info")
      ->default_str("info")
      ->check(CLI::IsMember(std::vector<std::string>(names.begin(), names.end())));
}

void Commands::add_common(CLI::App& app) {
  Common& common = common_;
  const std::string before = app.option_defaults()->get_group();
  app.option_defaults()->group("Common options");
  app.add_option_function<std::string>(
         "--seed", [&common](const std::string& text) { common.seed = seed_of(text); },
         "Seed for hashes and random choices")
      ->type_name("UINT");
  app.add_option("--threads", common.threads, "Threads to use; 0 for one per core");
  CLI::Option* set =
      app.add_option("--set", common.set, "KEY.PATH=VALUE: overrides one key of the scenario")
          ->take_all()
          ->allow_extra_args(false);  // what stands behind it is no second one, but the file
  const bool is_sub = app.get_parent() != nullptr && app.get_parent() != &app_;
  if (reads_no_scenario((is_sub ? app.get_parent()->get_name() + " " : "") + app.get_name()))
    set->group("");  // not offered
  app.add_flag("-q,--quiet", common.quiet, "No progress output on the terminal");
  CLI::Option* json =
      app.add_flag("--json", common.json, "Machine-readable output on standard output");
  if (!is_sub && prints_no_json(app.get_name())) json->group("");
  app.option_defaults()->group(before);
}

void Commands::add_lone_flag(CLI::App& command, const std::string& name, bool& value,
                             const std::string& help) {
  const CLI::Option* const flag = command.add_flag(name, value, help);
  command.parse_complete_callback([&command, flag] {
    if (flag->count() == 0) return;
    for (const CLI::Option* other : command.get_options())
      if (other != flag && other->count() > 0)
        throw CLI::ExcludesError(flag->get_name(), other->get_name());
  });
}

CLI::App& Commands::add_call(const std::string& name, const std::string& help,
                             std::function<int()> call) {
  CLI::App* command = app_.add_subcommand(name, help);
  add_common(*command);
  command->callback([this, call = std::move(call)] { call_ = call; });
  return *command;
}

Result<model::LoadOptions> Common::load_options(std::vector<std::string> keys) const {
  set_is_read_ = true;
  model::LoadOptions out{.set = {}, .seed = seed, .keys = std::move(keys)};
  for (const std::string& item : set) {
    const std::size_t at = item.find('=');
    if (at == std::string::npos || at == 0)
      return fail(Errc::parse, {"--set", 0, 0}, fmt::format("\"{}\" has no key or no \"=\"", item),
                  "write --set routing.qps=16");
    out.set.emplace_back(item.substr(0, at), item.substr(at + 1));
  }
  return out;
}

Status refuse_set(const Common& common, std::string_view what) {
  if (common.set.empty()) return {};
  return fail(Errc::unsupported, {"--set", 0, 0},
              fmt::format("it does not apply to {}, which reads no scenario", what),
              "leave it out");
}

Result<const model::Scenario*> choose_variant(const model::ScenarioFile& file,
                                              const std::string& name) {
  if (name.empty()) return &file.variants.front();
  std::vector<std::string> names;
  for (const model::Scenario& variant : file.variants) {
    if (variant.name == name) return &variant;
    names.push_back(variant.name);
  }
  return fail(Errc::unknown, {"--variant", 0, 0},
              fmt::format("unknown variant {}{}", quote(name), did_you_mean(name, names)),
              fmt::format("choose one of: {}", fmt::join(names, ", ")));
}

int report(const Error& error) {
  const std::string text = error.text();
  for (const std::string_view line : split(text, '\n'))
    fmt::print(stderr, "weft: error: {}\n", line);
  return bad_input;
}

Result<std::int64_t> read_span_ns(const std::string& text, const char* option) {
  WEFT_TRY(const Duration span, parse_duration({text, {option, 0, 0}}));
  return span.ps / ps_per_ns;
}

std::vector<std::string> fabric_file_keys() {
  return {"name", "fabric", "routing", "transport", "faults", "engine", "seed"};
}

std::vector<std::string> collective_file_keys() {
  std::vector<std::string> keys = fabric_file_keys();
  keys.emplace_back("collectives");
  return keys;
}

Result<FabricFile> load_fabric_file(const Common& common, const std::string& path) {
  WEFT_TRY(const model::LoadOptions options, common.load_options(fabric_file_keys()));
  WEFT_TRY(const model::ScenarioFile file, model::load_scenario(path, options));
  WEFT_TRY(plan::Setup setup, plan::read_setup(file.variants.front()));
  model::State state = setup.state_at_start();
  return FabricFile{std::move(setup.fabric), std::move(state)};
}

Result<model::Fabric> load_fabric(const Common& common, const std::string& path) {
  WEFT_TRY(FabricFile file, load_fabric_file(common, path));
  return std::move(file.fabric);
}

Result<model::State> read_down(const model::Fabric& fabric, const std::string& list,
                               const char* option, model::State state) {
  for (const std::string_view part : split(list, ',')) {
    const std::string name(trim(part));
    if (name.empty()) continue;
    const Token token{name, {option, 0, 0}};
    if (const auto cable = fabric.find_cable(token)) {
      for (const model::LinkId link : {forward(*cable), reverse(forward(*cable))})
        state.set(link, {.health = model::Health::down});
      continue;
    }
    WEFT_TRY(const model::NodeId node, fabric.find_node(token));
    if (!fabric.is_switch(node))
      return fail(Errc::value, token.where, fmt::format("{} is not a switch", quote(name)),
                  "name a switch, or a cable as a--b");
    state.set(node, {.health = model::Health::down});
  }
  return state;
}

int run(int argc, char** argv) {
  CLI::App app("Designs and operates the networks on which AI models are trained.", "weft");
  app.require_subcommand(1);
  app.set_version_flag("--version", WEFT_VERSION);
  Common common;
  common.command = command_text(argc, argv);
  Commands commands(app, common);
  commands.add_common(app);
  for (const Command& command : commands_to_declare(argc, argv)) command.add(commands);
  describe_commands(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    fmt::print(stderr, "weft: error: {}\n", usage_error(app, error));
    return bad_input;
  }
  if (const Status ok = refuse_overwriting(app); !ok) return report(ok.error());
  if (common.quiet) set_log_level(LogLevel::error);
  const std::string called = called_command(app),
                    command = app.get_subcommands().front()->get_name();
  if (reads_no_scenario(called) || reads_no_scenario(command))
    if (const Status ok = refuse_set(common, "weft " + called); !ok) return report(ok.error());
  if (common.json && prints_no_json(command))
    return report({Errc::unsupported,
                   {"--json", 0, 0},
                   fmt::format("it does not apply to weft {}", command),
                   "leave it out",
                   {}});
  try {
    int status = commands.call();
    if (status != bad_input && common.set_is_unread())  // by a sub-command, or with these options
      status = report(refuse_set(common, "this use of weft " + called).error());
    return std::fflush(stdout) == 0 ? status : output_lost();
  } catch (const std::system_error&) {  // of fmt::print
    return output_lost();
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "weft: error: out of memory; make the scenario smaller\n");
    return work_failed;
  }
}

}  // namespace weft::cli
