// The configuration tree: YAML with positions, and the reader by which each room takes its part.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "base/text.hpp"
#include "base/units.hpp"

namespace weft {
inline namespace base {

// One YAML value and where it stands. Maps keep their order; keys are unique.
struct Config {
  enum class Kind : std::uint8_t { null, scalar, list, map };
  struct Field;

  Kind kind = Kind::null;
  Where where;
  std::string text;             // scalar
  std::vector<Config> items;    // list
  std::vector<Field> fields;    // map
  bool is_replacement = false;  // map under !replace: see overlay()

  const Config* find(std::string_view key) const;
  Config* find(std::string_view key);
  // The field, made (as null) where it is missing; turns a null into a map.
  Config& at_or_add(std::string_view key);

  static Config scalar(std::string text, Where where = {});
  static Config map(Where where = {});
  static Config list(Where where = {});
};

struct Config::Field {
  std::string key;
  Where where;  // of the key
  Config value;
};

// One document of UTF-8 text; explicit tags other than !!str are refused, for they would be lost,
// and so is !replace before a map unless the text is one that has overlays.
// Bounds: 64 MiB of text, 100 levels, 1 M values (aliases counted where used, long texts more).
// Fails: Errc::parse with file:line:column on broken YAML, duplicate keys or an exceeded bound.
enum class YamlTags : std::uint8_t { none, replace };
Result<Config> parse_yaml(std::string_view text, const std::string& file,
                          YamlTags tags = YamlTags::none);
Result<Config> load_yaml(const std::string& path, YamlTags tags = YamlTags::none);

// YAML that parse_yaml reads back to the same tree.
std::string to_yaml(const Config& config);

// `over` laid on `base`: maps merge key by key, unless the upper one is under !replace; anything
// else replaces. A null deletes the key. Nothing of `base` is under !replace then.
void overlay(Config& base, const Config& over);

// `over` laid over defaults that the program itself holds as YAML; a null, as of an empty file or
// section, changes nothing. Aborts on defaults that are no YAML.
Config laid_over(std::string_view defaults, const Config& over);

// Sets "a.b.c" to a YAML value, making maps on the way ("routing.qps", "16"). A number steps into
// a list ("jobs.0.bytes"). A null removes the key, as in overlay(). Fails: Errc::unknown on a step
// into a scalar or past a list's end, Errc::unsupported on a null for an element of a list.
Status set_path(Config& config, std::string_view path, const Config& value);

// Takes one map apart: each call names a key, checks its value and notes that it is known.
// Errors go to the list given, so that one pass reports them all; a failed read returns the
// fallback. finish() reports the keys nobody asked for.
class Reader {
 public:
  // `what` names the section in messages ("fabric"). A null config is an empty map.
  Reader(const Config& config, std::string what, Errors& errors);

  bool has(std::string_view key);
  // The raw value, or nullptr. The key counts as known.
  const Config* child(std::string_view key);

  // With a fallback the key is optional, without it is required.
  std::int64_t count(std::string_view key, std::optional<std::int64_t> fallback,
                     std::int64_t least = 0, std::int64_t most = INT64_MAX);
  // Where `most` is at most 1 a percentage counts too: "2 %" is 0.02.
  double number(std::string_view key, std::optional<double> fallback, double least, double most);
  Bytes bytes(std::string_view key, std::optional<Bytes> fallback);
  Rate rate(std::string_view key, std::optional<Rate> fallback);
  Duration duration(std::string_view key, std::optional<Duration> fallback);
  bool flag(std::string_view key, std::optional<bool> fallback);
  std::string text(std::string_view key, const std::optional<std::string>& fallback);
  // One of `names`; returns its index.
  std::size_t choice(std::string_view key, std::span<const std::string> names,
                     std::optional<std::size_t> fallback);
  // A list of texts; a single scalar counts as a list of one. Missing: empty.
  std::vector<Token> texts(std::string_view key);

  void error(Errc code, const Where& where, std::string what, std::string hint = {});
  void error(Error error) { errors_.push_back(std::move(error)); }
  // Where the key's value stands, or the section itself.
  Where where(std::string_view key) const;
  const Where& where() const { return config_.where; }

  void finish();

 private:
  // The scalar behind `key`, or nullptr; reports a missing required key and a wrong kind.
  const Config* scalar(std::string_view key, bool required);
  template <class T, class Parse>
  T read(std::string_view key, const std::optional<T>& fallback, Parse parse);

  const Config& config_;
  std::string what_;
  Errors& errors_;
  std::vector<std::string> known_;
};

// A scalar as a token for the parse_* functions.
Token token_of(const Config& config);

}  // namespace base
}  // namespace weft
