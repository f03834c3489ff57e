// Streams of JSON lines: one object a line, taken apart key by key.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_text.hpp"  // json_string: both ways of a stream
#include "base/line_reader.hpp"
#include "base/result.hpp"
#include "base/timestamp.hpp"

namespace weft {
inline namespace base {

// A value inside a JsonLine, which must outlive it. False: absent or null.
class JsonNode {
 public:
  JsonNode() = default;
  explicit JsonNode(const void* tree) : tree_(tree) {}
  explicit operator bool() const { return tree_ != nullptr; }

  JsonNode member(std::string_view key) const;  // of an object; nothing otherwise
  JsonNode item(std::size_t i) const;           // of a list; nothing otherwise
  std::size_t size() const;                     // of an object or list; 0 otherwise
  bool is_object() const;
  bool is_list() const;
  // None where it is absent or of another type.
  std::optional<std::string> text() const;
  std::optional<bool> flag() const;
  std::optional<double> number() const;
  std::optional<std::int64_t> whole() const;
  std::string shown() const;  // its JSON, at most 40 bytes

 private:
  const void* tree_ = nullptr;
};
// Of trees that someone else made and whose checks are theirs: what is no text reads as empty.
std::string text_of(JsonNode object, std::string_view key);
std::vector<std::string> texts_of(JsonNode list);

// One line. Each call names a key and checks its value; errors go to the list given, and a failed
// read returns the fallback, or nothing of the type. Keys that nobody asks for are allowed: streams
// grow fields.
class JsonLine {
 public:
  // Fails: Errc::parse when the line is no JSON object, names a key twice, nests deeper than 100,
  // or holds what is no UTF-8.
  static Result<JsonLine> parse(std::string_view line, const Where& where);
  JsonLine(JsonLine&&) noexcept;
  JsonLine& operator=(JsonLine&&) noexcept;
  ~JsonLine();

  // Absent and null are the same.
  bool has(std::string_view key) const;
  const Where& where() const { return where_; }
  JsonNode node() const;
  // Its members as an object to be written, but for those keys.
  JsonObject but(std::initializer_list<std::string_view> keys) const;

  // With a fallback the key is optional, without it is required.
  std::string text(std::string_view key, const std::optional<std::string>& fallback,
                   Errors& errors) const;
  // A JSON number, finite, in [least, most].
  double number(std::string_view key, std::optional<double> fallback, double least, double most,
                Errors& errors) const;
  // A whole JSON number in [least, most].
  std::int64_t count(std::string_view key, std::optional<std::int64_t> fallback, std::int64_t least,
                     std::int64_t most, Errors& errors) const;
  // RFC 3339 as text, or whole nanoseconds as text or number.
  Timestamp time(std::string_view key, std::optional<Timestamp> fallback, Errors& errors) const;
  // A list of texts; empty when absent.
  std::vector<std::string> texts(std::string_view key, Errors& errors) const;
  // The object under `key`; none when absent.
  std::optional<JsonLine> object(std::string_view key, Errors& errors) const;
  // All members as texts (what is no text, as JSON), in the order of the line.
  std::vector<std::pair<std::string, std::string>> members() const;

 private:
  struct Impl;
  JsonLine(std::unique_ptr<Impl> impl, Where where);

  std::unique_ptr<Impl> impl_;
  Where where_;
};

// The next line of a stream that is not blank. Lines that are no JSON objects join the errors; with
// errors_max of them, from whomever, it is enough. None at the end; a failure to read joins
// the errors.
std::optional<JsonLine> next_json_line(LineReader& lines, Errors& errors);

}  // namespace base
}  // namespace weft
