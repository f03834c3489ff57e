#include <fmt/format.h>

#include "base/json_text.hpp"
#include "base/markup.hpp"
#include "plan/report/assets.hpp"
#include "plan/report/report.hpp"
#include "plan/report/terminal.hpp"
#include "plan/report/timeline.hpp"

namespace weft::plan::report {
namespace {

// In JSON "<" stands only inside strings; escaped there, no text can end the script element.
std::string inside_script(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  for (const char c : json) {
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  }
  return out;
}

// Only the two embedded assets may run or style; nothing may be loaded from anywhere.
constexpr std::string_view head = R"(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src '{}';
 style-src '{}'; base-uri 'none'; form-action 'none'">
<title>{} - weft {}</title>
<style>{}</style>
</head>
<body>
<main id="report"></main>
<noscript><pre>)";

// The tables without a script.
constexpr std::string_view plain_page = R"(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; base-uri 'none';
 form-action 'none'">
<title>{} - weft {}</title>
</head>
<body>
<p>{}</p>
<pre>{}</pre>
</body>
</html>
)";

// By variant.
std::string maps_json(const Outcome& outcome) {
  JsonObject out;
  for (const model::VariantOutcome& variant : outcome.variants)
    if (!variant.fabric_map.empty()) out.add(variant.name, JsonText{variant.fabric_map});
  return std::move(out).text();
}

}  // namespace

bool page_is_interactive() { return !page_assets.script.empty(); }

Result<std::string> html_text(const Outcome& outcome) { return html_text(outcome, page_assets); }

std::string page_text(const Page& page, const PageAssets& assets) {
  const std::string title = escape_markup(page.title), table = escape_markup(page.table);
  if (assets.script.empty())
    return fmt::format(fmt::runtime(plain_page), title, page.command, escape_markup(page_is_plain),
                       table);
  std::string out = fmt::format(fmt::runtime(head), assets.script_hash, assets.style_hash, title,
                                page.command, assets.style);
  out += table;
  out += "</pre></noscript>\n";
  for (const auto& [id, json] : page.data) {
    out += fmt::format("<script type=\"application/json\" id=\"{}\">", id);
    out += inside_script(json);
    out += "</script>\n";
  }
  out += "<script>";
  out += assets.script;
  out += "</script>\n</body>\n</html>\n";
  return out;
}
std::string page_text(const Page& page) { return page_text(page, page_assets); }

Result<std::string> html_text(const Outcome& outcome, const PageAssets& assets) {
  WEFT_TRY(std::string json, json_text(outcome));
  return page_text({.title = outcome.scenario,
                    .command = "run",
                    .table = table_text(outcome),
                    .data = {{"report-data", std::move(json)},
                             {"timeline-data", timelines_json(outcome)},
                             {"map-data", maps_json(outcome)}}},
                   assets);
}

}  // namespace weft::plan::report
