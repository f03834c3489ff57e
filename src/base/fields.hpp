// Structs to and from JSON by one list of their fields, so that the two cannot come apart:
//
//   template <class Archive, Of<Pending> T>
//   void fields(Archive& ar, T& p) {
//     ar("id", p.id);                      // needed; an optional may be absent or null
//     ar("share", p.share, decimals(3));   // how the number is written
//     ar.added("tries", p.tries);          // absent in documents of an older version
//     ar.if_set("note", p.note);           // left out when empty, 0 or false
//   }
//
// The list stands in the struct's namespace. Enums have names (base/names.hpp). Values that only
// have a text in some context (a fabric's parts) are written by context.text(value) and read by
// context.read(token, value), a Status.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/json_line.hpp"
#include "base/json_text.hpp"
#include "base/names.hpp"

namespace weft {
inline namespace base {

template <class T, class Context = NoContext>
std::string write_fields(const T& value, const Context& context = {}) {
  JsonWriter<Context> writer(context);
  fields(writer, value);
  return std::move(writer).text();
}

// For others to add to.
template <class T>
JsonObject to_object(const T& value) {
  JsonObject out;
  fields(out, value);
  return out;
}

// A JSON value, where it stands, and where complaints about it go.
class FieldValue {
 public:
  FieldValue(JsonNode node, const Where& where, std::string path, Errors& errors)
      : node_(node), where_(where), path_(std::move(path)), errors_(errors) {}

  JsonNode node() const { return node_; }
  FieldValue member(std::string_view key) const;
  FieldValue item(std::size_t i) const;

  // Each leaves the value as it is, and an error, where the type or the range is wrong.
  void read(std::string& value) const;
  void read(bool& value) const;
  void read(double& value) const;
  void read(Timestamp& value) const;
  std::optional<std::int64_t> whole(std::int64_t least, std::int64_t most) const;
  bool is_object() const;
  bool is_list() const;
  void complain(Errc code, std::string_view what) const;
  void is_missing() const;
  Token token(const std::string& text) const { return {text, where_}; }

 private:
  void refuse(std::string_view wanted, std::string_view why = "") const;

  JsonNode node_;
  const Where& where_;
  std::string path_;  // "messages[2].due"
  Errors& errors_;
};

template <class Context = NoContext>
class FieldReader {
 public:
  FieldReader(const FieldValue& object, const Context& context)
      : object_(object), context_(context) {}

  template <class T>
  void operator()(std::string_view key, T& value, NumberFormat = {}) {
    const FieldValue member = object_.member(key);
    if (member.node())
      take(member, value);
    else if constexpr (json_detail::is_optional<T>)
      value.reset();
    else
      member.is_missing();
  }
  template <class T>
  void added(std::string_view key, T& value, NumberFormat = {}) {
    if (const FieldValue member = object_.member(key); member.node()) take(member, value);
  }
  template <class T>
  void if_set(std::string_view key, T& value, NumberFormat = {}) {
    added(key, value);
  }

 private:
  template <class T>
  void take(const FieldValue& from, T& value) {
    if constexpr (requires(Token t) { context_.read(t, value); }) {
      std::string text;
      from.read(text);
      if (const Status done = context_.read(from.token(text), value); !done)
        from.complain(done.error().code, done.error().what);
    } else if constexpr (std::is_enum_v<T>) {
      take_name(from, value);
    } else if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      constexpr bool is_wide = std::is_unsigned_v<T> && sizeof(T) == 8;
      constexpr auto most = is_wide ? std::numeric_limits<std::int64_t>::max()
                                    : static_cast<std::int64_t>(std::numeric_limits<T>::max());
      if (const auto number = from.whole(std::numeric_limits<T>::min(), most))
        value = static_cast<T>(*number);
    } else if constexpr (requires { from.read(value); }) {
      from.read(value);
    } else if constexpr (json_detail::is_optional<T>) {
      take(from, value.emplace());
    } else if constexpr (requires { value.emplace_back(); }) {
      value.clear();
      if (!from.is_list()) return;
      for (std::size_t i = 0; i < from.node().size(); ++i) take(from.item(i), value.emplace_back());
    } else if (from.is_object()) {
      FieldReader inner(from, context_);
      fields(inner, value);
    }
  }
  template <class Enum>
  void take_name(const FieldValue& from, Enum& value) {
    std::string text;
    const std::string_view kept = name_of(value);
    text = kept;
    from.read(text);
    if (const auto found = from_name<Enum>(from.token(text)))
      value = *found;
    else
      from.complain(found.error().code, found.error().what);
  }

  const FieldValue& object_;
  const Context& context_;
};

// Unknown keys are allowed. Errors join the list.
template <class T, class Context = NoContext>
void read_fields(const JsonLine& line, T& value, Errors& errors, const Context& context = {}) {
  const FieldValue object(line.node(), line.where(), {}, errors);
  FieldReader<Context> reader(object, context);
  fields(reader, value);
}

// Of one JSON object. Fails with all that is wrong with it.
template <class T, class Context = NoContext>
Result<T> read_fields(std::string_view text, const Where& where, const Context& context = {}) {
  WEFT_TRY(const JsonLine line, JsonLine::parse(text, where));
  T out;
  Errors errors;
  read_fields(line, out, errors, context);
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  return out;
}

}  // namespace base
}  // namespace weft
