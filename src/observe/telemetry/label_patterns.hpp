// Which labels a row of a table is for: "where: {fstype: 'ext*'}". Internal to the room.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/config.hpp"
#include "observe/telemetry/metric_rules.hpp"

namespace weft::observe::telemetry {

using LabelPatterns = std::vector<std::pair<std::string, std::string>>;  // label, pattern with '*'

// The row's "where"; none: it is for all.
inline LabelPatterns read_label_patterns(Reader& row, Errors& errors) {
  LabelPatterns out;
  const Config* const where = row.child("where");
  if (where == nullptr) return out;
  Reader labels(*where, "where", errors);
  for (const Config::Field& field : where->fields)
    out.emplace_back(field.key, labels.text(field.key, {}));
  labels.finish();
  return out;
}

// Whether all of them fit. `label` gives a label's value, "" for one that is not there, which fits
// nothing.
template <class Label>
bool fit(const LabelPatterns& where, const Label& label) {
  return std::ranges::all_of(where, [&](const auto& condition) {
    const std::string_view value = label(condition.first);
    return !value.empty() && matches_glob(condition.second, value);
  });
}

}  // namespace weft::observe::telemetry
