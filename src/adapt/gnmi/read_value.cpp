#include "adapt/gnmi/read_value.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "adapt/gnmi/path.hpp"
#include "base/text.hpp"

namespace weft::adapt::gnmi {
namespace {

std::expected<double, Misread> in_range(const Value& value, double least, double most,
                                        double unit = 1) {
  const auto number = to_number(value);
  if (!number || *number < least || *number > most) return std::unexpected(Misread::bad_value);
  return *number * unit;
}

struct States {
  std::string_view up;
  std::array<std::string_view, 7> down;
  std::array<std::string_view, 2> nothing;
};
constexpr States link_states{
    "UP",
    {"DOWN", "TESTING", "DORMANT", "NOT_PRESENT", "LOWER_LAYER_DOWN", "ADMIN_DOWN", "INIT"},
    {"UNKNOWN", "UNSET"}};
constexpr States session_states{
    "ESTABLISHED",
    {"IDLE", "CONNECT", "ACTIVE", "OPENSENT", "OPENCONFIRM", "CLEARING", "CLOSED"},
    {"UNKNOWN", "UNSET"}};
constexpr States part_states{"ACTIVE", {"INACTIVE", "DISABLED"}, {"UNKNOWN", "UNSET"}};

std::expected<double, Misread> state(const Value& value, const States& states) {
  const auto name = to_name(value);
  if (!name || name->empty()) return std::unexpected(Misread::bad_value);
  if (*name == states.up) return 1;
  if (std::ranges::find(states.down, *name) != states.down.end()) return 0;
  if (std::ranges::find(states.nothing, *name) != states.nothing.end())
    return std::unexpected(Misread::says_nothing);
  return std::unexpected(Misread::bad_value);
}

std::expected<double, Misread> since_boot(const Value& value, Timestamp t) {
  constexpr double ns_of_2000 = 946'684'800e9;  // before gNMI, and no other unit's count of ns
  const auto boot = in_range(value, ns_of_2000, static_cast<double>(timestamp_ns_max));
  if (!boot) return boot;
  const double span = (static_cast<double>(t.ns) - *boot) * 1e-9;
  if (span < 0) return std::unexpected(Misread::bad_value);
  return span;
}

}  // namespace

std::optional<double> to_number(const Value& value) {
  if (const auto* const real = std::get_if<double>(&value))
    return std::isfinite(*real) ? std::optional(*real) : std::nullopt;
  if (const auto* const whole = std::get_if<std::uint64_t>(&value))
    return static_cast<double>(*whole);
  if (const auto* const whole = std::get_if<std::int64_t>(&value))
    return static_cast<double>(*whole);
  const auto* const text = std::get_if<std::string_view>(&value);
  if (text == nullptr) return std::nullopt;
  const std::string_view digits = trim(*text);
  double out = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), out);
  if (error != std::errc{} || end != digits.data() + digits.size() || !std::isfinite(out))
    return std::nullopt;
  return out;
}

std::optional<std::string_view> to_name(const Value& value) {
  const auto* const text = std::get_if<std::string_view>(&value);
  if (text == nullptr) return std::nullopt;
  return without_module(*text);
}

std::optional<std::uint32_t> trailing_number(std::string_view text) {
  const std::size_t last = text.find_last_not_of("0123456789");
  const std::string_view digits = last == std::string_view::npos ? text : text.substr(last + 1);
  std::uint32_t out = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), out);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return out;
}

std::expected<double, Misread> read_value(Reading reading, const Value& value, Timestamp t) {
  constexpr double huge = 0x1p64, percent_unit = 0.01, ns_unit = 1e-9;
  switch (reading) {
    case Reading::count:
    case Reading::share_used:
    case Reading::share_whole:
      return in_range(value, 0, huge);
    case Reading::up:
      return state(value, link_states);
    case Reading::established:
      return state(value, session_states);
    case Reading::part_status:
      return state(value, part_states);
    case Reading::decibel_milliwatt:
      return in_range(value, -100, 100);
    case Reading::error_ratio:
      return in_range(value, 0, 1);
    case Reading::percent:
    case Reading::percent_of_all:
      return in_range(value, 0, 100, percent_unit);
    case Reading::nanoseconds:
      return in_range(value, 0, huge, ns_unit);
    case Reading::boot_time:
      return since_boot(value, t);
    case Reading::part_celsius:
      return in_range(value, -100, 300);
    case Reading::part_type:
    case Reading::optic_name:
      break;
  }
  return std::unexpected(Misread::bad_value);
}

}  // namespace weft::adapt::gnmi
