#include "adapt/live/netbox.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/json_line.hpp"
#include "base/text.hpp"

namespace weft::adapt::live {

namespace {

constexpr std::size_t page_rows = 1'000, cables_max = 1'000'000, panels_max = 100;

std::string cable_name(JsonNode cable) {
  const auto id = cable.member("id").whole();
  return id ? fmt::format("cable {}", *id) : std::string("a cable without an id");
}

// What is at an end: [{object_type, object}] of 3.3 and newer, one object beside its type before.
struct NetBoxEnd {
  std::vector<std::pair<std::string, JsonNode>> objects;  // with the type of each
};

NetBoxEnd end_of(JsonNode cable, std::string_view side) {
  NetBoxEnd out;
  const JsonNode list = cable.member(fmt::format("{}_terminations", side));
  for (std::size_t i = 0; i < list.size(); ++i)
    out.objects.emplace_back(text_of(list.item(i), "object_type"), list.item(i).member("object"));
  const std::string single = fmt::format("termination_{}", side);
  if (const JsonNode object = cable.member(single))
    out.objects.emplace_back(text_of(cable, single + "_type"), object);
  return out;
}

bool is_all(const NetBoxEnd& end, std::string_view type) {
  return !end.objects.empty() && std::ranges::all_of(end.objects, [&](const auto& object) {
    return object.first == type && !text_of(object.second, "name").empty() &&
           !text_of(object.second.member("device"), "name").empty();
  });
}

bool is_panel(const NetBoxEnd& end) {
  return std::ranges::any_of(end.objects, [](const auto& object) {
    return object.first == "dcim.frontport" || object.first == "dcim.rearport";
  });
}

model::SeenCable::End interface_of(JsonNode object) {
  return {text_of(object.member("device"), "name"), text_of(object, "name")};
}

void take_cable(JsonNode cable, NetBoxCables& out) {
  const JsonNode status = cable.member("status");
  const std::string state =
      status.is_object() ? text_of(status, "value") : text_of(cable, "status");
  if (!state.empty() && state != "connected") {
    ++out.not_connected;
    return;
  }
  const NetBoxEnd a = end_of(cable, "a"), b = end_of(cable, "b");
  constexpr std::string_view interface = "dcim.interface";
  if (is_panel(a) || is_panel(b)) {
    if (out.panels.size() < panels_max) out.panels.push_back(cable_name(cable));
    return;
  }
  if (!is_all(a, interface) || !is_all(b, interface) || a.objects.size() != b.objects.size()) {
    ++out.others;
    return;
  }
  for (std::size_t i = 0; i < a.objects.size(); ++i)
    out.cables.push_back({interface_of(a.objects[i].second), interface_of(b.objects[i].second)});
}

}  // namespace

Result<std::string> take_netbox_page(std::string_view text, const Where& where, NetBoxCables& out) {
  WEFT_TRY(const JsonLine page, JsonLine::parse(text, where));
  const JsonNode results = page.node().member("results");
  if (!results.is_list())
    return fail(Errc::parse, where, "the answer has no list \"results\"",
                "name the root of a NetBox, as https://netbox.example");
  ++out.pages;
  for (std::size_t i = 0; i < results.size(); ++i) take_cable(results.item(i), out);
  if (out.cables.size() > cables_max)
    return fail(Errc::value, where, fmt::format("more than {} cables", cables_max),
                "limit them by --filter, as \"site=ams1\"");
  const std::string next = text_of(page.node(), "next");
  if (next.empty()) return next;
  // Of whatever host: behind a proxy NetBox may call itself otherwise.
  const std::size_t api = next.find("/api/dcim/cables/");
  if (api == std::string::npos || next.find_first_of(" \r\n") != std::string::npos)
    return fail(Errc::parse, where, fmt::format("{} is not the next page of cables", quote(next)));
  return next.substr(api);
}

Result<NetBoxCables> read_netbox_cables(HttpClient& client, const NetBoxQuery& query) {
  if (query.filter.find_first_of(" \r\n#") != std::string::npos)
    return fail(Errc::value, {"--filter", 0, 0}, quote(query.filter) + " is not a URL query",
                "write e.g. site=ams1&status=connected");
  // Tokens of version 2 (NetBox 4.5) begin so, and are bearer tokens.
  const auto scheme = query.token.starts_with("nbt_") ? TokenScheme::bearer : TokenScheme::token;
  NetBoxCables out;
  std::string next = fmt::format("/api/dcim/cables/?limit={}{}{}", page_rows,
                                 query.filter.empty() ? "" : "&", query.filter);
  // A server that always names another page ends here, too.
  for (std::size_t pages = 0; !next.empty() && pages <= cables_max / page_rows; ++pages) {
    const std::string path = query.prefix + next;
    WEFT_TRY(const std::string text, get_text(client, path, query.token, query.timeout, scheme));
    WEFT_TRY(next, take_netbox_page(text, {path, 0, 0}, out));
  }
  if (!next.empty())
    return fail(Errc::value, {next, 0, 0}, fmt::format("more than {} cables", cables_max),
                "limit them by --filter, as \"site=ams1\"");
  out.cables = model::each_once(std::move(out.cables));
  return out;
}

}  // namespace weft::adapt::live
