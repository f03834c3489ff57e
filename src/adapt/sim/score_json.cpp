// What scores read and write.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "adapt/sim/score.hpp"
#include "base/json_line.hpp"

namespace weft::adapt::sim {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

// JSON of one line, or a value that is no object. No exceptions: nlohmann's parse can be asked so.
json parse_object(std::string_view line) {
  json out = json::parse(line, nullptr, false);
  return out.is_object() ? out : json();
}

std::string text_of(const json& object, const char* key) {
  const auto at = object.find(key);
  return at != object.end() && at->is_string() ? at->get<std::string>() : "";
}

// False when something is missing or of the wrong kind.
bool read_case(const json& line, ScoredCase& out) {
  const auto cause = line.find("cause");
  const auto members = line.find("members");
  if (cause == line.end() || !cause->is_object() || members == line.end() || !members->is_array())
    return false;
  out.id = text_of(line, "id");
  out.kind = text_of(*cause, "kind");
  out.entity = text_of(*cause, "entity");
  for (const json& member : *members) {
    std::string id = member.is_string()   ? member.get<std::string>()
                     : member.is_object() ? text_of(member, "record")
                                          : "";
    if (id.empty()) return false;
    out.members.push_back(std::move(id));
  }
  return !out.id.empty() && !out.kind.empty();
}

}  // namespace

Result<StormLabels> read_labels(LineReader& lines) {
  StormLabels out;
  Errors errors;
  while (const auto line = next_json_line(lines, errors)) {
    out.record.push_back(line->text("record", {}, errors));
    out.fault.push_back(line->text("fault", "", errors));
  }
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  return out;
}

Result<std::vector<ScoredCase>> read_cases(std::string_view text, const std::string& file) {
  std::vector<ScoredCase> out;
  Errors errors;
  for (std::uint32_t number = 1; !text.empty() && errors.size() < errors_max; ++number) {
    const std::size_t end = text.find('\n');
    const std::string_view line = trim(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    ScoredCase one;
    if (line.empty()) continue;
    if (read_case(parse_object(line), one))
      out.push_back(std::move(one));
    else
      errors.push_back({Errc::parse,
                        {file, number, 0},
                        "not a case",
                        R"(write {"id", "cause": {"kind", "entity"}, "members": [{"record"}]})",
                        {}});
  }
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  return out;
}

std::string to_json(const Score& s) {
  const auto agreement = [](const Score::Agreement& a) {
    return ordered_json{{"precision", a.precision}, {"recall", a.recall}, {"f1", a.f1()}};
  };
  ordered_json out{{"cases", s.cases},
                   {"faults", s.faults},
                   {"silent_faults", s.silent_faults},
                   {"splits", s.splits},
                   {"lost", s.lost},
                   {"false_cases", s.false_cases},
                   {"macro_f1", s.macro_f1},
                   {"pairwise", agreement(s.pairwise)},
                   {"b_cubed", agreement(s.b_cubed)},
                   {"top1", s.top1},
                   {"top1_entity", s.top1_entity},
                   {"top1_kind", s.top1_kind},
                   {"records", s.records},
                   {"fault_records", s.fault_records},
                   {"unassigned", s.unassigned},
                   {"background_taken", s.background_taken},
                   {"doubly_claimed", s.doubly_claimed},
                   {"compression", s.compression}};
  ordered_json types = ordered_json::object();
  for (std::size_t i = 0; i < problem_type_count; ++i)
    if (const Score::PerType& row = s.types[i]; row.faults > 0)
      types[std::string(problem_type_names[i])] = {{"faults", row.faults},
                                                   {"macro_f1", row.macro_f1},
                                                   {"top1", row.top1},
                                                   {"splits", row.splits},
                                                   {"lost", row.lost}};
  out["types"] = std::move(types);
  out["wrong"] = s.wrong;
  return out.dump(2) + "\n";
}

}  // namespace weft::adapt::sim
