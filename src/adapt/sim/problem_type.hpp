// What can be wrong in a storm, named as the kind of case that it should end in.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "model/events/case.hpp"

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
inline constexpr std::size_t problem_type_count = 13;
inline constexpr auto problem_type_names = [] {
  using enum model::CauseKind;
  constexpr std::array<model::CauseKind, problem_type_count> kinds{
      flap,  optic, link, card,   device,     rack_device, control_plane,
      power, nic,   host, config, congestion, zone};
  std::array<std::string_view, problem_type_count> out;
  std::ranges::transform(kinds, out.begin(), [](model::CauseKind kind) { return to_text(kind); });
  return out;
}();

constexpr std::string_view to_text(ProblemType type) {
  return problem_type_names[static_cast<std::size_t>(type)];
}
constexpr std::optional<ProblemType> problem_type(std::string_view name) {
  for (std::size_t i = 0; i < problem_type_count; ++i)
    if (problem_type_names[i] == name) return static_cast<ProblemType>(i);
  return std::nullopt;
}

}  // namespace weft::adapt::sim
