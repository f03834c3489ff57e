#include "model/case.hpp"

#include <algorithm>
#include <array>

namespace weft::model {
namespace {

constexpr std::array<std::string_view, cause_kind_count> kinds{
    "port_flap",        "optic",         "cable",       "host_nic", "host", "platform", "line_card",
    "switch_part",      "control_plane", "rack_switch", "switch",   "rack", "power",    "zone",
    "misconfiguration", "congestion",    "unknown"};
static_assert(static_cast<std::size_t>(CauseKind::unknown) + 1 == cause_kind_count);

constexpr std::array<std::string_view, relation_count> relations{
    "itself",     "end of link",   "port of", "session over", "probe over",     "NIC below",
    "host below", "device inside", "part of", "same change",  "pauses towards", "learned"};
static_assert(static_cast<std::size_t>(Relation::learned) + 1 == relation_count);

}  // namespace

std::string_view to_text(CauseKind kind) { return kinds[static_cast<std::size_t>(kind)]; }
std::string_view to_text(Relation relation) {
  return relations[static_cast<std::size_t>(relation)];
}

std::optional<CauseKind> cause_kind(std::string_view name) {
  const auto* const at = std::ranges::find(kinds, name);
  if (at == kinds.end()) return std::nullopt;
  return static_cast<CauseKind>(at - kinds.begin());
}

std::vector<std::string> cause_kind_names() { return {kinds.begin(), kinds.end()}; }

std::string_view to_text(CaseState state) {
  constexpr std::array<std::string_view, 3> names{"provisional", "final", "maintenance"};
  return names[static_cast<std::size_t>(state)];
}

std::string root_name(const Fabric& fabric, const Case& c) {
  if (c.kind == CauseKind::config && !c.change.empty()) return "change:" + c.change;
  return name(fabric, c.root);
}

}  // namespace weft::model
