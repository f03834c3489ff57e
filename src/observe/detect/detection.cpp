#include "observe/detect/detection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace weft::observe::detect {

model::Record& add_record(model::RecordSet& set, const Detection& detection, const Rule& rule,
                          std::string id,
                          const std::function<std::string(std::uint64_t)>& id_of_serial) {
  constexpr std::size_t names_bytes_max = 8192;
  const bool is_end = detection.phase == Detection::Phase::ended;
  std::string names;
  for (const std::uint64_t serial : detection.members) {
    const std::string name = id_of_serial(serial);
    if (names.size() + name.size() >= names_bytes_max) break;
    if (!names.empty()) names += ' ';
    names += name;
  }
  model::Attributes attributes{{"detection", rule.name},
                               {"phase", is_end ? "ended" : "began"},
                               {"member_count", fmt::format("{}", detection.member_count)}};
  if (is_end) attributes.emplace_back("ends", to_text(rule.kind));
  if (!names.empty()) attributes.emplace_back("members", std::move(names));
  model::Record row;
  row.t = row.until = detection.t;
  row.received = detection.told;
  row.entity = detection.entity;
  row.kind = is_end ? model::clears(rule.kind) : rule.kind;
  row.source = model::Source::agent;
  row.value = static_cast<double>(std::max<std::uint64_t>(detection.member_count, 1));
  row.id = set.add_id(std::move(id));
  row.attrs = set.add_attributes(std::move(attributes));
  set.rows.push_back(row);
  return set.rows.back();
}

}  // namespace weft::observe::detect
