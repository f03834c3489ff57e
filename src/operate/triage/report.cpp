#include "operate/triage/report.hpp"

#include <fmt/format.h>

#include <array>

#include "base/text.hpp"

namespace weft::operate::triage {
namespace {

// "session over 36, end of link 8".
std::string relations_text(const Case& c) {
  std::array<std::size_t, model::relation_count> counts{};
  for (const Case::Member& member : c.members) ++counts[static_cast<std::size_t>(member.relation)];
  for (const Case::Summary& row : c.members_summarised)
    counts[static_cast<std::size_t>(row.relation)] += row.records;
  std::string out;
  for (std::size_t i = 0; i < counts.size(); ++i)
    if (counts[i] > 0)
      out += fmt::format("{}{} {}", out.empty() ? "" : ", ",
                         to_text(static_cast<model::Relation>(i)), counts[i]);
  return out;
}

void add_summaries(const model::Fabric& fabric, std::string_view key,
                   const std::vector<Case::Summary>& rows, JsonObject& out) {
  JsonList list;
  for (const Case::Summary& row : rows)
    list.add(JsonObject()
                 .add("entity", model::name(fabric, row.entity))
                 .add("kind", row.kind)
                 .add("source", row.source)
                 .add("relation", row.relation)
                 .add("records", row.records)
                 .add("first", row.first)
                 .add("last", row.last));
  out.add_if(key, list);
}

}  // namespace

JsonObject json_object(const model::Fabric& fabric, const Case& c, const IdOf& id_of) {
  JsonList members, unexplained;
  for (const Case::Member& member : c.members) {
    JsonObject row;
    row.add("record", id_of(member.serial)).add("relation", member.relation);
    if (member.relation == model::Relation::learned)
      row.add("confidence", member.confidence, decimals(2));
    members.add(row);
  }
  for (const Case::Member& left : c.unexplained) unexplained.add(id_of(left.serial));
  JsonObject out;
  out.add("id", c.id)
      .add("state", c.state)
      .add("cause", cause_object(fabric, c))
      .add("confidence", c.confidence, decimals(3))
      .add("opened", c.opened)
      .add("closed", c.closed)
      .add("members", members)
      .add("suppressed", c.suppressed)
      .add("silent", c.silent)
      .add("unexplained", unexplained);
  add_summaries(fabric, "members_summarised", c.members_summarised, out);
  add_summaries(fabric, "unexplained_summarised", c.unexplained_summarised, out);
  out.add_if("partial", c.is_partial)
      .add_if("maintenance", c.maintenance)
      .add_if("split_from", c.split_from);
  return out;
}

JsonObject cause_object(const model::Fabric& fabric, const Case& c) {
  return JsonObject().add("kind", c.kind).add("entity", root_name(fabric, c));
}

std::string to_json(const model::Fabric& fabric, const Case& c, const IdOf& id_of) {
  return json_object(fabric, c, id_of).text();
}

std::string to_table(const model::Fabric& fabric, const std::vector<Case>& cases) {
  using Align = Table::Align;
  Table table({{"case", Align::left},
               {"opened", Align::left},
               {"closed", Align::left},
               {"state", Align::left},
               {"type", Align::left},
               {"root", Align::left},
               {"sure"},
               {"records"},
               {"not explained"},
               {"by", Align::left}});
  for (const Case& c : cases)
    table.add({c.id, to_text(c.opened), c.closed ? to_text(*c.closed) : "-",
               std::string(to_text(c.state)),
               fmt::format("{}{}", to_text(c.kind), c.is_partial ? ", part" : ""),
               root_name(fabric, c), fmt::format("{:.0f} %", 100 * c.confidence),
               fmt::format("{}", c.record_count()), fmt::format("{}", c.unexplained.size()),
               relations_text(c)});
  return table.text();
}

}  // namespace weft::operate::triage
