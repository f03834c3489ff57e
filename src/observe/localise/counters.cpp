#include "observe/localise/counters.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/json_line.hpp"

namespace weft::observe::localise {
namespace {

std::uint64_t read_count(const JsonLine& line, std::string_view key,
                         std::optional<std::int64_t> fallback, Errors& errors) {
  return static_cast<std::uint64_t>(line.count(key, fallback, 0, INT64_MAX, errors));
}

LinkCounters read_row(const model::Fabric& fabric, const JsonLine& line, Errors& errors) {
  LinkCounters row;
  row.t = line.time("t", {}, errors);
  row.traffic_class = line.text("class", "0", errors);
  row.packets = read_count(line, "packets", {}, errors);
  row.marks = read_count(line, "marks", 0, errors);
  row.drops = read_count(line, "drops", 0, errors);
  row.errors = read_count(line, "errors", 0, errors);
  if (row.marks > row.packets || row.drops > row.packets)
    errors.push_back(
        {Errc::value,
         line.where(),
         fmt::format("{} marks and {} drops for {} packets", row.marks, row.drops, row.packets),
         "include marked and dropped packets in `packets`",
         {}});
  const std::string link = line.text("link", {}, errors);
  if (link.empty()) return row;
  auto found = fabric.find_link({link, line.where()});
  if (found)
    row.link = *found;
  else
    errors.push_back(std::move(found).error());
  return row;
}

}  // namespace

Result<std::vector<LinkCounters>> read_counters(const model::Fabric& fabric, LineReader& lines) {
  std::vector<LinkCounters> out;
  Errors errors;
  while (const auto line = next_json_line(lines, errors))
    out.push_back(read_row(fabric, *line, errors));
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  return out;
}

std::string to_json(const model::Fabric& fabric, const LinkCounters& row) {
  return JsonObject()
      .add("t", row.t)
      .add("link", fabric.name(row.link))
      .add("class", row.traffic_class)
      .add("packets", row.packets)
      .add("marks", row.marks)
      .add("drops", row.drops)
      .add("errors", row.errors)
      .text();
}

}  // namespace weft::observe::localise
