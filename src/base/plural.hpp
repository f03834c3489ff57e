// Numbers before nouns: "1 rack", "3 racks", "2 switches".
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <string>
#include <string_view>

namespace weft {

// A regular noun as it stands behind that number.
inline std::string plural(std::integral auto n, std::string_view noun) {
  const bool is_hissing = noun.ends_with("ch") || noun.ends_with('s') || noun.ends_with('x');
  return fmt::format("{}{}", noun, n == 1 ? "" : is_hissing ? "es" : "s");
}
inline std::string counted(std::integral auto n, std::string_view noun) {
  return fmt::format("{} {}", n, plural(n, noun));
}

}  // namespace weft
