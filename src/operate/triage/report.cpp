#include "operate/triage/report.hpp"

#include <fmt/format.h>

#include <array>

#include "base/json_line.hpp"
#include "base/text.hpp"

namespace weft::operate::triage {
namespace {

// "session over 36, end of link 8".
std::string relations_text(const Case& c) {
  std::array<std::size_t, model::relation_count> counts{};
  for (const Case::Member& member : c.members) ++counts[static_cast<std::size_t>(member.relation)];
  std::string out;
  for (std::size_t i = 0; i < counts.size(); ++i)
    if (counts[i] > 0)
      out += fmt::format("{}{} {}", out.empty() ? "" : ", ",
                         to_text(static_cast<model::Relation>(i)), counts[i]);
  return out;
}

}  // namespace

std::string to_json(const model::Fabric& fabric, const Case& c, const IdOf& id_of) {
  std::string out = fmt::format(
      R"({{"id":"{}","state":"{}","cause":{{"kind":"{}","entity":{}}},"confidence":{:.3f},)"
      R"("opened":"{}","closed":{},"members":[)",
      c.id, to_text(c.state), to_text(c.kind), json_string(root_name(fabric, c)), c.confidence,
      to_text(c.opened), c.closed ? fmt::format("\"{}\"", to_text(*c.closed)) : "null");
  const char* comma = "";
  for (const Case::Member& member : c.members) {
    fmt::format_to(std::back_inserter(out), R"({}{{"record":{},"relation":"{}")", comma,
                   json_string(id_of(member.serial)), to_text(member.relation));
    if (member.relation == model::Relation::learned)
      fmt::format_to(std::back_inserter(out), R"(,"confidence":{:.2f})", member.confidence);
    out += '}';
    comma = ",";
  }
  out += fmt::format(R"(],"suppressed":{},"silent":{},"unexplained":[)", c.suppressed, c.silent);
  comma = "";
  for (const Case::Member& left : c.unexplained) {
    out += comma + json_string(id_of(left.serial));
    comma = ",";
  }
  out += "]";
  if (c.is_partial) out += R"(,"partial":true)";
  if (!c.maintenance.empty())
    out += fmt::format(R"(,"maintenance":{})", json_string(c.maintenance));
  if (!c.split_from.empty()) out += fmt::format(R"(,"split_from":{})", json_string(c.split_from));
  return out + "}";
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
               fmt::format("{}", c.members.size()), fmt::format("{}", c.unexplained.size()),
               relations_text(c)});
  return table.text();
}

}  // namespace weft::operate::triage
