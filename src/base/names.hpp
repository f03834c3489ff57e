// Names of an enum's values, declared once. Beside the enum:
//   inline constexpr auto stage_names = std::to_array<std::string_view>({"asked", "done"});
//   constexpr std::span<const std::string_view> names_of(Stage) { return stage_names; }
//   constexpr std::string_view to_text(Stage stage) { return name_of(stage); }
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/text.hpp"

namespace weft {
inline namespace base {

template <class Enum>
concept Named = requires(Enum value) {
  { names_of(value) } -> std::convertible_to<std::span<const std::string_view>>;
};

template <class Enum>
constexpr std::string_view name_of(Enum value) {
  return names_of(value)[static_cast<std::size_t>(value)];
}

// Where the name stands in the list. Fails: Errc::unknown, with the nearest name and all
// of them.
Result<std::size_t> find_name(const Token& token, std::span<const std::string_view> names);

// from_name<Stage>({"done", where})
template <class Enum>
Result<Enum> from_name(const Token& token) {
  WEFT_TRY(const std::size_t at, find_name(token, names_of(Enum{})));
  return static_cast<Enum>(at);
}

}  // namespace base
}  // namespace weft
