#include "cli/te_status.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <vector>

#include "adapt/live/http_client.hpp"
#include "adapt/live/http_post.hpp"
#include "base/json_line.hpp"
#include "base/plural.hpp"
#include "base/text.hpp"

namespace weft::cli {
namespace {

constexpr std::chrono::milliseconds status_patience{10'000};
constexpr std::size_t decisions_shown = 5;

std::vector<std::string> texts_of(const JsonNode& list) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < list.size(); ++i) out.push_back(list.item(i).text().value_or(""));
  return out;
}

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
    table.add({one.member("name").text().value_or(""),
               heard_s ? fmt::format("{:.1f} s ago", *heard_s) : "never", number("marks"),
               number("wanted"), fmt::format("{}", fmt::join(notes, "; "))});
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
    const std::string refused = one.member("refused").text().value_or("");
    const auto news = texts_of(one.member("news"));
    table.add({one.member("t").text().value_or(""),
               !refused.empty() ? "refused: " + refused
               : !news.empty()  ? fmt::format("{}", fmt::join(news, ", "))
               : one.member("first").flag().value_or(false) ? "start"
                                                            : "a hold or a drain",
               whole("hit"), whole("moved"), whole("changes"), share("worst"), share("hashed"),
               installed ? fmt::format("{:.1f} ms", 1e3 * *installed) : "not yet"});
  }
  return table.text();
}

}  // namespace

Status show_te_status(const Common& common, const TeStatusArgs& args) {
  WEFT_TRY(auto client,
           adapt::live::open_service(
               {args.from, "--from"},
               {.ca = args.ca, .certificate = args.certificate, .key = args.key}, status_patience));
  std::string token;
  if (!args.token.empty()) {
    WEFT_TRY(token, adapt::live::read_secret(args.token));
  }
  WEFT_TRY(const std::string text, adapt::live::get_text(client, "/v1/te", token, status_patience));
  if (common.json) {
    fmt::print("{}\n", text);
    return {};
  }
  WEFT_TRY(const JsonLine line, JsonLine::parse(text, {args.from, 0, 0}));
  const JsonNode state = line.node();
  const std::string error = state.member("error").text().value_or("");
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

}  // namespace weft::cli
