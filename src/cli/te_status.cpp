#include "cli/te_status.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "base/json_line.hpp"
#include "base/plural.hpp"
#include "base/text.hpp"

namespace weft::cli {
namespace {

constexpr std::size_t decisions_shown = 5;

std::string switches_table(const JsonNode& switches) {
  Table table(
      {{"switch", Table::Align::left}, {"heard"}, {"marks"}, {"wanted"}, {"", Table::Align::left}});
  for (std::size_t i = 0; i < switches.size(); ++i) {
    const JsonNode one = switches.item(i);
    const auto heard_s = one.member("heard_s").number();
    std::vector<std::string> notes;
    if (one.member("silent").flag().value_or(true))
      notes.emplace_back("silent: marks have lapsed, BGP has its flows");
    if (const auto hops = texts_of(one.member("without_next_hop")); !hops.empty())
      notes.push_back(fmt::format("no next hop known: {}", fmt::join(hops, ", ")));
    if (const auto trouble = one.member("trouble").text(); trouble) notes.push_back(*trouble);
    const bool is_rack = one.member("rack").flag().value_or(false);
    const auto number = [&](std::string_view key) {
      return is_rack ? fmt::format("{}", one.member(key).whole().value_or(0)) : std::string("-");
    };
    table.add({text_of(one, "name"), heard_s ? fmt::format("{:.1f} s ago", *heard_s) : "never",
               number("marks"), number("wanted"), fmt::format("{}", fmt::join(notes, "; "))});
  }
  return table.text();
}

std::string decisions_table(const JsonNode& decisions) {
  Table table({{"time", Table::Align::left},
               {"news", Table::Align::left},
               {"hit"},
               {"moved"},
               {"marks"},
               {"worst"},
               {"hashed"},
               {"installed after"}});
  const std::size_t first =
      decisions.size() > decisions_shown ? decisions.size() - decisions_shown : 0;
  for (std::size_t i = first; i < decisions.size(); ++i) {
    const JsonNode one = decisions.item(i);
    const auto whole = [&](std::string_view key) {
      return fmt::format("{}", one.member(key).whole().value_or(0));
    };
    const auto share = [&](std::string_view key) {
      return fmt::format("{:.4g}", one.member(key).number().value_or(0));
    };
    const auto installed = one.member("installed_s").number();
    const std::string refused = text_of(one, "refused");
    const auto news = texts_of(one.member("news"));
    table.add({text_of(one, "t"),
               !refused.empty() ? "refused: " + refused
               : !news.empty()  ? fmt::format("{}", fmt::join(news, ", "))
               : one.member("first").flag().value_or(false) ? "start"
                                                            : "a hold or a drain",
               whole("hit"), whole("moved"), whole("changes"), share("worst"), share("hashed"),
               installed ? fmt::format("{:.1f} ms", 1e3 * *installed) : "not yet"});
  }
  return table.text();
}

Status show_te_status(const Common& common, const ServiceArgs& args) {
  WEFT_TRY(ServiceClient service, ServiceClient::open(args));
  WEFT_TRY(const std::string text, service.get("/v1/te"));
  if (common.json) {
    fmt::print("{}\n", text);
    return {};
  }
  WEFT_TRY(const JsonLine line, JsonLine::parse(text, {args.from, 0, 0}));
  const JsonNode state = line.node();
  const std::string error = text_of(state, "error");
  const auto down = texts_of(state.member("cables_down"));
  fmt::print("{}, {}; {}{}\n", counted(state.member("flows").whole().value_or(0), "flow"),
             counted(state.member("marks").whole().value_or(0), "mark"),
             down.empty() ? "all cables up" : fmt::format("down: {}", fmt::join(down, ", ")),
             !error.empty()                                    ? "\nno flow is placed: " + error
             : !state.member("started").flag().value_or(false) ? "\nwaiting for agents"
                                                               : "");
  fmt::print("\n{}\n{}", switches_table(state.member("switches")),
             decisions_table(state.member("decisions")));
  return {};
}

}  // namespace

int te_status_command(const Common& common, const ServiceArgs& args) {
  return service_status(show_te_status(common, args), args);
}

}  // namespace weft::cli
