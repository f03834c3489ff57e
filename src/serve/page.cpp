#include "serve/page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "base/markup.hpp"
#include "os/digest.hpp"
#include "plan/report/assets.hpp"
#include "serve/auth.hpp"
#include "serve/listing.hpp"

namespace weft::serve {
namespace {

using nlohmann::json;

constexpr std::size_t rows_max = 200;

constexpr std::string_view style = R"css(
:root{color-scheme:light dark;--line:#8883;--dim:#888;--bad:#c62828;--good:#2e7d32}
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem}
header{display:flex;gap:1rem;align-items:baseline}h1{font-size:1.3rem;margin:0}
#live{margin-left:auto;color:var(--dim)}
table{border-collapse:collapse;width:100%;margin-top:1rem}
th{text-align:left;font-weight:600;color:var(--dim)}
th,td{padding:.4rem .6rem;border-bottom:1px solid var(--line)}
td.n{text-align:right;font-variant-numeric:tabular-nums}code{font-size:.9em}
.good{color:var(--good)}.bad{color:var(--bad)}.dim{color:var(--dim)}
)css";

constexpr std::string_view script = R"js(
const live = document.getElementById('live');
let waiting = false;
async function refresh() {
  waiting = false;
  const reply = await fetch(location.pathname, {cache: 'no-store'});
  if (!reply.ok) return;
  const fresh = new DOMParser().parseFromString(await reply.text(), 'text/html');
  document.querySelector('main').replaceWith(fresh.querySelector('main'));
}
function soon() {
  if (waiting) return;
  waiting = true;
  setTimeout(refresh, 300);
}
const events = new EventSource('/v1/events');
for (const name of ['hello', 'case', 'repair', 'audit', 'reset'])
  events.addEventListener(name, soon);
events.onopen = () => { live.textContent = 'live'; };
events.onerror = () => { live.textContent = 'connection lost'; };
)js";

std::string text_of(const json& object, const char* name) {
  if (!object.is_object()) return "";
  const auto at = object.find(name);
  return at != object.end() && at->is_string() ? at->get<std::string>() : "";
}

// The stage of the repair of each case: of several the one that changed last.
Result<std::map<std::string, std::string>> stages(port::Store& store) {
  std::map<std::string, std::string> out;
  WEFT_TRY(const auto rows, store.documents("repair", end_of_time, 10 * rows_max));
  for (const port::Document& row : rows) {
    const json repair = json::parse(row.body, nullptr, false);
    if (!repair.is_object()) continue;
    const auto cases = repair.find("cases");
    if (cases == repair.end() || !cases->is_array()) continue;
    for (const json& of : *cases)
      if (const std::string id = text_of(of, "id"); !id.empty())
        out.try_emplace(id, state_of(row.body));
  }
  return out;
}

Result<std::vector<port::Document>> open_cases(port::Store& store) {
  std::vector<port::Document> out;
  for (const std::string_view state : {"provisional", "open"}) {
    WEFT_TRY(Page page, read_page(store, {case_kind, state, end_of_time, rows_max}));
    std::move(page.rows.begin(), page.rows.end(), std::back_inserter(out));
  }
  std::ranges::stable_sort(out, std::greater<>(), &port::Document::updated);
  out.resize(std::min(out.size(), rows_max));
  return out;
}

// "513 open, the 200 that changed last are shown".
std::string heading(std::size_t open, std::size_t shown) {
  std::string out = fmt::format("{} open", open);
  if (shown < open) out += fmt::format(", the {} most recently changed are shown", shown);
  return out;
}

std::string case_row(const port::Document& row, const std::string& stage) {
  const json document = json::parse(row.body, nullptr, false);
  const json cause = document.is_object() ? document.value("cause", json()) : json();
  return fmt::format("<tr><td>{}<td>{}<td><b>{}</b><td>{}<td class=n>{}<td>{}<td><code>{}</code>\n",
                     escape_markup(text_of(document, "opened")),
                     escape_markup(text_of(cause, "kind")), escape_markup(text_of(cause, "entity")),
                     escape_markup(state_of(row.body)), record_count(row.body),
                     stage.empty() ? "<span class=dim>none</span>" : escape_markup(stage),
                     escape_markup(row.id));
}

// Of a page with this style and script, given by their hashes, and nothing from elsewhere.
std::pair<std::string, std::string> content_policy(std::string_view style_hash,
                                                   std::string_view script_hash) {
  return {"Content-Security-Policy",
          fmt::format("default-src 'none'; connect-src 'self'; style-src 'sha256-{}'; "
                      "script-src 'sha256-{}'; base-uri 'none'; form-action 'none'; "
                      "frame-ancestors 'none'",
                      style_hash, script_hash)};
}

}  // namespace

Reply plain_page(std::string_view title, std::string_view main, const PageUpkeep& upkeep) {
  const auto refresh = upkeep.refresh_s > 0
                           ? fmt::format("<meta http-equiv=refresh content={}>\n", upkeep.refresh_s)
                           : "";
  Reply out;
  out.type = "text/html; charset=utf-8";
  out.body = fmt::format(
      "<!doctype html><html lang=en><meta charset=utf-8><title>{0}</title>\n"
      "<meta name=viewport content=\"width=device-width\">\n{1}"
      "<style>{2}</style>\n<header><h1>{0}</h1><span id=live></span></header>\n"
      "<main>{3}</main>\n{4}</html>\n",
      escape_markup(title), refresh, style, main,
      upkeep.script.empty() ? "" : fmt::format("<script>{}</script>", upkeep.script));
  out.headers.push_back(content_policy(sha256_base64(style), sha256_base64(upkeep.script)));
  return out;
}

Result<Reply> console_page(port::Store& store, const Health& health) {
  const plan::report::PageAssets& built = plan::report::console_assets;
  if (built.script.empty()) return status_page(store, health);
  Reply out;
  out.type = "text/html; charset=utf-8";
  out.body = fmt::format(
      "<!doctype html><html lang=en><meta charset=utf-8><title>weft</title>\n"
      "<meta name=viewport content=\"width=device-width\">\n<style>{}</style>\n"
      "<div id=console></div>\n<script>{}</script></html>\n",
      built.style, built.script);
  constexpr std::string_view prefix = "sha256-";
  out.headers.push_back(content_policy(built.style_hash.substr(prefix.size()),
                                       built.script_hash.substr(prefix.size())));
  return out;
}

Result<Reply> status_page(port::Store& store, const Health& health) {
  WEFT_TRY(const auto cases, open_cases(store));
  WEFT_TRY(const auto repairs, stages(store));
  std::string rows;
  for (const port::Document& row : cases) {
    const auto at = repairs.find(row.id);
    rows += case_row(row, at == repairs.end() ? "" : at->second);
  }
  const bool is_well = health.is_alive && health.is_ready;
  return plain_page(
      "weft",
      fmt::format("<p class={}>{}</p>\n<h2>{}</h2>\n{}", is_well ? "good" : "bad",
                  is_well ? "at work" : escape_markup(health.why),
                  heading(std::max(health.cases_open, cases.size()), cases.size()),
                  rows.empty() ? "<p class=dim>Nothing is known to be broken.</p>"
                               : "<table><tr><th>since<th>cause<th>root<th>state<th>records<th>"
                                 "repair<th>case\n" +
                                     rows + "</table>\n"),
      {.script = script});
}

}  // namespace weft::serve
