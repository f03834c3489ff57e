#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>

#include "base/file.hpp"
#include "base/json_text.hpp"
#include "base/text.hpp"
#include "cli/cli.hpp"
#include "cli/commands.hpp"
#include "cli/embedded.hpp"

namespace weft::cli {
namespace {

struct ExamplesArgs {
  std::string name, out = "-", all;
  bool force = false;
};

// The comment that the file begins with, as one text.
std::string comment_of(std::string_view text) {
  std::string out;
  for (const std::string_view line : split(text, '\n')) {
    if (!line.starts_with('#')) break;
    const std::string_view words = trim(line.substr(1));
    if (!out.empty() && !words.empty()) out += ' ';
    out += words;
  }
  return out;
}

bool has_key(std::string_view text, std::string_view key) {
  return text.find(fmt::format("\n{}:", key)) != std::string_view::npos;
}

constexpr std::size_t about_columns = 100;  // in the list for people

// What it is for: the first sentence of its comment.
std::string about(const Embedded& example) {
  std::string out = comment_of(example.text);
  // A sentence may end with the command behind a colon.
  for (const std::string_view end : {": weft ", ". ", "? "})
    if (const std::size_t at = out.find(end); at != std::string::npos)
      out.resize(at + (end.starts_with(':') ? 0 : 1));
  return out;
}

// The command in its comment; else the one that reads what the file has.
std::string command_of(const Embedded& example) {
  const std::string comment = comment_of(example.text);
  const std::size_t at = comment.find("weft ");
  if (at != std::string::npos && comment.find(example.name, at) != std::string::npos) {
    std::string out = comment.substr(at);
    for (std::size_t folder = 0; (folder = out.find("scenarios/")) != std::string::npos;)
      out.erase(folder, std::string_view("scenarios/").size());
    return out;
  }
  if (!example.name.ends_with(".yaml") || has_key(example.text, "switches")) return "";
  for (const std::string_view key : {"sweep", "life", "spares", "regions"})
    if (has_key(example.text, key)) return fmt::format("weft {} {}", key, example.name);
  if (has_key(example.text, "inference")) return fmt::format("weft infer {}", example.name);
  return fmt::format("weft run {}", example.name);
}

Status write_all(const Common& common, const ExamplesArgs& args) {
  const auto path_of = [&](const Embedded& example) {
    return std::filesystem::path(args.all) / example.name;
  };
  for (const Embedded& example : examples())
    if (std::filesystem::exists(path_of(example)) && !args.force)
      return fail(Errc::infeasible, {path_of(example), 0, 0}, "the file is there already",
                  "name another folder, or pass --force to write over it");
  for (const Embedded& example : examples()) {
    std::error_code error;
    std::filesystem::create_directories(path_of(example).parent_path(), error);
    WEFT_TRY_STATUS(write_file(path_of(example), example.text));  // says why, too
  }
  if (!common.quiet) fmt::print("wrote {} files into {}\n", examples().size(), args.all);
  return {};
}

Status write_one(const ExamplesArgs& args) {
  std::vector<std::string> names;
  for (const Embedded& example : examples()) {
    names.emplace_back(example.name);
    if (example.name != args.name && example.name != args.name + ".yaml") continue;
    if (args.out != "-" && std::filesystem::exists(args.out) && !args.force)
      return fail(Errc::infeasible, {args.out, 0, 0}, "the file is there already",
                  "name another one, or pass --force to write over it");
    return write_file(args.out, example.text);
  }
  return fail(Errc::unknown, {"weft examples", 0, 0},
              fmt::format("no example {}{}", quote(args.name), did_you_mean(args.name, names)),
              "weft examples lists them");
}

void list(const Common& common) {
  JsonList rows;
  Table table({{"example", Table::Align::left}, {"what it shows", Table::Align::left}});
  std::string commands;
  for (const Embedded& example : examples()) {
    rows.add(JsonObject()
                 .add("name", example.name)
                 .add("about", about(example))
                 .add("command", command_of(example)));
    std::string shown = about(example);
    if (shown.size() > about_columns)
      shown = shown.substr(0, shown.rfind(' ', about_columns)) + " ..";
    table.add({std::string(example.name), std::move(shown)});
    if (const std::string command = command_of(example); !command.empty())
      commands += "  " + command + "\n";
  }
  fmt::print("{}", common.json ? JsonObject().add("examples", rows).text() + "\n"
                               : table.text() + "\nweft examples --all DIR writes them; there:\n" +
                                     commands);
}

Status run_examples(const Common& common, const ExamplesArgs& args) {
  if (!args.all.empty()) return write_all(common, args);
  if (!args.name.empty()) return write_one(args);
  list(common);
  return {};
}

}  // namespace

void add_examples(Commands& commands) {
  const auto [c, args] = commands.add<ExamplesArgs>(
      "examples", "Scenarios and data to begin with: list, print or write them", run_examples);
  auto* const name = c.add_option("name", args.name, "Example to print, as the list has it");
  name->excludes(c.get_option("--json"));
  c.add_option("-o,--out", args.out, "File for it; - for standard output")->needs(name);
  c.add_option("--all", args.all, "Folder to write all of them to")
      ->excludes(name)
      ->excludes(c.get_option("--json"));
  c.add_flag("--force", args.force, "Write over files that are there");
}

}  // namespace weft::cli
