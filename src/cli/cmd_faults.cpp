#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_text.hpp"
#include "base/text.hpp"
#include "cli/cli.hpp"
#include "cli/commands.hpp"
#include "model/fabric/fault_catalogue.hpp"

namespace weft::cli {
namespace {

using model::FaultEntry;

struct FaultsArgs {
  std::string kind;  // "": all
};

constexpr auto makers =
    std::to_array<std::pair<model::Maker, std::string_view>>({{model::by_scenario, "scenario"},
                                                              {model::by_lab, "lab"},
                                                              {model::by_storm, "storm"},
                                                              {model::by_rehearsal, "rehearsal"},
                                                              {model::by_world, "world"}});

std::vector<std::string> makers_of(const FaultEntry& entry) {
  std::vector<std::string> out;
  for (const auto& [maker, name] : makers)
    if ((entry.makers & maker) != 0) out.emplace_back(name);
  return out;
}

std::vector<std::string_view> words(std::string_view text) {
  return text.empty() ? std::vector<std::string_view>{} : split(text, ' ');
}

std::string_view size_key(const FaultEntry& entry) {
  using enum model::FaultEffect::Measure;
  const auto measure = entry.effect.measure;
  return measure == none ? "" : measure == loss ? "loss" : "factor";
}

std::string or_none(std::string_view text) { return std::string(text.empty() ? "-" : text); }

std::string rate_text(const FaultEntry& entry) {
  return entry.per_month == 0 ? "-" : fmt::format("{}", entry.per_month);
}

std::string to_json(const FaultEntry& entry) {
  JsonObject out;
  out.add("kind", entry.name).add("on", words(entry.on)).add("made_by", makers_of(entry));
  out.add("does", entry.does).add("size", size_key(entry)).add("says", words(entry.says));
  out.add("when", entry.when).add("lab", entry.lab).add("causes", words(entry.cause));
  if (entry.per_month > 0)
    out.add("per_year", entry.per_month * 365 / 30, digits(6)).add("source", entry.source);
  return out.text();
}

std::string in_full(const FaultEntry& entry) {
  std::string out = fmt::format("{}: {}\n", entry.name, entry.does);
  const auto add = [&](std::string_view what, std::string_view text) {
    out += fmt::format("  {:<10}{}\n", what, text.empty() ? "-" : text);
  };
  add("on", fmt::format("{}", fmt::join(words(entry.on), ", ")));
  add("made by", fmt::format("{}", fmt::join(makers_of(entry), ", ")));
  add("size", size_key(entry));
  add("says", fmt::format("{}", fmt::join(words(entry.says), ", ")));
  add("when", entry.when);
  add("in a lab", entry.lab);
  add("case", fmt::format("{}", fmt::join(words(entry.cause), ", ")));
  add("rate", entry.per_month == 0
                  ? std::string()
                  : fmt::format("{} of a part in 30 days ({})", entry.per_month, entry.source));
  return out;
}

std::string table() {
  using enum Table::Align;
  Table out({{"kind", left}, {"on", left}, {"made by", left}, {"case", left}, {"per month"}});
  for (const FaultEntry& entry : model::fault_catalogue())
    out.add({std::string(entry.name), std::string(entry.on),
             or_none(fmt::format("{}", fmt::join(makers_of(entry), " "))), or_none(entry.cause),
             rate_text(entry)});
  return out.text();
}

Status run_faults(const Common& common, const FaultsArgs& args) {
  if (!args.kind.empty()) {
    WEFT_TRY(const model::FaultKind kind, model::find_fault({args.kind, {}}));
    const FaultEntry& entry = fault_entry(kind);
    fmt::print("{}", common.json ? to_json(entry) + "\n" : in_full(entry));
  } else if (common.json) {
    for (const FaultEntry& entry : model::fault_catalogue()) fmt::print("{}\n", to_json(entry));
  } else {
    fmt::print("{}", table());
  }
  return {};
}

}  // namespace

void add_faults(Commands& commands) {
  const auto [c, args] = commands.add<FaultsArgs>(
      "faults", "Kinds of faults: what each does, what it says, and who can make it", run_faults);
  c.add_option("kind", args.kind, "One of them, in full");
}

}  // namespace weft::cli
