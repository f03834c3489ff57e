#include "model/events/case.hpp"

#include <algorithm>
#include <array>

namespace weft::model {
namespace {

constexpr std::array<std::string_view, relation_count> relations{
    "itself",     "end of link",   "port of", "session over", "probe over",     "NIC below",
    "host below", "device inside", "part of", "same change",  "pauses towards", "learned"};
static_assert(static_cast<std::size_t>(Relation::learned) + 1 == relation_count);

}  // namespace

std::string_view to_text(Relation relation) {
  return relations[static_cast<std::size_t>(relation)];
}

std::optional<CauseKind> cause_kind(std::string_view name) {
  const auto* const at = std::ranges::find(cause_kind_text, name);
  if (at == cause_kind_text.end()) return std::nullopt;
  return static_cast<CauseKind>(at - cause_kind_text.begin());
}

std::vector<std::string> cause_kind_names() {
  return {cause_kind_text.begin(), cause_kind_text.end()};
}

std::string root_name(const Fabric& fabric, const Case& c) {
  if (c.kind == CauseKind::config && !c.change.empty()) return "change:" + c.change;
  return name(fabric, c.root);
}

}  // namespace weft::model
