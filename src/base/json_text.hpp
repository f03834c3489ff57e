// JSON text, written piece by piece without a tree: the one place where braces, commas and quotes
// are set. Keys stand in the order in which they were added.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/timestamp.hpp"

namespace weft {
inline namespace base {

// The text as a JSON string, quotes included. Bytes that are not UTF-8 become U+FFFD.
std::string json_string(std::string_view text);

// How a number is written; without one, the shortest text that reads back as the same number.
struct NumberFormat {
  enum class Kind : std::uint8_t { shortest, fixed, significant };
  Kind kind = Kind::shortest;
  int digits = 0;
};
constexpr NumberFormat decimals(int count) { return {NumberFormat::Kind::fixed, count}; }
constexpr NumberFormat digits(int count) { return {NumberFormat::Kind::significant, count}; }

// What is JSON already: a stored document inside another one.
struct JsonText {
  std::string_view text;
};

// A struct U, const or not: what a fields() list takes (base/fields.hpp).
template <class T, class U>
concept Of = std::same_as<std::remove_const_t<T>, U>;

struct NoContext {};

namespace json_detail {

void append_text(std::string& out, std::string_view text);
void append_time(std::string& out, Timestamp t);
void append_integer(std::string& out, std::int64_t value);
void append_unsigned(std::string& out, std::uint64_t value);
// Infinities and NaN have no JSON: null.
void append_number(std::string& out, double value, NumberFormat format);
void append_number(std::string& out, float value, NumberFormat format);
// `,"key":`, without the comma right behind an opening brace.
void append_key(std::string& out, std::string_view key);

template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

template <class T, class Context>
void append(std::string& out, const T& value, NumberFormat format, const Context& context);

}  // namespace json_detail

// One object. A fields() list writes into it; so does whoever needs an object with no struct.
//   JsonObject().add("order", id).add("tries", n).text()
template <class Context = NoContext>
class JsonWriter {
 public:
  JsonWriter() = default;
  explicit JsonWriter(const Context& context) : context_(context) {}

  // Texts, numbers, flags, enums (by to_text), times, lists, optionals (null when empty), objects,
  // structs with a fields() list, JsonText, and what the context has a text(value) for.
  template <class T>
  JsonWriter& add(std::string_view key, const T& value, NumberFormat format = {}) {
    json_detail::append_key(out_, key);
    json_detail::append(out_, value, format, context_);
    return *this;
  }
  // Left out when empty.
  template <class T>
  JsonWriter& add_if(std::string_view key, const T& value, NumberFormat format = {}) {
    return is_set(value) ? add(key, value, format) : *this;
  }
  // The members of another object.
  JsonWriter& add_all(const JsonWriter& other) {
    if (out_.size() > 1 && !other.empty()) out_ += ',';
    out_.append(other.out_, 1);
    return *this;
  }
  JsonWriter& reserve(std::size_t bytes) {
    out_.reserve(bytes);
    return *this;
  }

  bool empty() const { return out_.size() == 1; }
  void append_to(std::string& out) const { (out += out_) += '}'; }
  std::string text() const& { return out_ + '}'; }
  std::string text() && {
    out_ += '}';
    return std::move(out_);
  }

  // As an archive for fields().
  template <class T>
  void operator()(std::string_view key, const T& value, NumberFormat format = {}) {
    add(key, value, format);
  }
  template <class T>
  void added(std::string_view key, const T& value, NumberFormat format = {}) {
    add(key, value, format);
  }
  template <class T>
  void if_set(std::string_view key, const T& value, NumberFormat format = {}) {
    add_if(key, value, format);
  }

 private:
  template <class T>
  static bool is_set(const T& value) {
    if constexpr (requires { value.empty(); }) {
      return !value.empty();
    } else if constexpr (json_detail::is_optional<T>) {
      return value.has_value();
    } else {
      return value != T{};
    }
  }

  std::string out_ = "{";
  [[no_unique_address]] Context context_;
};

using JsonObject = JsonWriter<>;

// A list whose items are made one by one.
class JsonList {
 public:
  template <class T>
  JsonList& add(const T& value, NumberFormat format = {}) {
    if (out_.size() > 1) out_ += ',';
    json_detail::append(out_, value, format, NoContext{});
    return *this;
  }
  bool empty() const { return out_.size() == 1; }
  void append_to(std::string& out) const { (out += out_) += ']'; }
  std::string text() const { return out_ + ']'; }

 private:
  std::string out_ = "[";
};

namespace json_detail {

template <class T, class Context>
void append_list(std::string& out, const T& list, NumberFormat format, const Context& context) {
  out += '[';
  bool is_first = true;
  for (const auto& item : list) {
    if (!std::exchange(is_first, false)) out += ',';
    append(out, item, format, context);
  }
  out += ']';
}

template <class T, class Context>
void append(std::string& out, const T& value, NumberFormat format, const Context& context) {
  if constexpr (requires { context.text(value); }) {
    append_text(out, context.text(value));
  } else if constexpr (std::same_as<T, bool>) {
    out += value ? "true" : "false";
  } else if constexpr (std::signed_integral<T>) {
    append_integer(out, value);
  } else if constexpr (std::unsigned_integral<T>) {
    append_unsigned(out, value);
  } else if constexpr (std::floating_point<T>) {
    append_number(out, value, format);
  } else if constexpr (std::is_enum_v<T>) {
    append_text(out, to_text(value));
  } else if constexpr (std::same_as<T, std::nullptr_t>) {
    out += "null";
  } else if constexpr (std::convertible_to<const T&, std::string_view>) {
    append_text(out, value);
  } else if constexpr (std::same_as<T, Timestamp>) {
    append_time(out, value);
  } else if constexpr (std::same_as<T, JsonText>) {
    out += value.text;
  } else if constexpr (is_optional<T>) {
    if (value)
      append(out, *value, format, context);
    else
      out += "null";
  } else if constexpr (std::ranges::range<T>) {
    append_list(out, value, format, context);
  } else if constexpr (requires { value.append_to(out); }) {
    value.append_to(out);
  } else {
    JsonWriter<Context> inner(context);
    fields(inner, value);
    out += std::move(inner).text();
  }
}

}  // namespace json_detail
}  // namespace base
}  // namespace weft
