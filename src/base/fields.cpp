#include "base/fields.hpp"

#include <fmt/format.h>

#include <cmath>

namespace weft {
inline namespace base {

FieldValue FieldValue::member(std::string_view key) const {
  return {node_.member(key), where_,
          path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key), errors_};
}

FieldValue FieldValue::item(std::size_t i) const {
  return {node_.item(i), where_, fmt::format("{}[{}]", path_, i), errors_};
}

void FieldValue::read(std::string& value) const {
  if (auto text = node_.text())
    value = *std::move(text);
  else
    refuse("a text");
}

void FieldValue::read(bool& value) const {
  if (const auto flag = node_.flag())
    value = *flag;
  else
    refuse("true or false");
}

void FieldValue::read(double& value) const {
  const auto number = node_.number();
  if (number && std::isfinite(*number))
    value = *number;
  else
    refuse("a number");
}

void FieldValue::read(Timestamp& value) const {
  const auto number = node_.whole();
  const auto text = number ? fmt::format("{}", *number) : node_.text();
  if (!text) return refuse("RFC 3339 text or whole nanoseconds");
  if (const auto t = parse_timestamp({*text, where_}))
    value = *t;
  else
    complain(t.error().code, t.error().what);
}

std::optional<std::int64_t> FieldValue::whole(std::int64_t least, std::int64_t most) const {
  const auto number = node_.whole();
  if (number && *number >= least && *number <= most) return number;
  const char* const why = number ? ", out of range" : "";
  refuse(fmt::format("a whole number from {} to {}", least, most), why);
  return std::nullopt;
}

bool FieldValue::is_object() const {
  if (node_.is_object()) return true;
  refuse("an object");
  return false;
}

bool FieldValue::is_list() const {
  if (node_.is_list()) return true;
  refuse("a list");
  return false;
}

void FieldValue::complain(Errc code, std::string_view what) const {
  errors_.push_back({code, where_, fmt::format("\"{}\": {}", path_, what), {}, {}});
}

void FieldValue::is_missing() const {
  errors_.push_back({Errc::parse,
                     where_,
                     fmt::format("\"{}\" is missing", path_),
                     fmt::format("add \"{}\"", path_),
                     {}});
}

void FieldValue::refuse(std::string_view wanted, std::string_view why) const {
  errors_.push_back({Errc::value,
                     where_,
                     fmt::format("\"{}\" is {}{}", path_, node_.shown(), why),
                     fmt::format("give {}", wanted),
                     {}});
}

Result<std::size_t> find_name(const Token& token, std::span<const std::string_view> names) {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == token.text) return i;
  const std::vector<std::string> known(names.begin(), names.end());
  return fail(Errc::unknown, token.where,
              fmt::format("{} is not known{}", quote(token.text), did_you_mean(token.text, known)),
              fmt::format("choose one of {}", fmt::join(names, ", ")));
}

}  // namespace base
}  // namespace weft
