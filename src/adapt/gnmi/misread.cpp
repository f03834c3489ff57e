#include "adapt/gnmi/misread.hpp"

namespace weft::adapt::gnmi {

std::string_view to_text(Misread why) {
  constexpr std::array<std::string_view, misread_count> names{
      "unmapped",     "bad_value", "says_nothing", "no_key",  "bad_json",
      "bad_encoding", "bad_path",  "unknown_part", "too_many"};
  return names[static_cast<std::size_t>(why)];
}

void MisreadTable::add(std::string_view path, Misread why) {
  ++totals_[static_cast<std::size_t>(why)];
  const std::string_view shown = path.substr(0, path_bytes_shown);
  auto at = by_path_.find(shown);
  if (at == by_path_.end()) {
    if (by_path_.size() == paths_max) return;
    at = by_path_.emplace(shown, Counts{}).first;
  }
  ++at->second[static_cast<std::size_t>(why)];
}

std::vector<MisreadTable::Row> MisreadTable::rows() const {
  std::vector<Row> out;
  for (const auto& [path, counts] : by_path_)
    for (std::size_t i = 0; i < misread_count; ++i)
      if (counts[i] > 0) out.push_back({path, static_cast<Misread>(i), counts[i]});
  return out;
}

}  // namespace weft::adapt::gnmi
