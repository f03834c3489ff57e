#include "adapt/sim/storm_write.hpp"

#include <fmt/format.h>

#include <array>
#include <map>

#include "adapt/sim/storm_syslog.hpp"
#include "base/file.hpp"
#include "base/json_text.hpp"
#include "base/text.hpp"

namespace weft::adapt::sim {
namespace {

std::string labels_of(const Storm& storm, const model::RecordSet& records) {
  std::string out;
  for (std::size_t i = 0; i < storm.lines.size(); ++i) {
    const std::uint32_t fault = storm.lines[i].fault;
    JsonObject line;
    line.add("record", records.ids[i]);
    if (fault == 0)
      line.add("fault", nullptr);
    else
      line.add("fault", fmt::format("f{}", fault));
    out += line.text() + "\n";
  }
  return out;
}

std::array<std::uint64_t, model::source_count> count_sources(const Storm& storm) {
  std::array<std::uint64_t, model::source_count> out{};
  for (const StormLine& line : storm.lines) ++out[static_cast<std::size_t>(line.source)];
  return out;
}

struct TypeCount {
  std::uint64_t faults = 0, lines = 0;
};
std::array<TypeCount, problem_type_count> count_types(const Storm& storm) {
  std::vector<std::size_t> type_of;
  std::array<TypeCount, problem_type_count> out;
  for (const model::Episode& fault : storm.truth) {
    type_of.push_back(static_cast<std::size_t>(*problem_type(fault.kind)));
    ++out[type_of.back()].faults;
  }
  for (const StormLine& line : storm.lines)
    if (line.fault != 0) ++out[type_of[line.fault - 1]].lines;
  return out;
}

std::uint64_t fault_lines_of(const Storm& storm) {
  std::uint64_t out = 0;
  for (const StormLine& line : storm.lines) out += line.fault != 0 ? 1 : 0;
  return out;
}

}  // namespace

Status write_storm(const model::Fabric& fabric, const Storm& storm, const StormOptions& options,
                   StormFormat format, const std::string& directory) {
  const model::RecordSet records = to_records(fabric, storm, format);
  const StormScribe scribe(fabric, options);
  std::string lines, logged, truth;
  for (std::size_t i = 0; i < storm.lines.size(); ++i) {
    if (format == StormFormat::syslog && storm.lines[i].source == model::Source::syslog)
      logged += scribe.captured(storm.lines[i]) + "\n";
    else
      lines += to_json(fabric, records, records.rows[i]) + "\n";
  }
  for (const model::Episode& fault : storm.truth) truth += to_json(fault) + "\n";
  if (format == StormFormat::syslog) {
    WEFT_TRY_STATUS(write_file(directory + "/syslog.log", logged));
    WEFT_TRY_STATUS(write_file(directory + "/inventory.csv", scribe.inventory()));
  }
  WEFT_TRY_STATUS(write_file(directory + "/records.jsonl", lines));
  WEFT_TRY_STATUS(write_file(directory + "/truth.jsonl", truth));
  WEFT_TRY_STATUS(write_file(directory + "/labels.jsonl", labels_of(storm, records)));
  return write_file(directory + "/storm.json", storm_json(storm, options));
}

std::string storm_summary(const Storm& storm, const StormOptions& options) {
  const std::uint64_t of_faults = fault_lines_of(storm);
  std::string out =
      fmt::format("{} lines in {} h: {} of {} faults, {} of the background\n\n", storm.lines.size(),
                  options.hours, of_faults, storm.truth.size(), storm.lines.size() - of_faults);
  Table types({{"type", Table::Align::left}, {"faults"}, {"lines"}});
  const auto counts = count_types(storm);
  for (std::size_t i = 0; i < counts.size(); ++i)
    if (counts[i].faults > 0)
      types.add({std::string(problem_type_names[i]), fmt::format("{}", counts[i].faults),
                 fmt::format("{}", counts[i].lines)});
  Table sources({{"source", Table::Align::left}, {"lines"}});
  const auto said = count_sources(storm);
  for (std::size_t i = 0; i < said.size(); ++i)
    if (said[i] > 0)
      sources.add(
          {std::string(to_text(static_cast<model::Source>(i))), fmt::format("{}", said[i])});
  return out + (types.row_count() > 0 ? types.text() + "\n" : "") + sources.text();
}

std::string storm_json(const Storm& storm, const StormOptions& options) {
  JsonObject types, sources;
  const auto counts = count_types(storm);
  for (std::size_t i = 0; i < counts.size(); ++i)
    if (counts[i].faults > 0)
      types.add(problem_type_names[i],
                JsonObject().add("faults", counts[i].faults).add("lines", counts[i].lines));
  const auto said = count_sources(storm);
  for (std::size_t i = 0; i < said.size(); ++i)
    if (said[i] > 0) sources.add(to_text(static_cast<model::Source>(i)), said[i]);
  return JsonObject()
             .add("lines", storm.lines.size())
             .add("fault_lines", fault_lines_of(storm))
             .add("faults", storm.truth.size())
             .add("span_s", 3600 * options.hours)
             .add("adjacent", options.adjacent)
             .add("seed", options.seed)
             .add("ports_per_card", options.ports_per_card)
             .add("start", options.start)
             .add("end", storm.end)
             .add("types", types)
             .add("sources", sources)
             .text() +
         "\n";
}

}  // namespace weft::adapt::sim
