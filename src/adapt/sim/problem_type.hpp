// The names of what can be wrong, as truths and cases spell them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace weft::adapt::sim {

enum class ProblemType : std::uint8_t {
  port_flap,
  optic,
  cable,
  line_card,
  fabric_switch,  // one without hosts: "switch"
  rack_switch,
  control_plane,
  power,
  host_nic,
  host,
  misconfiguration,
  congestion,
  zone,
};
inline constexpr std::array<std::string_view, 13> problem_type_names{
    "port_flap",        "optic",         "cable", "line_card", "switch",
    "rack_switch",      "control_plane", "power", "host_nic",  "host",
    "misconfiguration", "congestion",    "zone"};
inline constexpr std::size_t problem_type_count = problem_type_names.size();

constexpr std::string_view to_text(ProblemType type) {
  return problem_type_names[static_cast<std::size_t>(type)];
}
constexpr std::optional<ProblemType> problem_type(std::string_view name) {
  for (std::size_t i = 0; i < problem_type_count; ++i)
    if (problem_type_names[i] == name) return static_cast<ProblemType>(i);
  return std::nullopt;
}

}  // namespace weft::adapt::sim
