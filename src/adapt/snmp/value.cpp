#include "adapt/snmp/value.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "base/text.hpp"

namespace weft::adapt::snmp {

namespace {
constexpr std::size_t parts_max = 128, text_max = 128;
}  // namespace

std::optional<Oid> parse_oid(std::string_view text) {
  Oid out;
  if (text.starts_with('.')) text.remove_prefix(1);
  for (const std::string_view part : split(text, '.')) {
    std::uint32_t number = 0;
    const char* const last = part.data() + part.size();
    const auto [end, error] = std::from_chars(part.data(), last, number);
    if (part.empty() || error != std::errc{} || end != last || out.size() == parts_max)
      return std::nullopt;
    out.push_back(number);
  }
  return out;
}

std::string to_text(const Oid& oid) { return fmt::format("{}", fmt::join(oid, ".")); }

bool starts_with(std::span<const std::uint32_t> oid, std::span<const std::uint32_t> prefix) {
  return oid.size() >= prefix.size() && std::ranges::equal(oid.first(prefix.size()), prefix);
}

std::optional<double> number(const Value& value) {
  if (value.kind == Value::Kind::integer) return static_cast<double>(value.integer);
  if (value.kind == Value::Kind::natural) return static_cast<double>(value.natural);
  return std::nullopt;
}

std::string shown(const Value& value) {
  switch (value.kind) {
    case Value::Kind::absent:
      return "";
    case Value::Kind::integer:
      return fmt::format("{}", value.integer);
    case Value::Kind::natural:
      return fmt::format("{}", value.natural);
    case Value::Kind::oid:
      return to_text(value.oid);
    case Value::Kind::address:
    case Value::Kind::text:
      break;
  }
  if (value.kind == Value::Kind::address && value.text.size() == 4) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(value.text[i]); };
    return fmt::format("{}.{}.{}.{}", byte(0), byte(1), byte(2), byte(3));
  }
  std::string out = value.text.substr(0, text_max);
  // Agents end names with zeros.
  while (!out.empty() && out.back() == '\0') out.pop_back();
  for (char& c : out)
    if (c < ' ' || c == '\x7f') c = '?';
  return out;
}

}  // namespace weft::adapt::snmp
