// Digits to a number.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace weft {
inline namespace base {

// Digits alone, without a sign, that the type can hold.
template <class T>
std::optional<T> whole_number(std::string_view text) {
  T value{};
  const char* const end = text.data() + text.size();
  const bool is_signed = text.starts_with('-');
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || is_signed || error != std::errc{} || rest != end) return std::nullopt;
  return value;
}

}  // namespace base
}  // namespace weft
