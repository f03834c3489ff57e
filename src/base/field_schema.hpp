// The JSON Schema of what write_fields() writes, from the same list of fields (base/fields.hpp).
#pragma once

#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/fields.hpp"

namespace weft {
inline namespace base {

// As an archive for fields(): the members of one object. Their values do not matter.
template <class Context = NoContext>
class FieldSchema {
 public:
  template <class T>
  void operator()(std::string_view key, const T& value, NumberFormat = {}) {
    required_.emplace_back(key);
    properties_.add(key, of(value, Null::no));
  }
  template <class T>
  void added(std::string_view key, const T& value, NumberFormat = {}) {
    (*this)(key, value);  // absent in what others wrote, never in what we write
  }
  template <class T>
  void if_set(std::string_view key, const T& value, NumberFormat = {}) {
    properties_.add(key, of(value, Null::no));
  }
  JsonObject object() const { return members_of(type("object", Null::no)); }

 private:
  enum class Null : std::uint8_t { no, yes };

  static JsonObject type(std::string_view name, Null null) {
    JsonObject out;
    if (null == Null::no) return out.add("type", name);
    return out.add("type", std::vector<std::string_view>{name, "null"});
  }
  JsonObject members_of(JsonObject out) const {
    return out.add("properties", properties_).add("required", required_);
  }

  template <class T>
  static JsonObject of(const T& value, Null null) {
    constexpr bool has_text = requires(const Context& context) { context.text(value); };
    if constexpr (has_text || std::is_enum_v<T> ||
                  std::is_convertible_v<const T&, std::string_view>) {
      return type("string", null);
    } else if constexpr (std::is_same_v<T, bool>) {
      return type("boolean", null);
    } else if constexpr (std::is_integral_v<T>) {
      return type("integer", null);
    } else if constexpr (std::is_floating_point_v<T>) {
      return type("number", Null::yes);  // what is not finite
    } else if constexpr (std::is_same_v<T, Timestamp>) {
      return type("string", null).add("format", "date-time");
    } else if constexpr (json_detail::is_optional<T>) {
      return of(typename T::value_type{}, Null::yes);
    } else if constexpr (std::ranges::range<T>) {
      return type("array", null).add("items", of(typename T::value_type{}, Null::no));
    } else {
      FieldSchema inner;
      fields(inner, value);
      return inner.members_of(type("object", null));
    }
  }

  JsonObject properties_;
  std::vector<std::string> required_;
};

// {"type": "object", "properties": …, "required": …}, as JSON.
template <class T, class Context = NoContext>
std::string schema_of_fields() {
  FieldSchema<Context> schema;
  const T value{};
  fields(schema, value);
  return schema.object().text();
}

}  // namespace base
}  // namespace weft
