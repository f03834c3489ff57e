#include "app/zones/zone_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/markup.hpp"
#include "base/percent.hpp"
#include "base/plural.hpp"
#include "base/text.hpp"
#include "serve/metric_text.hpp"
#include "serve/page.hpp"

namespace weft::app {

template <class Archive, Of<ZoneCase> T>
void fields(Archive& ar, T& c) {
  ar("id", c.id);
  ar("kind", c.kind);
  ar("entity", c.entity);
  ar("standing", c.standing);
  ar("opened", c.opened);
  ar("stage", c.stage);
  ar("owner", c.owner);
}

namespace {

bool was_heard(const ZoneView& zone) { return zone.heard != Timestamp{}; }

// "" of what was never heard.
std::string heard_text(const ZoneView& zone) {
  return was_heard(zone) ? to_text(Timestamp{zone.heard.ns / ns_per_s * ns_per_s}) : "never";
}

// The numbers of a zone, as cells behind its name and state; blank where it was never heard.
std::vector<std::string> numbers_of(const ZoneView& zone) {
  if (!was_heard(zone)) return std::vector<std::string>(5);
  return {std::to_string(zone.cases), std::to_string(zone.waiting), std::to_string(zone.repairs),
          fmt::format("{}{}", zone.parts_out, zone.kill_switch ? ", kill switch" : ""),
          percent(zone.uplinks, 1)};
}

JsonObject json_of(const ZoneView& zone) {
  JsonObject kinds;
  for (const auto& [kind, count] : zone.kinds) kinds.add(kind, count);
  JsonList latest;
  for (const ZoneCase& of : zone.latest) latest.add(of);
  JsonObject out;
  out.add("name", zone.name)
      .add("state", zone.state)
      .add_if("why", zone.why)
      .add_if("service", zone.service)
      .add("console", zone.console);
  if (was_heard(zone))
    out.add("heard", zone.heard)
        .add("cases", zone.cases)
        .add("kinds", kinds)
        .add("repairs", zone.repairs)
        .add("waiting", zone.waiting)
        .add("parts_out", zone.parts_out)
        .add("uplinks", zone.uplinks, decimals(4))
        .add("kill_switch", zone.kill_switch)
        .add("latest", latest);
  return out;
}

std::string link(const ZoneView& zone, const std::string& path, const std::string& text) {
  if (!zone.console.starts_with("http")) return escape_markup(text);
  return fmt::format("<a href=\"{}/{}\">{}</a>", escape_markup(zone.console), path,
                     escape_markup(text));
}

std::string page_rows(std::span<const ZoneView> zones) {
  std::string out;
  for (const ZoneView& zone : zones) {
    out += fmt::format("<tr><td>{}<td class={}>{}", link(zone, "", zone.name),
                       zone.state == ZoneState::ready ? "good" : "bad", to_text(zone.state));
    for (const std::string& number : numbers_of(zone)) out += "<td class=n>" + number;
    out += fmt::format("<td>{}<td>{}\n", heard_text(zone), escape_markup(zone.why));
  }
  return out;
}

// All zones' together, opened last first.
std::vector<std::pair<const ZoneView*, const ZoneCase*>> latest_of(
    std::span<const ZoneView> zones) {
  std::vector<std::pair<const ZoneView*, const ZoneCase*>> out;
  for (const ZoneView& zone : zones)
    for (const ZoneCase& of : zone.latest) out.emplace_back(&zone, &of);
  std::ranges::stable_sort(
      out, [](const auto& a, const auto& b) { return a.second->opened > b.second->opened; });
  out.resize(std::min(out.size(), latest_cases));
  return out;
}

std::string page_cases(std::span<const ZoneView> zones) {
  std::string out;
  for (const auto& [zone, of] : latest_of(zones))
    out += fmt::format(
        "<tr><td>{}<td>{}<td>{}<td><b>{}</b><td>{}<td>{}<td>{}\n", escape_markup(zone->name),
        escape_markup(of->opened), escape_markup(of->kind),
        link(*zone, "#/case/" + percent_encoded(of->id), of->entity), escape_markup(of->standing),
        escape_markup(of->stage), escape_markup(of->owner));
  return out;
}

}  // namespace

std::string common_causes(std::span<const ZoneView> zones) {
  std::map<std::string, std::vector<std::string>> found;
  for (const ZoneView& zone : zones)
    for (const auto& [kind, count] : zone.kinds)
      found[kind].push_back(fmt::format("{} ({})", zone.name, count));
  std::string out;
  for (const auto& [kind, where] : found)
    if (where.size() > 1)
      out += fmt::format("{}{} in {}", out.empty() ? "" : "; ", kind, fmt::join(where, ", "));
  return out;
}

std::string to_table(std::span<const ZoneView> zones) {
  using Align = Table::Align;
  Table table({{"zone", Align::left},
               {"state", Align::left},
               {"cases"},
               {"for people"},
               {"repairs"},
               {"parts out"},
               {"uplinks left"},
               {"heard", Align::left}});
  for (const ZoneView& zone : zones) {
    std::vector<std::string> row{zone.name, std::string(to_text(zone.state))};
    for (std::string& number : numbers_of(zone)) row.push_back(std::move(number));
    row.push_back(heard_text(zone));
    table.add(std::move(row));
  }
  std::string out = table.text();
  for (const ZoneView& zone : zones)
    if (!zone.why.empty()) out += fmt::format("{}: {}\n", zone.name, zone.why);
  if (const std::string common = common_causes(zones); !common.empty())
    out += fmt::format("in several zones: {}\n", common);
  const auto latest = latest_of(zones);
  if (latest.empty()) return out;
  Table cases({{"zone", Align::left},
               {"case", Align::left},
               {"cause", Align::left},
               {"since", Align::left},
               {"repair", Align::left},
               {"owner", Align::left}});
  for (const auto& [zone, of] : latest)
    cases.add({zone->name, of->id, fmt::format("{} at {}", of->kind, of->entity), of->opened,
               of->stage, of->owner});
  return out + "\n" + cases.text();
}

JsonObject to_json(std::span<const ZoneView> zones, Timestamp now) {
  JsonList items;
  for (const ZoneView& zone : zones) items.add(json_of(zone));
  return std::move(JsonObject().add("t", now).add("zones", items));
}

std::string zone_metrics(std::span<const ZoneView> zones) {
  serve::MetricText out;
  out.family("zone_ready", "1 where the zone's service answers and can take lines.");
  for (const ZoneView& zone : zones)
    out.row(zone.state == ZoneState::ready ? 1 : 0, {{"zone", zone.name}});
  const auto each = [&](std::string_view name, std::string_view help, auto value) {
    out.family(name, help);
    for (const ZoneView& zone : zones)
      if (was_heard(zone)) out.row(static_cast<double>(value(zone)), {{"zone", zone.name}});
  };
  each("zone_heard_timestamp_seconds", "When the zone's service answered last.",
       [](const ZoneView& zone) { return zone.heard.ns / ns_per_s; });
  each("zone_cases_open", "Open cases of a zone.", [](const ZoneView& zone) { return zone.cases; });
  each("zone_repairs_waiting", "Repairs of a zone that wait for a person.",
       [](const ZoneView& zone) { return zone.waiting; });
  each("zone_parts_out", "Parts of a zone out of service.",
       [](const ZoneView& zone) { return zone.parts_out; });
  each("zone_uplink_capacity_ratio", "What is left of the uplinks of the rack that lost most.",
       [](const ZoneView& zone) { return zone.uplinks; });
  return out.take();
}

serve::Reply zone_page(std::span<const ZoneView> zones, std::int64_t refresh_s) {
  std::string main = fmt::format(
      "<table><tr><th>zone<th>state<th>cases<th>for people<th>repairs<th>parts out<th>uplinks left"
      "<th>heard<th>\n{}</table>\n",
      page_rows(zones));
  if (const std::string common = common_causes(zones); !common.empty())
    main += fmt::format("<p><b>In several zones:</b> {}</p>\n", escape_markup(common));
  const std::string cases = page_cases(zones);
  main += cases.empty() ? "<p class=dim>No case is open.</p>\n"
                        : "<h2>Cases, opened last first</h2>\n<table><tr><th>zone<th>since<th>cause"
                          "<th>root<th>standing<th>repair<th>owner\n" +
                              cases + "</table>\n";
  return serve::plain_page("weft zones", main, {.script = {}, .refresh_s = refresh_s});
}

}  // namespace weft::app
