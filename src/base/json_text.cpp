#include "base/json_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

namespace weft {
inline namespace base {
namespace {

bool is_plain(char c) { return c >= ' ' && c != '"' && c != '\\'; }

void append_escaped(std::string& out, char c) {
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\b':
      out += "\\b";
      return;
    case '\f':
      out += "\\f";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned char>(c));
  }
}

template <class Integer>
void append_digits(std::string& out, Integer value) {
  char digits[24];
  const auto end = std::to_chars(std::begin(digits), std::end(digits), value).ptr;
  out.append(std::begin(digits), end);
}

template <class Real>
void append_real(std::string& out, Real value, NumberFormat format) {
  auto to = std::back_inserter(out);
  if (!std::isfinite(value))
    out += "null";
  else if (format.kind == NumberFormat::Kind::fixed)
    fmt::format_to(to, "{:.{}f}", value, format.digits);
  else if (format.kind == NumberFormat::Kind::significant)
    fmt::format_to(to, "{:.{}g}", value, format.digits);
  else
    fmt::format_to(to, "{}", value);
}

}  // namespace

namespace json_detail {

void append_text(std::string& out, std::string_view text) {
  // Bytes from 0x80 on are negative, and not plain: they must be looked at as UTF-8.
  const auto odd = std::ranges::find_if_not(text, is_plain);
  if (std::any_of(odd, text.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x80; })) {
    out += nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    return;
  }
  out += '"';
  out.append(text.begin(), odd);
  for (auto at = odd; at != text.end(); ++at) {
    if (is_plain(*at))
      out += *at;
    else
      append_escaped(out, *at);
  }
  out += '"';
}

void append_time(std::string& out, Timestamp t) {
  out += '"';
  out += to_text(t);
  out += '"';
}

void append_integer(std::string& out, std::int64_t value) { append_digits(out, value); }
void append_unsigned(std::string& out, std::uint64_t value) { append_digits(out, value); }
void append_number(std::string& out, double value, NumberFormat format) {
  append_real(out, value, format);
}
void append_number(std::string& out, float value, NumberFormat format) {
  append_real(out, value, format);
}

void append_key(std::string& out, std::string_view key) {
  if (out.back() != '{') out += ',';
  append_text(out, key);
  out += ':';
}

}  // namespace json_detail

std::string json_string(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 2);
  json_detail::append_text(out, text);
  return out;
}

}  // namespace base
}  // namespace weft
