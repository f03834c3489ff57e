#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>

#include "base/file.hpp"
#include "base/text.hpp"
#include "cli/cli.hpp"
#include "cli/command_schema.hpp"
#include "cli/commands.hpp"
#include "cli/embedded.hpp"
#include "cli/help.hpp"

namespace weft::cli {
namespace {

struct HelpArgs {
  const CLI::App* app = nullptr;
  std::string name, out;
  bool schema = false;
};

// Null for no name.
Result<const CLI::App*> find_command(const HelpArgs& args) {
  if (args.name.empty()) return nullptr;
  std::vector<std::string> names;
  for (const CLI::App* command : args.app->get_subcommands({})) {
    if (command->get_name() == args.name) return command;
    names.push_back(command->get_name());
  }
  return fail(Errc::unknown, {"COMMAND", 0, 0},
              fmt::format("unknown command {}{}", quote(args.name), did_you_mean(args.name, names)),
              "weft help lists them");
}

// The JSON Schema of what the command prints with --json; without a command the commands that have
// one.
Status print_schema(const CLI::App* command) {
  std::vector<std::string> names;
  for (const Embedded& schema : schemas()) {
    names.emplace_back(schema.name.substr(0, schema.name.find('.')));
    if (command == nullptr)
      fmt::print("{}\n", names.back());
    else if (names.back() == command->get_name()) {
      fmt::print("{}", command_schema(schema));
      return {};
    }
  }
  if (command == nullptr) return {};
  return fail(Errc::unknown, {"--schema", 0, 0},
              fmt::format("weft {} has no JSON Schema", command->get_name()),
              fmt::format("those that do: {}", fmt::join(names, ", ")));
}

Status run_help(const Common&, const HelpArgs& args) {
  WEFT_TRY(const CLI::App* command, find_command(args));
  if (args.schema) return print_schema(command);
  const CLI::App* shown = command == nullptr ? args.app : command;  // help() would show "help"
  const std::string name = command == nullptr ? "weft" : "weft " + command->get_name();
  fmt::print("{}", shown->get_formatter()->make_help(shown, name, CLI::AppFormatMode::Normal));
  return {};
}

Status run_version(const Common&, const HelpArgs& args) {
  fmt::print("weft {}{}\n", args.app->version(),
             std::string_view(WEFT_COMMIT).empty() ? "" : ", commit " WEFT_COMMIT);
  return {};
}

Status run_completion(const Common&, const HelpArgs& args) {
  WEFT_TRY(const std::string script, completion(*args.app, args.name));
  fmt::print("{}", script);
  return {};
}

// With --out everything that an installation needs: man pages and completion scripts.
Status run_man(const Common&, const HelpArgs& args) {
  WEFT_TRY(const CLI::App* command, find_command(args));
  if (args.out.empty()) {
    fmt::print("{}", man_page(*args.app, command));
    return {};
  }
  const std::filesystem::path out = args.out;
  WEFT_TRY_STATUS(write_file(out / "weft.1", man_page(*args.app, nullptr)));
  for (const CLI::App* each : args.app->get_subcommands({}))
    WEFT_TRY_STATUS(
        write_file(out / fmt::format("weft-{}.1", each->get_name()), man_page(*args.app, each)));
  for (const auto& [shell, name] :
       {std::pair{"bash", "weft"}, std::pair{"zsh", "_weft"}, std::pair{"fish", "weft.fish"}}) {
    WEFT_TRY(const std::string script, completion(*args.app, shell));
    WEFT_TRY_STATUS(write_file(out / shell / name, script));
  }
  return {};
}

}  // namespace

void add_help(Commands& commands) {
  const auto add = [&](const char* name, const char* what,
                       Status (*run)(const Common&, const HelpArgs&)) {
    const auto added = commands.add<HelpArgs>(name, what, run);
    added.args.app = &commands.app();
    return added;
  };
  const auto help = add("help", "Show what a command does, its options and examples", run_help);
  help.options.add_option("command", help.args.name, "Command; all of them without one");
  help.options.add_flag("--schema", help.args.schema,
                        "The JSON Schema of its --json; without a command those that have one");
  add("version", "Show the version", run_version);
  const auto shell = add("completion", "Print the completion script of a shell", run_completion);
  shell.options.add_option("shell", shell.args.name, "bash, zsh or fish")->required();
  const auto man = add("man", "Print the man page of a command", run_man);
  man.options.add_option("command", man.args.name, "Command; weft itself without one");
  man.options.add_option("-o,--out", man.args.out,
                         "Directory: all man pages and completion scripts instead");
}

}  // namespace weft::cli
